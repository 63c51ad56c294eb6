"""Callbacks that keep what a run has done, and that end it in time."""

import time

import keras

from gar_keras.callbacks import ReportProgress


class OutOfTime(Exception):
    """The time limit came before the end of a run, which can be resumed."""


class RunRecorder(ReportProgress):
    """Measures, notes, saves and reports each epoch of a stage.

    What comes before the first epoch, such as a method's graph of neighbours,
    counts among its seconds.

    Args:
        state: The `RunState`.
        errors: The `ErrorRate` that measures.
        stage: `"pretraining"` or `"regularization"`.
        epochs_per_report: Epochs of the stage in an epoch of `fit`.
        reporter: A `progress.Reporter`, or `None`.
    """

    def __init__(
        self, state, errors, stage, epochs_per_report=1, reporter=None
    ):
        super().__init__(reporter, stage, epochs_per_report)
        self.state = state
        self.errors = errors
        self.start = time.perf_counter()

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch
        if self.start is None:
            self.start = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        seconds = time.perf_counter() - self.start
        self.start = None
        before = self.errors.seconds
        errors = self.errors.measure(self.model)
        # For the callbacks that follow.
        logs.update(errors)
        row = {
            "epoch": (epoch + 1) * self.epochs_per_report,
            **errors,
            **logs,
            "seconds": round(seconds, 3),
        }
        self.state.note(self.stage, row, seconds, self.errors.seconds - before)
        if self.stage == "regularization":
            self.state.keep_chosen(self.model)
        self.state.save(self.stage, self.model)
        curve = self.state.curve(self.stage)
        self.report({name: values[-1] for name, values in curve.items()})


class Deadline(keras.callbacks.Callback):
    """Stops a run at the deadline, in the middle of an epoch if need be.

    The part of the epoch that was done is lost, and is done again later.

    Args:
        deadline: `time.monotonic()` at which training must have ended.
    """

    def __init__(self, deadline):
        super().__init__()
        self.deadline = deadline

    def on_train_begin(self, logs=None):
        self._last = time.monotonic()
        self._slowest = 0.0

    def on_train_batch_end(self, batch, logs=None):
        now = time.monotonic()
        self._slowest = max(self._slowest, now - self._last)
        self._last = now
        if now + self._slowest > self.deadline:
            raise OutOfTime
