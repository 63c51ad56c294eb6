"""One run: an experiment with a seed, from data to record."""

import contextlib
from dataclasses import asdict
import math
from pathlib import Path
import time

import filelock
import keras
import numpy as np

from gar_keras import datasets
from gar_keras import methods
from gar_keras.augmentation import random_moves
from gar_keras.callbacks import CoefficientSchedule
from gar_keras.callbacks import ErrorRate
from gar_keras.collapse import WarnOnCollapse
from gar_keras.engine import backend
from gar_keras.engine.fit import largest_divisor
from gar_keras.experiments import continuation
from gar_keras.experiments import environment
from gar_keras.experiments import records
from gar_keras.experiments.checkpoint import Checkpoint
from gar_keras.experiments.checkpoint import assign
from gar_keras.experiments.data import make_task
from gar_keras.experiments.data import unlabeled_images
from gar_keras.experiments.network import build_model
from gar_keras.experiments.recorder import Deadline
from gar_keras.experiments.recorder import Keeper
from gar_keras.experiments.recorder import OutOfTime
from gar_keras.experiments.records import Progress
from gar_keras.experiments.settings import GRAPH_RIVALS
from gar_keras.experiments.settings import PRIOR_OF_LABELS
from gar_keras.experiments.snapshots import Snapshots
from gar_keras.layers import GraphActivityRegularization
from gar_keras.methods.gar import ExtendedGAR
from gar_keras.models import uncompiled
from gar_keras.optimizers import SGD
from gar_keras.regularizers import class_prior_of
from gar_keras.training import plan_stage_2
from gar_keras.training import pretrain
from gar_keras.training import regularize
from gar_keras.training import sgd
from gar_keras.utils import files
from gar_keras.utils.optional import check_installed
from gar_keras.utils.validation import check_class_prior
from gar_keras.utils.warnings import shown_by

STAGES = ("pretraining", "regularization")
# What a saved state must have in common with the run that takes it up.
MUST_AGREE = {
    "split_fingerprint": "data",
    "data": "data",
    "method_settings": "hyper-parameters",
}


def run(
    experiment,
    seed,
    results,
    *,
    deadline=math.inf,
    reporter=None,
    data_dir=None,
    save_models=False,
    tensorboard=None,
    share_stage_1=False,
    keep_state=False,
):
    """Runs an experiment with one seed and writes its record.

    A finished run is not run again. An unfinished one, whether it was killed
    or out of time, goes on after its last finished epoch and ends with the
    numbers of an unbroken run.

    Args:
        experiment: An `Experiment`.
        seed: Decides the split, the initial weights, dropout and the batches.
        results: Folder of the records.
        deadline: `time.monotonic()` at which the run must have stopped.
        reporter: A `progress.Reporter`, or `None`.
        data_dir: Folder of the data files.
        save_models: Whether to save the model of the validation-chosen epoch
            beside the record, as a `.keras` file.
        tensorboard: Folder for TensorBoard logs of stage 2, or `None`.
        share_stage_1: Whether to take up the end of stage 1 from an earlier
            run that had the same stage 1, and to keep it for later ones, in
            `stage_1_file`.
        keep_state: Whether to go on from the kept end of the same run with
            fewer epochs, and to keep the end for longer ones; see
            `experiments.extending`.

    Returns:
        The record, or `None` if another process is running this run.

    Raises:
        OutOfTime: if the deadline came first.
        ValueError: if the experiment is for another backend than the one in
            use, if `tensorboard` is given but not installed, if a model or
            logs are wanted of a method that trains no network, or if the state
            is to be kept of a run that cannot be extended.
    """
    record = finished(experiment, seed, results, keep_state=keep_state)
    if record is not None:
        return record
    path = Path(results) / experiment.file_name(seed)
    _check_backend(experiment)
    _check_network(experiment, save_models, tensorboard)
    callbacks = _tensorboard(tensorboard, path.stem)
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
        shared = _shared(experiment, seed, results) if share_stage_1 else None
        if keep_state:
            continuation.take_up(checkpoint, experiment, seed, results)
        job = _Run(experiment, seed, checkpoint, data_dir, reporter, shared)
        record = job.execute(deadline, callbacks)
        if save_models:
            job.save_best(path.with_suffix(".keras"))
        if job.snapshots.logits:
            job.write_snapshots(snapshots)
        records.write(path, record)
        if keep_state:
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


def finished(experiment, seed, results, *, keep_state=False):
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
        RecordError: if the file is no sound record, or if it was made with
            other settings than the run would be.
        ValueError: if the state is to be kept of a run that cannot be
            extended.
    """
    if keep_state:
        _check_can_be_extended(experiment)
    path = Path(results) / experiment.file_name(seed)
    if not path.exists():
        return None
    record = records.read(path)
    _check_method_settings(path, record, experiment)
    checkpoint = Checkpoint.of_run(experiment, seed, results)
    # The process that made the record removes the state itself, if it lives.
    with contextlib.suppress(filelock.Timeout):
        if checkpoint.path.exists():
            with checkpoint.lock().acquire(timeout=0):
                if keep_state:
                    continuation.keep_end(checkpoint, experiment, seed, results)
                checkpoint.delete()
    return record


def _check_method_settings(path, record, experiment):
    made_with = record.get("method_settings", {})
    settings = _method_settings(experiment)
    if made_with != settings:
        raise records.RecordError(
            f"{path} was made with other hyper-parameters of the method "
            f"{experiment.method!r}: {made_with}, where this version has "
            f"{settings}. Move it out of the results folder to run it again."
        )


def _method_settings(experiment):
    """The hyper-parameters of a rival, as JSON has them."""
    if experiment.method == "gar":
        return {}
    settings = asdict(methods.METHODS[experiment.method]())
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in settings.items()
    }


def _check_backend(experiment):
    if experiment.backend != backend.name():
        raise ValueError(
            "The experiment is for another Keras backend than the one in use. "
            f"Received: backend={experiment.backend!r}, in use: "
            f"{backend.name()!r}. Set KERAS_BACKEND={experiment.backend} "
            "before keras is imported, or give the experiment backend="
            f"{backend.name()!r}."
        )


def _check_network(experiment, save_models, tensorboard):
    if experiment.method not in GRAPH_RIVALS:
        return
    wanted = {"save_models": save_models, "tensorboard": tensorboard}
    for name, value in wanted.items():
        if value:
            raise ValueError(
                f"The method {experiment.method!r} trains no network. "
                f"Received: {name}={value!r}. Leave it out."
            )


def _check_can_be_extended(experiment):
    if not experiment.can_be_extended:
        raise ValueError(
            "Only GAR at the paper's rate takes the same epochs in a longer "
            f"run. Received: keep_state=True, method={experiment.method!r}, "
            f"rate={experiment.extensions.rate!r}. Leave keep_state out."
        )


def _tensorboard(folder, name):
    if folder is None:
        return []
    check_installed("tensorboard", f"tensorboard={str(folder)!r}")
    return [keras.callbacks.TensorBoard(str(Path(folder) / name))]


class _Run:
    """The state of one run, on its way from epoch to epoch."""

    def __init__(
        self, experiment, seed, checkpoint, data_dir, reporter, shared=None
    ):
        self.experiment = experiment
        self.seed = seed
        self.checkpoint = checkpoint
        self.shared = shared
        self.reporter = reporter
        self.task = make_task(
            experiment.world,
            datasets.load(experiment.dataset, data_dir),
            experiment.num_labeled,
            experiment.num_validation,
            seed,
        )
        self.data = self.task.data
        self.split = self.task.split
        self.unlabeled, unlabeled_source = unlabeled_images(
            experiment.unlabeled, self.task, data_dir
        )
        self.class_prior = self._class_prior()
        self.training_seed = _restart_seed(seed, experiment.restart)
        keras.utils.set_random_seed(self.training_seed)
        self.model = build_model(
            experiment, self.data.x_train.shape[1:], self.data.num_classes
        )
        self.errors = self._measured_errors()
        self.method = self._choose_method()
        self._check_stage_2()
        self.moves = random_moves(
            experiment.pretrain_shift,
            experiment.pretrain_affine,
            self.training_seed,
        )
        self.best_weights = []
        self.snapshots = Snapshots(self.data, seed, experiment.epochs)
        self.method_state = None
        self.progress = self._no_progress(unlabeled_source)

    def _no_progress(self, unlabeled_source):
        """What the record will hold of the training, before it begins."""
        return {
            **{stage: {"seconds": 0.0, "curve": {}} for stage in STAGES},
            "snapshot_epochs": self.snapshots.epochs,
            # Taken now: the source may be edited while the run goes on.
            "environment": environment.describe(),
            "resumed_in": [],
            "data": {
                "title": self.data.title,
                "source": self.data.source,
                "unlabeled": unlabeled_source,
            },
            "split_fingerprint": self.split.fingerprint(),
            "class_prior": self.class_prior,
            "method_settings": _method_settings(self.experiment),
            "evaluation_seconds": 0.0,
            "warnings": [],
        }

    def _check_stage_2(self):
        """Refuses now what stage 2 would refuse after stage 1."""
        e = self.experiment
        if e.method in GRAPH_RIVALS:
            return
        plan_stage_2(
            self._x_labeled(),
            self.unlabeled,
            e.labeled_per_batch,
            e.unlabeled_per_batch,
            e.images_per_epoch,
            self.training_seed,
        )
        if self.method is not None:
            self.method.check(self.model, self.unlabeled)

    def _measured_errors(self):
        x, y = self.data.x_train, self.data.y_train
        held_out = self.split.validation
        return ErrorRate(
            val_error=(x[held_out], y[held_out]),
            test_error=(self.data.x_test, self.data.y_test),
        )

    def _class_prior(self):
        prior, n = self.experiment.class_prior, self.data.num_classes
        if prior is None:
            return None
        if prior == PRIOR_OF_LABELS:
            # A class without a label would have no share at all.
            prior = class_prior_of(self.task.y_labeled, n, smoothing=1)
        # Before stage 1, not after it.
        return list(check_class_prior(prior, n))

    def _choose_method(self):
        """What replaces plain GAR in stage 2, if anything does."""
        e = self.experiment
        if e.method != "gar":
            return methods.METHODS[e.method]()
        if not e.extensions.has_additions:
            return None
        return ExtendedGAR(self._layer(), **e.extensions.additions)

    def _layer(self):
        e = self.experiment
        return GraphActivityRegularization(
            **e.coefficients,
            frobenius_of=e.frobenius_of,
            class_prior=self.class_prior,
        )

    def execute(self, deadline, callbacks):
        """Runs what is not done yet and returns the record."""
        if time.monotonic() >= deadline:
            raise OutOfTime
        if self.experiment.method in GRAPH_RIVALS:
            self._propagate()
            return self._record()
        moments = self._restore()
        if not self.progress["regularization"]["curve"]:
            self._pretrain(moments, deadline)
            moments = None
        with self._warnings_shown():
            self._regularize(moments, deadline, callbacks)
        return self._record()

    def _restore(self):
        """Takes up the saved state; returns the optimizer's variables."""
        saved = self.checkpoint.load()
        if saved is None and self._take_stage_1():
            return None
        if saved is None:
            if self.checkpoint.path.exists():
                self._say("the saved state is damaged; starts afresh")
            return None
        with self.checkpoint.taken_up():
            return self._go_on(*saved)

    def _go_on(self, progress, variables):
        Progress.model_validate(progress)
        progress = {**self.progress, **progress}
        for name, what in MUST_AGREE.items():
            if progress[name] != self.progress[name]:
                self._say(f"the saved state is of other {what}; starts afresh")
                return None
        so_far = [progress["environment"], *progress["resumed_in"]]
        if so_far[-1] != self.progress["environment"]:
            progress["resumed_in"].append(self.progress["environment"])
        self.progress = progress
        stage = STAGES[bool(progress["regularization"]["curve"])]
        done = _last(progress[stage]["curve"]["epoch"])
        self._say(f"goes on after epoch {done} of {stage}")
        assign(self.model.variables, variables["model"])
        self.best_weights = self._best_of(progress, variables)
        kept = variables.get("snapshots", [])
        self.snapshots.restore(progress["snapshot_epochs"], kept)
        progress["snapshot_epochs"] = self.snapshots.epochs
        if progress["regularization"]["curve"]:
            self.method_state = variables.get("method", [])
        else:
            assign(self.moves_state(), variables.get("method", []))
        return variables["optimizer"]

    def _best_of(self, progress, variables):
        """The weights of the epoch chosen so far, if there is one."""
        best = variables.get("best", [])
        if len(progress["regularization"]["curve"].get("epoch", ())) > 1:
            shapes = [np.shape(weights) for weights in best]
            expected = [w.shape for w in self.model.get_weights()]
            if shapes != expected:
                raise ValueError("its best weights are not the network's")
        return best

    def _take_stage_1(self):
        """Takes up the end of another run's stage 1, if there is one."""
        saved = self.shared and self.shared.load()
        if not saved:
            return False
        with self.shared.taken_up():
            return self._begin_with(*saved)

    def _begin_with(self, progress, variables):
        Progress.model_validate(progress)
        name = "split_fingerprint"
        if progress[name] != self.progress[name]:
            return False
        made_in = progress["environment"]
        self.progress["pretraining"] = {
            **progress["pretraining"], "environment": made_in
        }  # fmt: skip
        assign(self.model.variables, variables["model"])
        self._say("takes stage 1 from an earlier run")
        return True

    def _keep_stage_1(self):
        if self.shared is not None and self.shared.load() is None:
            self.shared.save(self.progress, model=self.model.variables)

    def _warnings_shown(self):
        def show(text):
            self.progress["warnings"].append(text)
            self._say(f"warning: {text}")

        return shown_by(show)

    def _say(self, text):
        if self.reporter is not None:
            self.reporter.say(text)

    def moves_state(self):
        """The variables that the moves of stage 1 are drawn with."""
        return [v for layer in self.moves for v in layer.variables]

    def save_best(self, path):
        """Saves the model with the weights of the validation-chosen epoch.

        Not with an optimizer: it would be that of stage 1, where it was this
        process that made stage 1.
        """
        self.model.set_weights(self.best_weights)
        uncompiled(self.model).save(path)

    def write_snapshots(self, path):
        """Writes the logits kept, and the validation-chosen predictions."""
        self.model.set_weights(self.best_weights)
        self.snapshots.write(path, self.model)

    def _pretrain(self, moments, deadline):
        e = self.experiment
        done = _last(self.progress["pretraining"]["curve"].get("epoch"))
        if done < e.pretrain_epochs:
            optimizer = self._optimizer(
                sgd(e.learning_rate, e.momentum, e.decay), moments
            )
            passes = self._passes()
            pretrain(
                self.model,
                self._x_labeled(),
                self._y_labeled(),
                epochs=e.pretrain_epochs,
                report_every=passes,
                batch_size=e.batch_size,
                optimizer=optimizer,
                initial_epoch=done,
                moves=self.moves,
                seed=self.training_seed,
                callbacks=self._keepers("pretraining", passes, deadline),
                verbose=0,
            )
            self._stop_if_unfinished("pretraining", e.pretrain_epochs)
        self._keep_stage_1()
        # Epoch 0 of stage 2 is the end of stage 1.
        curve = self.progress["pretraining"]["curve"]
        self.progress["regularization"]["curve"] = {
            "epoch": [0],
            "val_error": curve["val_error"][-1:],
            "test_error": curve["test_error"][-1:],
        }
        self.snapshots.take(0, self.model)

    def _regularize(self, moments, deadline, callbacks):
        e = self.experiment
        curve = self.progress["regularization"]["curve"]
        done = _last(curve["epoch"])
        if done == e.epochs:
            return
        # Those of the epochs that are done come again.
        self.progress["warnings"] = []
        options = {
            "epochs": e.epochs,
            "labeled_per_batch": e.labeled_per_batch,
            "unlabeled_per_batch": e.unlabeled_per_batch,
            "images_per_epoch": e.images_per_epoch,
            "optimizer": self._optimizer(self._stage_2_sgd(), moments),
            "initial_epoch": done,
            "seed": self.training_seed,
            "verbose": 0,
        }
        keepers = self._keepers("regularization", 1, deadline)
        keepers += self._warm_up()
        if e.method == "gar":
            before, *earlier = _rows(curve)
            batch_size = e.labeled_per_batch + e.unlabeled_per_batch
            alarm = WarnOnCollapse(before["val_error"], earlier, batch_size)
            keepers.append(alarm)
        if self.method is None:
            regularize(
                self.model,
                self._x_labeled(),
                self.unlabeled,
                layer=self._layer(),
                callbacks=[*keepers, *callbacks],
                **options,
            )
        else:
            self.method.train(
                self.model,
                self._x_labeled(),
                self._y_labeled(),
                self.unlabeled,
                state=self.method_state,
                callbacks=[*keepers, *callbacks],
                **options,
            )
        self._stop_if_unfinished("regularization", e.epochs)

    def _propagate(self):
        """Runs a method without a network: its curve has one epoch."""
        x, y = zip(*self.errors.sets.values(), strict=True)
        start = time.perf_counter()
        predicted = self.method.fit_predict(
            self._x_labeled(),
            self._y_labeled(),
            self.unlabeled,
            np.concatenate(x),
            seed=self.seed,
        )
        seconds = time.perf_counter() - start
        wrong = np.split(predicted != np.concatenate(y), [len(y[0])])
        errors = {
            name: [None, float(part.mean())]
            for name, part in zip(self.errors.sets, wrong, strict=True)
        }
        times = {"seconds": [None, round(seconds, 3)]}
        self.progress["regularization"] = {
            "seconds": seconds,
            "curve": {"epoch": [0, 1], **errors, **times},
        }

    def _keepers(self, stage, passes, deadline):
        return [Keeper(self, stage, passes), Deadline(deadline)]

    def _warm_up(self):
        e = self.experiment
        epochs = e.extensions.affinity_warmup
        if not epochs:
            return []
        return [
            CoefficientSchedule(
                affinity=lambda i: e.affinity * min(1.0, (i + 1) / epochs)
            )
        ]

    def _stage_2_sgd(self):
        e = self.experiment
        first = e.stage_2_rate or e.learning_rate
        if e.extensions.rate != "cosine":
            return sgd(first, e.momentum, e.decay)
        in_epoch = e.images_per_epoch or len(self.unlabeled)
        steps = -(-in_epoch // e.unlabeled_per_batch)
        rate = keras.optimizers.schedules.CosineDecay(
            first, decay_steps=e.epochs * steps
        )
        return SGD(rate, momentum=e.momentum, nesterov=True)

    def _optimizer(self, optimizer, moments):
        """The optimizer, with the moments that it had when it was saved."""
        optimizer.build(self.model.trainable_variables)
        if moments is not None:
            with self.checkpoint.taken_up():
                assign(optimizer.variables, moments)
        return optimizer

    def _passes(self):
        return largest_divisor(self.experiment.pretrain_epochs, 100)

    def _x_labeled(self):
        return self.data.x_train[self.split.labeled]

    def _y_labeled(self):
        return self.task.y_labeled

    def _stop_if_unfinished(self, stage, epochs):
        if _last(self.progress[stage]["curve"].get("epoch")) < epochs:
            raise OutOfTime

    def _record(self):
        curve = self.progress["regularization"]["curve"]
        return {
            "format": records.FORMAT,
            "experiment": asdict(self.experiment),
            "cell": self.experiment.cell,
            "fingerprint": self.experiment.fingerprint(),
            "seed": self.seed,
            "labeled": self.task.kept[self.split.labeled].tolist(),
            **self.progress,
            "result": records.result_of(curve),
        }


def _restart_seed(seed, restart):
    """Seed of weights and batches; the seed itself in the first run."""
    if not restart:
        return seed
    return int(np.random.default_rng([seed, restart]).integers(2**31))


def _rows(curve):
    """The epochs of a curve, each as a dict."""
    return [
        dict(zip(curve, row, strict=True))
        for row in zip(*curve.values(), strict=True)
    ]


def _last(values):
    return values[-1] if values else 0
