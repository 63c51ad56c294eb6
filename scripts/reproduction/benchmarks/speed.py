"""Both stages and the evaluation, beside what a Keras user would write.

The plain way has Keras' defaults and its own optimizer, on float32 arrays.
"""

import gc
from dataclasses import replace
from functools import partial
from timeit import Timer

import keras
import numpy as np

from gar_keras.datasets import load_mnist
from gar_keras.engine.batches import BATCH_SIZE, BatchSampler, TrainingData
from gar_keras.engine.fit import compile_options, fit
from gar_keras.engine.optimizers import sgd
from gar_keras.metrics import error_rate
from gar_keras.models import attach, without_dropout
from reproduction.benchmarks import timing
from reproduction.run import build_model
from reproduction.settings import NORB, TABLE_1

# The settings of the paper's experiments that have these networks, and their
# classes.
NETWORKS = {"cnn6": (TABLE_1[100], 10), "cnn9": (NORB[1000], 5)}

# Keras' own.
PLAIN_SGD = partial(keras.optimizers.SGD, 0.01, momentum=0.95, nesterov=True)
LOG_LOSS = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def measure(case, tell):
    """Times a case in turns with the plain way, the reference.

    `tell` is for `timing.interleave`.
    """
    work = Workload(case)
    ways = (partial(way, work) for way in WAYS[case.task])
    times = timing.interleave(*ways, case.pairs, tell=tell)
    result = timing.compare(times)
    batch, guides = work.sampler.batch, work.sampler.labeled_per_batch
    # Images in a step, a pass or a unit of evaluation, and the units of 100
    # epochs of stage 2 or 1,000 passes of stage 1.
    images, whole = {
        "regularize": (batch + guides, 100 * -(-case.images // batch)),
        "pretrain": (case.images, 1000),
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


class Workload:
    """The data, the networks and the batches of a case."""

    def __init__(self, case):
        self.case = case
        self.experiment, self.num_classes = NETWORKS[case.network]
        e = self.experiment
        if case.network == "cnn6":
            self.images = load_mnist().x_train[: case.images]
            # As a network without preprocessing takes them.
            self.ready_images = self.images.astype("float32") / 255
        else:
            # Of NORB's shape and dtype. No kernel is faster or slower for it.
            shape = (case.images, 32, 32, 2)
            rng = np.random.default_rng(0)
            self.images = rng.standard_normal(shape, "float32")
            self.ready_images = self.images
        self.labels = np.arange(case.images) % self.num_classes
        self.num_labeled = min(e.num_labeled, case.images)
        self.sampler = BatchSampler(case.images, BATCH_SIZE)
        if case.task == "regularize":
            # The batches of a stretch, of an epoch at most.
            stretch = case.stretch * e.unlabeled_per_batch
            self.sampler = BatchSampler(
                case.images,
                e.unlabeled_per_batch,
                self.num_labeled,
                e.labeled_per_batch,
                images_per_epoch=min(case.images, stretch),
            )

    def network(self):
        """The network of the case, as the experiments build it."""
        return self._built(precision=self.case.precision)

    def plain_network(self):
        """The same network for `ready_images`, in float32."""
        return self._built(precision="float32", preprocessing="none")

    def _built(self, **changes):
        experiment = replace(self.experiment, **changes)
        # The same weights for every way.
        keras.utils.set_random_seed(0)
        shape = self.images.shape[1:]
        return build_model(experiment, shape, self.num_classes)


def _plain_regularize(work):
    model = attach(without_dropout(work.plain_network()))
    model.compile(PLAIN_SGD(), loss=None)
    batches = MixedBatches(work)
    train = partial(model.fit, batches, epochs=2, verbose=0)
    return timing.training(train, len(batches))


def _regularize(work):
    model = attach(without_dropout(work.network()))
    steps = work.sampler.steps
    model.compile(sgd(), loss=None, **compile_options(model, steps))
    feed = TrainingData(
        work.sampler, work.images, work.images[: work.num_labeled]
    )
    train = partial(fit, model, feed, epochs=2, verbose=0)
    return timing.training(train, steps)


def _plain_pretrain(work):
    model = work.plain_network()
    model.compile(PLAIN_SGD(), LOG_LOSS)
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
    model.compile(sgd(), LOG_LOSS, **compile_options(model, steps))
    feed = TrainingData(work.sampler, work.images, labels=work.labels)
    train = partial(fit, model, feed, passes=passes, epochs=2, verbose=0)
    return timing.training(train, passes)


def _plain_evaluate(work):
    model, x = without_dropout(work.plain_network()), work.ready_images

    def evaluate():
        classes = np.argmax(model.predict(x, verbose=0), axis=-1)
        return np.mean(classes != work.labels)

    return _repeated(evaluate, work.case)


def _evaluate(work):
    model = without_dropout(work.network())
    evaluate = partial(error_rate, model, work.images, work.labels)
    return _repeated(evaluate, work.case)


# By task: what a Keras user would write, and what is done here.
WAYS = {
    "regularize": (_plain_regularize, _regularize),
    "pretrain": (_plain_pretrain, _pretrain),
    "evaluate": (_plain_evaluate, _evaluate),
}


class MixedBatches(keras.utils.PyDataset):
    """Batches of stage 2 as a Keras user would make them from arrays."""

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
    units = case.stretch * case.images / 1000
    # As long-lived processes do, with the garbage collector.
    clock = Timer(evaluate, setup=gc.enable)
    return lambda: clock.timeit(case.stretch) / units
