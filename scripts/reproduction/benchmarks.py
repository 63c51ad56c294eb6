"""The benchmarks: what is timed in turns, how, and the records of it."""

import gc
import json
import re
import statistics
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import keras
import numpy as np

from gar_keras.datasets import load_mnist
from gar_keras.engine import hardware
from gar_keras.engine.batches import BatchSampler, TrainingData
from gar_keras.engine.fit import compile_options, fit
from gar_keras.engine.optimizers import sgd
from gar_keras.layers import GraphActivityRegularization
from gar_keras.models import POLICIES, attach, cnn6, without_dropout
from reproduction import environment, records
from reproduction.run import build_model
from reproduction.settings import TABLE_1

# The paper's experiment whose stage 2 is timed, and its X_U.
EXPERIMENT = TABLE_1[100]
IMAGES = 60_000

PAIRS = 10
# Steps in one go: few enough for the machine to stay the same.
STEPS = {
    "cpu": {"regularize": 67, "layer": 40},
    "gpu": {"regularize": 536, "layer": 400},
}

# Pairs after which both are built anew: where arrays happen to lie in memory
# makes a network faster or slower, by more than what is measured here.
PER_BUILD = 4

# The optimizer of a Keras user.
PLAIN_SGD = partial(keras.optimizers.SGD, 0.01, momentum=0.95, nesterov=True)


def cases():
    """What is to be measured: pairs of a kind of record and a case."""
    steps = STEPS[hardware.device_kind()]
    common = {"precision": hardware.fast_precision(), "pairs": PAIRS}
    stage_2 = {
        "task": "regularize",
        "network": "cnn6",
        "images": IMAGES,
        "stretch": steps["regularize"],
        **common,
    }
    layer = {
        "batch_size": 128,
        "num_classes": 10,
        "num_images": 128 * steps["layer"],
        "steps": steps["layer"],
        **common,
    }
    # The second is A/A: twice without GAR.
    without = layer | {"second": "without"}
    return [("benchmark", stage_2), ("overhead", without), ("overhead", layer)]


def run(results, kind, case):
    """Times a case in turns with its reference, for the record of a kind."""
    here = environment.describe()
    path = path_of(kind, here, results)
    words = ", ".join(f"{key} {value}" for key, value in case.items())
    print(f"{kind}: {words}", flush=True)
    if kind == "benchmark":
        first = partial(regularize, case, plain=True)
        second = partial(regularize, case, plain=False)
    else:
        first = partial(train_layer, case, gar=False)
        second = partial(train_layer, case, gar="second" not in case)
    measured = compared(interleave(first, second, case["pairs"]))
    if kind == "benchmark":
        e, ms = EXPERIMENT, measured["ms"]["median"]
        images = e.labeled_per_batch + e.unlabeled_per_batch
        measured["images_per_second"] = 1000 * images / ms
    entries = read(path) if path.exists() else []
    entries = [entry for entry in entries if entry["case"] != case]
    entries.append({"case": case, "environment": here, **measured})
    records.write(path, {"format": 1, "kind": kind, "cases": entries})
    for name in ("reference_ms", "ms", "ratio"):
        low, high = measured[name]["quartiles"]
        print(
            f"  {name} {measured[name]['median']:.4g} ({low:.4g} to {high:.4g})"
        )
    print(f"Written: {path}")


def path_of(kind, environment, results):
    """Path of the record of the benchmarks of a kind on a machine.

    Example:

    >>> path_of("overhead", {"device": "AMD EPYC (R)", "cores": 2,
    ...     "device_kind": "cpu", "backend": "jax"}, "results").as_posix()
    'results/overhead_amd-epyc-r-2-cores_jax.json'
    """
    device = environment["device"]
    if environment["device_kind"] == "cpu":
        # The name of a processor does not say how many of its cores there are.
        device += f" {environment['cores'] or 'some'} cores"
    slug = re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-")
    return Path(results, f"{kind}_{slug}_{environment['backend']}.json")


def read(path):
    """Entries of a record, a dict for each case."""
    return json.loads(Path(path).read_text(encoding="utf-8"))["cases"]


def compared(pairs):
    """Both times of two or more pairs in ms, and how they compare.

    Example:

    >>> result = compared([(1.0, 1.1), (2.0, 2.0), (1.0, 1.2)])
    >>> result["ratio"]["median"], result["ratio"]["quartiles"]
    (1.1, [1.05, 1.15])
    """
    found = {
        "reference_ms": [a for a, _ in pairs],
        "ms": [b for _, b in pairs],
        "ratio": [b / a for a, b in pairs],
        "speedup": [a / b for a, b in pairs],
        "difference_ms": [b - a for a, b in pairs],
    }
    for name, values in found.items():
        low, middle, high = statistics.quantiles(values, method="inclusive")
        found[name] = {"median": middle, "quartiles": [low, high]}
        found[name]["all"] = values
    return found


# Timing.


def interleave(first, second, pairs):
    """Pairs of the times of two ways in ms, in turns on the same machine.

    A B, B A, A B and so on, so that neither always comes second. Both are
    called once before, to fill caches, and to trace and compile. Each way is a
    function that builds a function that returns the seconds of a unit of work.

    Example:

    >>> interleave(lambda: lambda: 2.0, lambda: lambda: 3.0, pairs=2)
      pair 1 of 2
      pair 2 of 2
    [(2000.0, 3000.0), (2000.0, 3000.0)]
    """
    times = []
    while len(times) < pairs:
        a, b = first(), second()
        b()
        a()
        for turn in range(min(PER_BUILD, pairs - len(times))):
            order = (a, b) if turn % 2 == 0 else (b, a)
            seconds = {way: 1000 * way() for way in order}
            times.append((seconds[a], seconds[b]))
            print(f"  pair {len(times)} of {pairs}", flush=True)
        del a, b, order, seconds
        gc.collect()
    return times


def training(fit, steps):
    """A function that trains for two epochs and returns seconds a step.

    It calls `fit(epochs=2, verbose=0, callbacks=...)`. The first epoch, in
    which a model is compiled, does not count.
    """

    def run():
        ends = []

        def on_epoch_end(epoch, logs):
            # Waits for a device that works on its own.
            np.asarray(clock.model.trainable_weights[-1].numpy())
            ends.append(time.perf_counter())

        clock = keras.callbacks.LambdaCallback(on_epoch_end=on_epoch_end)
        fit(epochs=2, verbose=0, callbacks=[clock])
        return (ends[1] - ends[0]) / steps

    return run


# What is timed: functions that build one of two ways.


def regularize(case, plain):
    """Stage 2, as `gar_keras` does it, or a Keras user.

    The plain way is float32 throughout, from images that are ready.
    """
    e = EXPERIMENT
    images = load_mnist().x_train[: case["images"]]
    m_L, b_U = min(e.num_labeled, len(images)), e.unlabeled_per_batch
    # A stretch has the batches of an epoch at most.
    sampler = BatchSampler(
        len(images),
        b_U,
        m_L,
        e.labeled_per_batch,
        images_per_epoch=min(len(images), case["stretch"] * b_U),
    )
    e = replace(e, precision=case["precision"])
    if plain:
        e = replace(e, precision="float32", preprocessing="none")
    # The same weights for both.
    keras.utils.set_random_seed(0)
    network = build_model(e, images.shape[1:], num_classes=10)
    model = attach(without_dropout(network))
    if plain:
        model.compile(PLAIN_SGD(), loss=None)
        ready = images.astype("float32") / 255
        batches = MixedBatches(ready, m_L, sampler)
        return training(partial(model.fit, batches), sampler.steps)
    model.compile(sgd(), loss=None, **compile_options(model, sampler.steps))
    data = TrainingData(sampler, images, images[:m_L])
    return training(partial(fit, model, data), sampler.steps)


class MixedBatches(keras.utils.PyDataset):
    """Batches of stage 2 as a Keras user would make them from arrays."""

    def __init__(self, x, num_labeled, sampler):
        super().__init__()
        self.x, self.x_labeled, self.sampler = x, x[:num_labeled], sampler
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


def train_layer(case, gar):
    """Supervised training with or without GAR's terms (section 4.1)."""
    keras.utils.set_random_seed(0)
    network = without_dropout(
        cnn6(
            num_classes=case["num_classes"],
            preprocessing=keras.layers.Rescaling(1 / 255, dtype="float32"),
            dtype=POLICIES[case["precision"]],
        )
    )
    logits = network.outputs[0]
    if gar:
        logits = GraphActivityRegularization()(logits)
    model = keras.Model(network.inputs, logits)
    log_loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    options = compile_options(model, case["steps"])
    model.compile(PLAIN_SGD(), log_loss, **options)
    images = load_mnist().x_train[: case["num_images"]]
    labels = np.arange(len(images)) % case["num_classes"]
    fit_images = partial(model.fit, images, labels, case["batch_size"])
    return training(fit_images, case["steps"])
