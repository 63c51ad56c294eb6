"""Callbacks that keep what a run has done, and that end it in time."""

import math
import time

import keras

from gar_keras.callbacks import TimeLimit


class OutOfTime(Exception):
    """The time limit came before the end of a run, which can be resumed."""


class Keeper(keras.callbacks.Callback):
    """Measures, notes, saves and reports each epoch of a stage.

    What comes before the first epoch, such as a method's graph of neighbours,
    counts among its seconds.

    Args:
        job: The run, whose state it keeps.
        stage: `"pretraining"` or `"regularization"`.
        passes: Epochs of the stage in an epoch of `fit`.
    """

    def __init__(self, job, stage, passes):
        super().__init__()
        self.job = job
        self.stage = stage
        self.passes = passes
        self.start = time.perf_counter()

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch
        if self.start is None:
            self.start = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        if self.job.reporter is not None:
            steps = self.params["steps"]
            done = (self.epoch + (batch + 1) / steps) * self.passes
            self.job.reporter.step(
                self.stage, done, self._total(), logs, steps // self.passes
            )

    def on_epoch_end(self, epoch, logs=None):
        job = self.job
        seconds = time.perf_counter() - self.start
        self.start = None
        before = job.errors.seconds
        errors = job.errors.measure(self.model)
        # For the callbacks that follow.
        logs.update(errors)
        progress = job.progress[self.stage]
        progress["seconds"] += seconds
        job.progress["evaluation_seconds"] += job.errors.seconds - before
        self._note((epoch + 1) * self.passes, errors, logs, seconds)
        if self.stage == "regularization":
            self._keep_best(progress["curve"]["val_error"][1:])
            job.snapshots.take(epoch + 1, self._evaluated())
        job.checkpoint.save(
            job.progress,
            model=job.model.variables,
            optimizer=self.model.optimizer.variables,
            best=job.best_weights,
            snapshots=job.snapshots.logits,
            method=self._state(),
        )
        if job.reporter is not None:
            curve = progress["curve"]
            latest = {name: values[-1] for name, values in curve.items()}
            job.reporter.epoch(self.stage, latest, self._total())

    def _state(self):
        """What there is beside weights and optimizer."""
        if self.stage == "pretraining":
            return self.job.moves_state()
        return getattr(self.model, "state", [])

    def _total(self):
        return self.params["epochs"] * self.passes

    def _note(self, epoch, errors, logs, seconds):
        row = {"epoch": epoch, **errors, **logs, "seconds": round(seconds, 3)}
        curve = self.job.progress[self.stage]["curve"]
        missing = max(map(len, curve.values()), default=0)
        for name, value in row.items():
            # Epoch 0 has errors alone.
            curve.setdefault(name, [None] * missing).append(value)

    def _keep_best(self, val_errors):
        if val_errors[-1] < min(val_errors[:-1], default=math.inf):
            self.job.best_weights = self._evaluated().get_weights()

    def _evaluated(self):
        """The network, or what a method puts in its place."""
        return getattr(self.model, "evaluated", self.job.model)


class Deadline(TimeLimit):
    """Stops a run at the deadline, in the middle of an epoch if need be.

    The part of the epoch that was done is lost, and is done again later.
    """

    def on_train_begin(self, logs=None):
        self._last = time.monotonic()
        self._slowest = 0.0

    def on_train_batch_end(self, batch, logs=None):
        now = time.monotonic()
        self._slowest = max(self._slowest, now - self._last)
        self._last = now
        if now + self._slowest > self.deadline:
            raise OutOfTime
