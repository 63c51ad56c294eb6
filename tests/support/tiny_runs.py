"""Runs of a tiny network on made-up images, and what watches them.

A process of its own imports this module and calls `run_tiny`.
"""

import copy

import keras
import numpy as np
import pytest

from gar_keras.datasets import Dataset
from reproduction import datasets
from reproduction import run as runner
from reproduction.paths import path_of
from reproduction.run import STAGES, path_of_state
from reproduction.settings import Experiment

BACKEND = keras.backend.backend()

# Two epochs of `fit` in stage 1 and three in stage 2, where TensorFlow takes
# the 106 steps of an epoch in two calls. Stage 1 has two batches to a pass.
TINY = Experiment(
    dataset="tiny",
    num_labeled=132,
    network="cnn6",
    preprocessing="rescale",
    labeled_per_batch=6,
    unlabeled_per_batch=3,
    num_validation=60,
    pretrain_epochs=102,
    epochs=3,
    backend=BACKEND,
)
TRAIN, TEST = 318, 90


def tiny_data():
    """Three noisy classes of 6x6 images."""
    rng = np.random.default_rng(0)
    centres = rng.integers(64, 192, (3, 6, 6, 1))
    y = np.arange(TRAIN + TEST) % 3
    x = centres[y] + rng.normal(0, 60, (len(y), 6, 6, 1))
    x = x.clip(0, 255).astype("uint8")
    return Dataset(
        name="tiny",
        title="Tiny",
        x_train=x[:TRAIN],
        y_train=y[:TRAIN],
        x_test=x[TRAIN:],
        y_test=y[TRAIN:],
        num_classes=3,
        source="made for a test",
    )


def tiny_model(experiment, input_shape, num_classes):
    """A network whose dropout makes its training random."""
    images = keras.Input(input_shape, dtype="uint8")
    x = keras.layers.Rescaling(1 / 255, dtype="float32")(images)
    x = keras.layers.Flatten()(x)
    x = keras.layers.Dense(8, activation="relu")(x)
    x = keras.layers.Dropout(0.5)(x)
    return keras.Model(images, keras.layers.Dense(num_classes)(x))


def run_tiny(results, reporter=None, seed=0, **options):
    """What a process of its own runs."""
    datasets.DATASETS["tiny"] = tiny_data
    runner.build_model = tiny_model
    reporter = reporter or Witness()
    return runner.run(TINY, seed, results, reporter=reporter, **options)


def install(patch):
    """Puts the data set and the network where the runner finds them."""
    patch.setitem(datasets.DATASETS, "tiny", tiny_data)
    patch.setattr(runner, "build_model", tiny_model)


class Stop(Exception):
    """What ends a run from within."""


class Witness:
    """Sees a run from within, and ends it at an event.

    `("epoch", "regularization", 2)` is the end of that epoch, where the state
    is saved; `("step", "regularization", 2)` is a step after that, before the
    next epoch ends.
    """

    def __init__(self, event=None, action=None):
        self.event = event
        self.action = action or self.stop
        self.lines = []

    def stop(self):
        raise Stop

    def begin(self):
        pass

    def end(self):
        pass

    def say(self, text):
        self.lines.append(text)

    def stage(self, stage, done, total):
        self.current = stage

    def step(self, done, logs):
        # One epoch of `fit` in stage 1 is 51 passes.
        epochs, rest = divmod(done, {"pretraining": 51}.get(self.current, 1))
        if rest and self.event == ("step", self.current, epochs):
            self.action()

    def epoch(self, row):
        if self.event == ("epoch", self.current, row["epoch"]):
            self.action()


def network_run(experiment, seed=0, state=None, data_dir=None, reporter=None):
    """A `NetworkRun` that is prepared, and has not begun."""
    reporter = reporter or Witness()
    return runner.NetworkRun(experiment, seed, state, data_dir, reporter)


def numbers(record):
    """A record without its wall times and without where it was made."""
    kept = copy.deepcopy(record)
    for name in ("environment", "resumed_in"):
        kept["pretraining"].pop(name, None)
        del kept[name]
    for stage in STAGES:
        del kept[stage]["seconds"], kept[stage]["curve"]["seconds"]
    return kept


def snapshots(folder, experiment=TINY):
    path = path_of(experiment, 0, folder).with_suffix(".npz")
    with np.load(path) as archive:
        return {key: archive[key] for key in archive.files}


def predictions(folder, experiment=TINY):
    """Class indices of the test images, by each kept epoch."""
    return [*snapshots(folder, experiment)["predicted"].T]


def assert_same_run(folder, record, finished, experiment=TINY):
    assert numbers(record) == numbers(finished[1])
    ours, theirs = (snapshots(f, experiment) for f in (folder, finished[0]))
    assert ours.keys() == theirs.keys()
    for key, array in ours.items():
        np.testing.assert_array_equal(array, theirs[key])


def ends_as_unbroken(folder, experiment, *events):
    """The record of a run that, broken at the events, ended as an unbroken one.

    The unbroken run is in `folder / "whole"`.
    """
    broken, whole = folder / "broken", folder / "whole"
    finished = whole, runner.run(experiment, 0, whole)
    for event in events:
        with pytest.raises(Stop):
            runner.run(experiment, 0, broken, reporter=Witness(event))
    resumed = runner.run(experiment, 0, broken)
    assert_same_run(broken, resumed, finished, experiment)
    return finished[1]


def state_of(folder, experiment=TINY):
    """Path of the saved state of the run with seed 0."""
    return path_of_state(experiment, 0, folder)
