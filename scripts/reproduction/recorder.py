"""Callbacks that record the training of a run, epoch by epoch."""

import time

import keras

from gar_keras.callbacks import ErrorRate
from gar_keras.methods.safe_gar import SafeGAR


class Recorder(keras.callbacks.Callback):
    """Measures, notes, saves and reports each epoch of stage 1.

    Args:
        state: The `State` of the run.
        variables: Function that gives the variables of a stage, lists by name,
            as `State.save` takes them.
        sets: Images and class indices, by the name of the error on them.
        reporter: A `progress.Reporter`.
        epochs_per_report: Epochs that make up one epoch of `fit`.
    """

    stage = "pretraining"

    def __init__(self, state, variables, sets, reporter, epochs_per_report=1):
        super().__init__()
        self.state = state
        self.variables = variables
        self.errors = ErrorRate(**sets)
        self.reporter = reporter
        self.epochs_per_report = epochs_per_report
        # What comes before the first epoch, such as a graph, counts too.
        self.start = time.perf_counter()

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch

    def on_train_batch_end(self, batch, logs=None):
        share = (batch + 1) / self.params["steps"]
        done = (self.epoch + share) * self.epochs_per_report
        self.reporter.step(self.stage, done, self._total(), logs)

    def on_epoch_end(self, epoch, logs=None):
        seconds = time.perf_counter() - self.start
        errors = self.errors.measure(self.model)
        # For the callbacks that follow.
        logs.update(errors)
        row = {
            "epoch": (epoch + 1) * self.epochs_per_report,
            **errors,
            **logs,
            "seconds": round(seconds, 3),
        }
        self.state.note(self.stage, row, seconds)
        self.save()
        self.reporter.epoch(self.stage, row, self._total())
        self.start = time.perf_counter()

    def save(self):
        """Saves the run as it is after an epoch."""
        self.state.save(**self.variables(self.stage))

    def _total(self):
        """Epochs of the stage."""
        return self.params["epochs"] * self.epochs_per_report


class Stage2Recorder(Recorder):
    """The same of stage 2, where the model in training is a `Stage2`."""

    stage = "regularization"

    def on_train_begin(self, logs=None):
        self.state.restore_method(self.model.state)

    def save(self):
        term = self.model.method[0]
        if isinstance(term, SafeGAR):
            self.state.note_predicted_prior(term.class_prior)
            if self.state.is_last_epoch():
                # It may yet be taken back: the run keeps what is left of it.
                return
        self.state.keep(self.model.evaluated)
        self.state.save(**self.variables(self.stage), method=self.model.state)
