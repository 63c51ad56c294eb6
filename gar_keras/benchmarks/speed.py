"""Both stages and the evaluation, beside what a Keras user would write.

The plain way has Keras' defaults and its own optimizer, on float32 arrays.
"""

import time
from dataclasses import replace
from functools import partial

import keras
import numpy as np

from gar_keras import datasets
from gar_keras.benchmarks import timing
from gar_keras.callbacks import error_rate
from gar_keras.engine import hardware
from gar_keras.engine.batches import BatchSampler, Feed
from gar_keras.engine.fit import compile_options, fit
from gar_keras.experiments.network import build_model
from gar_keras.experiments.records import SpeedSettings
from gar_keras.experiments.settings import NORB, TABLE_1
from gar_keras.models import attach, without_dropout
from gar_keras.optimizers import sgd

# The settings of the paper's experiments that have these networks, their
# classes, and how many images there are to train on and to evaluate.
NETWORKS = {
    "cnn6": (TABLE_1[100], 10, 60_000, 10_000),
    "cnn9": (NORB[1000], 5, 24_300, 24_300),
}

# What is timed in one go: steps of stage 2, passes of stage 1 over the
# labelled images, evaluations. Short enough for the machine to stay the same.
STRETCH = {
    "cpu": {"regularize": 67, "pretrain": 100, "evaluate": 1},
    "gpu": {"regularize": 536, "pretrain": 1000, "evaluate": 10},
}

# Stage 2 takes this many epochs, and the time of stage 1 is given for this
# many passes.
EPOCHS = 100
PASSES = 1000


def cases(tasks, networks, precisions, pairs=10, steps=None):
    """The cases of some tasks, networks and precisions, of the paper's sizes.

    Args:
        tasks: `"regularize"` (stage 2), `"pretrain"` (stage 1), `"evaluate"`.
        networks: `"cnn6"`, `"cnn9"` (f = 32).
        precisions: `"float32"`, `"bfloat16"`. The plain way has float32.
        pairs: Timed pairs.
        steps: Steps of stage 2 in a stretch. By default what suits the device.

    Returns:
        A list of `SpeedSettings`.
    """
    stretch = dict(STRETCH[hardware.device_kind()])
    stretch["regularize"] = steps or stretch["regularize"]
    path = "compiled" if hardware.loops_on_device() else "fit"
    found = []
    for task in tasks:
        for network in networks:
            e, _, train, test = NETWORKS[network]
            images = {"regularize": train, "pretrain": e.num_labeled}
            for precision in precisions:
                case = SpeedSettings(
                    task=task,
                    network=network,
                    path="error_rate" if task == "evaluate" else path,
                    precision=precision,
                    images=images.get(task, test),
                    stretch=stretch[task],
                    pairs=pairs,
                )
                found.append(case)
    return found


def measure(case):
    """Times a case in turns with the plain way.

    Args:
        case: `SpeedSettings`.

    Returns:
        A dict for a record: what `timing.compare` returns, with the plain way
        as the reference; `"speedup"`, how many times as fast as plain;
        `"images_per_second"`; `"seconds"` of 100 epochs of stage 2 or of
        1,000 passes of stage 1 (`None` for an evaluation), and
        `"reference_seconds"`, those of the plain way. Milliseconds are those
        of a step, of a pass or of 1,000 images.

    Raises:
        FloatingPointError: if the network diverges.
    """
    work = Workload(case)
    plain, ours = WAYS[case.task]
    times = timing.interleave(plain(work), ours(work), case.pairs)
    result = timing.compare(times)
    e, sampler = work.experiment, work.sampler
    images, whole = {
        "regularize": (
            sampler.batch + e.labeled_per_batch,
            EPOCHS * -(-case.images // sampler.batch),
        ),
        "pretrain": (case.images, PASSES),
        "evaluate": (1000, None),
    }[case.task]
    ms, plain_ms = result["ms"]["median"], result["reference_ms"]["median"]
    return {
        **result,
        "speedup": timing.spread([a / b for a, b in times]),
        "images_per_second": 1000 * images / ms,
        "seconds": whole and whole * ms / 1000,
        "reference_seconds": whole and whole * plain_ms / 1000,
    }


def describe(entry):
    """One line on a measured case."""
    c = entry["case"]
    unit = {"regularize": "step", "pretrain": "pass", "evaluate": "1,000"}
    low, high = entry["speedup"]["quartiles"]
    return (
        f"{c['task']}, {c['network']}, {c['path']}, {c['precision']}: "
        f"{entry['ms']['median']:.4g} ms a {unit[c['task']]}, plain "
        f"{entry['reference_ms']['median']:.4g} ms; "
        f"{entry['speedup']['median']:.2f} times as fast ({low:.2f} to "
        f"{high:.2f}, {c['pairs']} pairs); "
        f"{entry['images_per_second']:,.0f} images/s"
    )


class Workload:
    """The data, the networks and the batches of a case.

    The images of `cnn6` are MNIST's, as uint8. Those of `cnn9` are noise of
    NORB's shape and dtype: no kernel is faster or slower for it.
    """

    def __init__(self, case):
        self.case = case
        e, self.num_classes, *_ = NETWORKS[case.network]
        self.experiment = e
        if case.network == "cnn6":
            self.images = datasets.load("mnist").x_train[: case.images]
            # As a network without preprocessing takes them.
            self.ready_images = self.images.astype("float32") / 255
        else:
            rng = np.random.default_rng(0)
            shape = (case.images, 32, 32, 2)
            self.images = rng.standard_normal(shape, "float32")
            self.ready_images = self.images
        self.labels = np.arange(case.images) % self.num_classes
        self.num_labeled = min(e.num_labeled, case.images)

    def network(self, **changes):
        """The network of the case, as the experiments build it."""
        changes = {"precision": self.case.precision, **changes}
        # The same weights for every way.
        keras.utils.set_random_seed(0)
        return build_model(
            replace(self.experiment, **changes),
            self.images.shape[1:],
            self.num_classes,
        )

    def plain_network(self):
        """The same network for `ready_images`, in float32."""
        return self.network(preprocessing="none", precision="float32")

    @property
    def sampler(self):
        """The batches of an epoch; of stage 2 those of a stretch alone."""
        e, images = self.experiment, self.case.images
        if self.case.task != "regularize":
            return BatchSampler(images, e.batch_size)
        return BatchSampler(
            images,
            e.unlabeled_per_batch,
            self.num_labeled,
            e.labeled_per_batch,
            images_per_epoch=min(
                images, self.case.stretch * e.unlabeled_per_batch
            ),
        )


def _plain_regularize(work):
    model = attach(without_dropout(work.plain_network()))
    model.compile(_plain_sgd(), loss=None)
    batches = MixedBatches(work)
    train = partial(model.fit, batches, epochs=2, verbose=0)
    return timing.training(train, len(batches))


def _regularize(work):
    model = attach(without_dropout(work.network()))
    sampler = work.sampler
    model.compile(sgd(), loss=None, **compile_options(sampler.steps))
    feed = Feed(sampler, work.images, work.images[: work.num_labeled])
    train = partial(fit, model, feed, epochs=2, verbose=0)
    return timing.training(train, sampler.steps)


def _plain_pretrain(work):
    model = work.plain_network()
    model.compile(_plain_sgd(), _log_loss())
    train = partial(
        model.fit,
        work.ready_images,
        work.labels,
        batch_size=work.sampler.batch,
        epochs=1 + work.case.stretch,
        verbose=0,
    )
    return timing.training(train, 1)


def _pretrain(work):
    model, passes = work.network(), work.case.stretch
    steps = passes * work.sampler.steps
    model.compile(sgd(), _log_loss(), **compile_options(steps))
    feed = Feed(work.sampler, work.images, labels=work.labels)
    train = partial(fit, model, feed, passes=passes, epochs=2, verbose=0)
    return timing.training(train, passes)


def _plain_evaluate(work):
    model = without_dropout(work.plain_network())

    def measure_error():
        logits = model.predict(work.ready_images, verbose=0)
        np.mean(np.argmax(logits, axis=-1) != work.labels)

    return _repeated(measure_error, work.case)


def _evaluate(work):
    model = without_dropout(work.network())
    return _repeated(partial(error_rate, model, work.images, work.labels),
                     work.case)  # fmt: skip


# By task: what a Keras user would write, and what is done here.
WAYS = {
    "regularize": (_plain_regularize, _regularize),
    "pretrain": (_plain_pretrain, _pretrain),
    "evaluate": (_plain_evaluate, _evaluate),
}


class MixedBatches(keras.utils.PyDataset):
    """Batches of stage 2 as a Keras user would make them from arrays.

    Each is b_U unlabelled images, in a new order in each epoch, with b_L
    labelled ones behind them, drawn for the batch.
    """

    def __init__(self, work):
        super().__init__()
        self.sampler = work.sampler
        self.x = work.ready_images
        self.x_labeled = work.ready_images[: work.num_labeled]
        self.rng = np.random.default_rng(0)
        self.on_epoch_end()

    def __len__(self):
        return self.sampler.steps

    def __getitem__(self, index):
        batch, size = self.sampler.batch, self.sampler.labeled_per_batch
        rows = self.order[index * batch : (index + 1) * batch]
        chosen = self.rng.choice(len(self.x_labeled), size, replace=False)
        return np.concatenate([self.x[rows], self.x_labeled[chosen]])

    def on_epoch_end(self):
        self.order = self.rng.permutation(len(self.x))


def _repeated(evaluate, case):
    """A function that evaluates, and returns the seconds of 1,000 images."""

    def run():
        start = time.perf_counter()
        for _ in range(case.stretch):
            evaluate()
        seconds = time.perf_counter() - start
        return seconds / (case.stretch * case.images / 1000)

    return run


def _plain_sgd():
    return keras.optimizers.SGD(0.01, momentum=0.95, nesterov=True)


def _log_loss():
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)
