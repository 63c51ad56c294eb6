"""One run: an experiment with a seed, from data to record."""

import contextlib
import math
import time
from dataclasses import asdict
from pathlib import Path

import filelock
import keras

from gar_keras.engine import backend
from gar_keras.experiments import (
    continuation,
    environment,
    records,
    stage_1,
    stage_2,
)
from gar_keras.experiments.checkpoint import Checkpoint
from gar_keras.experiments.options import RunnerOptions
from gar_keras.experiments.placement import path_of
from gar_keras.experiments.recorder import OutOfTime
from gar_keras.experiments.setup import set_up
from gar_keras.experiments.snapshots import Snapshots
from gar_keras.experiments.state import RunState
from gar_keras.methods import METHODS
from gar_keras.models import uncompiled
from gar_keras.utils import files
from gar_keras.utils.optional import check_installed


def run(
    experiment,
    seed,
    results,
    options=RunnerOptions(),  # noqa: B008
    *,
    deadline=math.inf,
    reporter=None,
):
    """Runs an experiment with one seed and writes its record.

    A finished run is not run again. An unfinished one, whether it was killed
    or out of time, goes on after its last finished epoch and ends with the
    numbers of an unbroken run.

    Args:
        experiment: An `Experiment`.
        seed: Decides the split, the initial weights, dropout and the batches.
        results: Folder of the records.
        options: `RunnerOptions`. A model is saved as a `.keras` file; what
            is kept of stage 1 in `stage_1_file`; for the state at the end see
            `experiments.continuation`.
        deadline: `time.monotonic()` at which the run must have stopped.
        reporter: A `progress.Reporter`, or `None`.

    Returns:
        The record, or `None` if another process is running this run.

    Raises:
        OutOfTime: if the deadline came first.
        ValueError: if the experiment is for another backend than the one in
            use, if `tensorboard` is given but not installed, if a model or
            logs are wanted of a method that trains no network, or if the state
            is to be kept of a run that cannot be extended.
    """
    record = finished(experiment, seed, results, options.keep_state)
    if record is not None:
        return record
    path = path_of(experiment, seed, results)
    _check_backend(experiment)
    _check_network(experiment, options)
    callbacks = _tensorboard(options.tensorboard, path.stem)
    checkpoint = Checkpoint.of_run(experiment, seed, results)
    try:
        held = checkpoint.lock().acquire(timeout=0)
    except filelock.Timeout:
        return None
    with held:
        # Another process may have been faster.
        record = finished(experiment, seed, results)
        if record is not None:
            return record
        snapshots = path.with_suffix(".npz")
        for file in (path, snapshots, checkpoint.path):
            files.delete_leftovers(file)
        shared = None
        if options.share_stage_1:
            shared = _shared(experiment, seed, results)
        if options.keep_state:
            continuation.take_up(checkpoint, experiment, seed, results)
        job = _Run(
            experiment, seed, checkpoint, options.data_dir, reporter, shared
        )
        record = job.execute(deadline, callbacks)
        if options.save_models:
            job.save_best(path.with_suffix(".keras"))
        job.write_snapshots(snapshots)
        records.write(path, record)
        if options.keep_state:
            continuation.keep_end(checkpoint, experiment, seed, results)
        checkpoint.delete()
        return record


def stage_1_file(experiment, seed, results):
    """Where the end of stage 1 is kept for runs that have the same."""
    return _shared(experiment, seed, results).path


def _shared(experiment, seed, results):
    """The end of stage 1, which belongs to all runs that have the same."""
    fingerprint = experiment.stage_1().fingerprint()
    name = f"stage1_seed{seed}_{fingerprint}.npz"
    return Checkpoint(Path(results) / ".checkpoints" / name, fingerprint, seed)


def finished(experiment, seed, results, keep_state=False):
    """The record of a run, if the run is finished.

    Whatever takes a finished run for made asks here. What a killed process
    left of the run's state is removed.

    Args:
        experiment: An `Experiment`.
        seed: Seed of the run.
        results: Folder of the records.
        keep_state: Whether to keep that state as the end of the run, where it
            is; see `run`.

    Returns:
        The record, or `None` without one.

    Raises:
        RecordError: if the file is not a sound record, or if it was made with
            other settings than the run would be.
        ValueError: if the state is to be kept of a run that cannot be
            extended.
    """
    if keep_state:
        _check_can_be_extended(experiment)
    path = path_of(experiment, seed, results)
    if not path.exists():
        return None
    record = records.read(path)
    settings = METHODS[experiment.method].settings()
    records.check_is_of(path, record, method_settings=settings)
    checkpoint = Checkpoint.of_run(experiment, seed, results)
    # The process that made the record removes the state itself, if it lives.
    with contextlib.suppress(filelock.Timeout):
        if checkpoint.path.exists():
            with checkpoint.lock().acquire(timeout=0):
                if keep_state:
                    continuation.keep_end(checkpoint, experiment, seed, results)
                checkpoint.delete()
    return record


def _check_backend(experiment):
    if experiment.backend != backend.name():
        raise ValueError(
            "The experiment is for another Keras backend than the one in use. "
            f"Received: backend={experiment.backend!r}, in use: "
            f"{backend.name()!r}. Set KERAS_BACKEND={experiment.backend} "
            "before keras is imported, or give the experiment backend="
            f"{backend.name()!r}."
        )


def _check_network(experiment, options):
    if METHODS[experiment.method].network:
        return
    for name in ("save_models", "tensorboard"):
        value = getattr(options, name)
        if value:
            raise ValueError(
                f"The method {experiment.method!r} trains no network. "
                f"Received: {name}={value!r}. Leave it out."
            )


def _check_can_be_extended(experiment):
    if not experiment.can_be_extended:
        raise ValueError(
            "Only GAR at the paper's rate, with a warm-up of a given length "
            "if any, takes the same epochs in a longer run. Received: "
            f"keep_state=True, {experiment.tied_by}. "
            "Leave keep_state out."
        )


def _tensorboard(folder, name):
    if folder is None:
        return []
    check_installed("tensorboard", f"tensorboard={str(folder)!r}")
    return [keras.callbacks.TensorBoard(str(Path(folder) / name))]


class _Run:
    """One run, from its setup to its record."""

    def __init__(
        self, experiment, seed, checkpoint, data_dir, reporter, shared=None
    ):
        self.setup = set_up(experiment, seed, data_dir)
        self.reporter = reporter
        self.state = RunState(
            self.setup.model,
            self.setup.augmentation,
            Snapshots(self.setup.data, seed, experiment.epochs),
            _described(self.setup),
            checkpoint,
            shared,
            reporter.say if reporter else _say_nothing,
        )

    def execute(self, deadline, callbacks):
        """Runs what is not done yet and returns the record."""
        if time.monotonic() >= deadline:
            raise OutOfTime
        setup, state = self.setup, self.state
        if not METHODS[setup.experiment.method].network:
            stage_2.propagate(setup, state)
            return self.record()
        state.restore()
        if not state.curve("regularization"):
            stage_1.run(setup, state, deadline, self.reporter)
        with state.warnings_shown():
            stage_2.run(setup, state, deadline, self.reporter, callbacks)
        return self.record()

    def record(self):
        """The record of the run, so far."""
        e, task = self.setup.experiment, self.setup.task
        return {
            "format": records.FORMAT,
            "experiment": asdict(e),
            "cell": e.cell,
            "fingerprint": e.fingerprint(),
            "seed": self.setup.seed,
            "labeled": task.kept[task.split.labeled].tolist(),
            **self.state.progress,
            "result": records.result_of(self.state.curve("regularization")),
        }

    def save_best(self, path):
        """Saves the model with the weights of the validation-chosen epoch.

        Not with an optimizer: it would be that of stage 1, where it was this
        process that made stage 1.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        uncompiled(self._best_model()).save(path)

    def write_snapshots(self, path):
        """Writes the logits kept, and the validation-chosen predictions."""
        if self.state.snapshots.logits:
            self.state.snapshots.write(path, self._best_model())

    def _best_model(self):
        self.setup.model.set_weights(self.state.best_weights)
        return self.setup.model


def _described(setup):
    """What a record says of a run beside its experiment and its curves."""
    return {
        # Taken now: the source may be edited while the run goes on.
        "environment": environment.describe(),
        "data": {
            "title": setup.data.title,
            "source": setup.data.source,
            "unlabeled": setup.unlabeled_source,
        },
        "split_fingerprint": setup.split.fingerprint(),
        "class_prior": setup.class_prior,
        "method_settings": METHODS[setup.experiment.method].settings(),
    }


def _say_nothing(text):
    pass
