"""One run, an experiment with a seed: prepared, trained, recorded."""

import math
import time
from dataclasses import asdict, replace

import filelock
import keras
import numpy as np

from gar_keras.augmentation import random_augmentation
from gar_keras.callbacks import (
    LOST_CLASSES_ARE_RESTORED,
    Advice,
    CoefficientSchedule,
    ErrorRate,
    WarnOnCollapse,
)
from gar_keras.datasets import DataError
from gar_keras.engine import backend
from gar_keras.engine.data import stage_2_sampler
from gar_keras.engine.fit import largest_divisor
from gar_keras.engine.graphs import uncompiled
from gar_keras.engine.optimizers import sgd, stage_2_optimizer
from gar_keras.layers import (
    GraphActivityRegularization,
    PerImageStandardization,
)
from gar_keras.methods.gar import with_options
from gar_keras.methods.options import GAROptions
from gar_keras.methods.safe_gar import SafeGAR
from gar_keras.models import POLICIES, cnn6, cnn9, mlp
from gar_keras.regularizers import class_prior_of
from gar_keras.training import check_stage_2, pretrain, regularize
from gar_keras.utils import files
from gar_keras.utils.validation import check_class_prior
from gar_keras.utils.warnings import shown_by
from reproduction import progress, records
from reproduction.methods import METHODS
from reproduction.methods.ablation import ablated
from reproduction.paths import path_of
from reproduction.settings import PRIOR_OF_LABELS
from reproduction.state import (
    RestoreState,
    State,
    lock_of,
    path_of_end,
    path_of_stage_1,
    path_of_state,
    put_away,
)
from reproduction.task import (
    load_data,
    make_task,
    unlabeled_images,
    versions_of_test,
)

# Figure 2 of the paper shows these epochs of stage 2; the last one is added.
SNAPSHOT_EPOCHS = (0, 1, 10, 50, 100)


class OutOfTime(Exception):
    """The time limit came before the end of a run, which can be resumed."""


def run(
    experiment,
    seed,
    results,
    *,
    data_dir=None,
    save_models=False,
    share_stage_1=False,
    keep_state=False,
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
        data_dir, save_models, share_stage_1, keep_state: As in
            `command.RunOptions`.
        deadline: `time.monotonic()` at which the run must have stopped.
        reporter: A `progress.Reporter`, or `None`.

    Returns:
        The record, or `None` if another process is running this run.

    Raises:
        OutOfTime: if the deadline came first.
        ValueError: if the data do not allow the settings.
    """
    if experiment.backend != backend.name():
        raise ValueError(
            f"backend={experiment.backend!r} is not the Keras backend in use, "
            f"{backend.name()!r}. Set KERAS_BACKEND before keras is imported."
        )
    named = experiment, seed, results
    path = path_of(*named)
    try:
        held = lock_of(*named).acquire(timeout=0)
    except filelock.Timeout:
        return None
    with held:
        record = finished(*named, data_dir, keep_state)
        if record is not None:
            return record
        for file in (path, path.with_suffix(".npz"), path_of_state(*named)):
            files.delete_leftovers(file)
        if time.monotonic() >= deadline:
            raise OutOfTime
        job = Run(*named, data_dir, reporter, deadline)
        if METHODS[experiment.method].network:
            job.train_stages(
                shared=path_of_stage_1(*named) if share_stage_1 else None,
                end=path_of_end(*named) if keep_state else None,
            )
            job.save_best(path, save_models)
        else:
            job.propagate()
        record = job.record()
        # As the last: with it, the run is finished.
        records.write(path, record)
        put_away(*named, keep_state)
        return record


def finished(experiment, seed, results, data_dir=None, keep_state=False):
    """The record of a finished run; `None` of another one.

    It must be of the data, labels and hyper-parameters that the run would have;
    where the data are not at hand, this is printed.
    """
    path = path_of(experiment, seed, results)
    if not path.exists():
        return None
    record = records.read(path)
    try:
        task, _, expected = learned_from(experiment, seed, data_dir)
        expected["labeled"] = labeled_of(task)
        # The first records do not say where X_U is from.
        if "unlabeled" not in record["data"]:
            del expected["data"]["unlabeled"]
    except DataError as e:
        print(f"{path} is not compared with its data: {e}")
        expected = {"method_settings": METHODS[experiment.method].settings()}
    records.check_is_of(path, record, **expected)
    # What a process left that was killed behind the record.
    put_away(experiment, seed, results, keep_state)
    return record


class Run:
    """What a run is made of, and its parts from the data to the record."""

    def __init__(
        self,
        experiment,
        seed,
        results,
        data_dir=None,
        reporter=None,
        deadline=math.inf,
    ):
        e = self.experiment = experiment
        self.seed, self.deadline = seed, deadline
        self.reporter = reporter or progress.Reporter(
            "", progress.console(quiet=True)
        )
        self.task, self.unlabeled, described = learned_from(e, seed, data_dir)
        data, split = self.task.data, self.task.split
        self.x_labeled = data.x_train[split.labeled]
        held_out = split.validation
        # What the error is measured of, by its name; further versions of the
        # test images from the end of stage 1 on.
        self.sets = {
            "val_error": (data.x_train[held_out], data.y_train[held_out]),
            "test_error": (data.x_test, data.y_test),
        }
        self.versions = versions_of_test(e, data, data_dir)
        self.snapshot_epochs = {*SNAPSHOT_EPOCHS, e.epochs}
        self.snapshot_images = records.kept_images(seed, len(data.x_test))
        # Of weights and batches.
        self.training_seed = seed
        if e.restart:
            rng = np.random.default_rng([seed, e.restart])
            self.training_seed = int(rng.integers(2**31))
        keras.utils.set_random_seed(self.training_seed)
        self.model = build_model(e, data.x_train.shape[1:], data.num_classes)
        self.method = _method(e, described["class_prior"])
        self.augmentation = random_augmentation(
            e.pretrain_shift, e.pretrain_affine, self.training_seed
        )
        self.optimizers = _optimizers(e, self.method, len(self.unlabeled))
        if METHODS[e.method].network:
            self._check_stage_2()
            for optimizer in self.optimizers.values():
                optimizer.build(self.model.trainable_variables)
        self.state = State(self, results, described, self.reporter.say)

    def _check_stage_2(self):
        """Refuses now what stage 2 would refuse after stage 1."""
        e = self.experiment
        sampler = stage_2_sampler(
            self.x_labeled,
            self.unlabeled,
            e.labeled_per_batch,
            e.unlabeled_per_batch,
            e.images_per_epoch,
            self.training_seed,
        )
        check_stage_2(self.method, self.model, self.unlabeled, sampler)

    def train_stages(self, shared=None, end=None):
        """Trains what is left; `shared` and `end` are paths of such states."""
        state = self.state
        state.load()
        if end is not None and not state.curve("pretraining"):
            state.load(end)
        if shared is not None and not state.curve("pretraining"):
            state.load_stage_1(shared)
        if state.done("pretraining") < self.experiment.pretrain_epochs:
            self.pretrain()
            if shared is not None:
                state.save_stage_1(shared)
        if not state.curve("regularization"):
            self.begin_stage_2()
        if state.done("regularization") < self.experiment.epochs:
            with shown_by(state.warn):
                self.train()

    def pretrain(self):
        """Stage 1: the labelled images alone."""
        e, stage = self.experiment, "pretraining"
        per_report = largest_divisor(e.pretrain_epochs, 100)
        pretrain(
            self.model,
            self.x_labeled,
            self.task.y_labeled,
            epochs=e.pretrain_epochs,
            report_every=per_report,
            batch_size=e.batch_size,
            optimizer=self.optimizers[stage],
            initial_epoch=self.state.done(stage),
            augmentation=self.augmentation,
            seed=self.training_seed,
            callbacks=[_Recorder(self, stage, self.sets, per_report)],
            verbose=0,
        )

    def begin_stage_2(self):
        """Takes the last epoch of stage 1 as epoch 0 of stage 2."""
        curve = self.state.curve("pretraining")
        errors = {name: curve[name][-1] for name in self.sets}
        errors |= ErrorRate(**self.versions).measure(self.model)
        self.state.progress["regularization"]["curve"] = {
            "epoch": [0],
            **{name: [error] for name, error in errors.items()},
        }
        self.state.keep(self.model)

    def train(self):
        """Stage 2: the method of the experiment."""
        e, stage = self.experiment, "regularization"
        callbacks = [_Recorder(self, stage, {**self.sets, **self.versions})]
        epochs = e.extensions.affinity_warmup
        if epochs:
            rise = lambda i: e.affinity * min(1.0, (i + 1) / epochs)  # noqa: E731
            callbacks.append(CoefficientSchedule(affinity=rise))
        if self.method.warns_of_collapse:
            # It knows the epochs before this process, too.
            curve = self.state.curve(stage)
            before, *earlier = (
                dict(zip(curve, row, strict=True))
                for row in zip(*curve.values(), strict=True)
            )
            callbacks.append(
                WarnOnCollapse(
                    before["val_error"],
                    earlier,
                    e.labeled_per_batch + e.unlabeled_per_batch,
                    num_validation=e.num_validation,
                    advice=self._advice(),
                )
            )
        if self.state.method is not None:
            saved = self.state.method, self.state.source
            callbacks.insert(0, RestoreState(*saved))
        done, method = self.state.done(stage), self.method
        if done and isinstance(method, SafeGAR):
            prior = self.state.progress["predicted_prior"]
            # The networks of the experiments end in a Dense, which has it.
            method = replace(method, class_prior=prior, logit_factor=1.0)
        regularize(
            self.model,
            self.x_labeled,
            self.unlabeled,
            y_labeled=self.task.y_labeled,
            method=method,
            epochs=e.epochs,
            labeled_per_batch=e.labeled_per_batch,
            unlabeled_per_batch=e.unlabeled_per_batch,
            images_per_epoch=e.images_per_epoch,
            optimizer=self.optimizers[stage],
            initial_epoch=done,
            seed=self.training_seed,
            callbacks=callbacks,
            verbose=0,
        )
        if isinstance(method, SafeGAR):
            # It may have taken the training back.
            errors = ErrorRate(**self.sets, **self.versions)
            for name, error in errors.measure(self.model).items():
                self.state.curve(stage)[name][-1] = error

    def _advice(self):
        """The `Advice` in the words of the settings."""
        of_gar = self.experiment.method == "gar"
        labels = "the labels (supervised in extensions)"
        restores = self.method.restores_lost_classes
        return Advice(
            rate="a lower stage_2_rate",
            labels=None if self.method.learns_labels else labels,
            prior="as class_prior" if of_gar else None,
            kept=LOST_CLASSES_ARE_RESTORED if restores else "",
        )

    def propagate(self):
        """A method without a network: its curve has one epoch."""
        x, y = zip(*self.sets.values(), strict=True)
        start = time.perf_counter()
        predicted = self.method.fit_predict(
            self.x_labeled,
            self.task.y_labeled,
            self.unlabeled,
            np.concatenate(x),
            seed=self.seed,
        )
        seconds = time.perf_counter() - start
        wrong = np.split(predicted != np.concatenate(y), [len(y[0])])
        errors = {
            name: [None, float(part.mean())]
            for name, part in zip(self.sets, wrong, strict=True)
        }
        times = {"seconds": [None, round(seconds, 3)]}
        self.state.progress["regularization"] = {
            "seconds": seconds,
            "curve": {"epoch": [0, 1], **errors, **times},
        }

    def save_best(self, path, save_models):
        """Saves the snapshots, and the model of the validation-chosen epoch."""
        snapshots = self.state.snapshots.items()
        arrays = {
            "owner": [self.experiment.fingerprint(), str(self.seed)],
            "indices": self.snapshot_images,
            "labels": self.task.data.y_test[self.snapshot_images],
            **{f"epoch_{epoch}": logits for epoch, logits in snapshots},
        }
        files.write_atomically(
            path.with_suffix(".npz"),
            lambda file: np.savez_compressed(file, **arrays),
            mode="wb",
        )
        if save_models:
            self.model.set_weights(self.state.best_weights)
            # Without an optimizer: that of a resumed run is another one.
            uncompiled(self.model).save(path.with_suffix(".keras"))

    def record(self):
        """The record of the finished run."""
        e = self.experiment
        return {
            "format": records.FORMAT,
            "experiment": asdict(e),
            "cell": e.cell,
            "fingerprint": e.fingerprint(),
            "seed": self.seed,
            "labeled": labeled_of(self.task),
            **self.state.progress,
            "result": records.result_of(self.state.curve("regularization")),
        }


class _Recorder(keras.callbacks.Callback):
    """Measures, notes, saves and reports each epoch of a stage."""

    def __init__(self, run, stage, sets, epochs_per_report=1):
        super().__init__()
        self.run = run
        self.stage = stage
        self.epochs_per_report = epochs_per_report
        self.errors = ErrorRate(**sets)
        # What comes before the first epoch, such as a graph, counts too.
        self.start = time.perf_counter()

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch

    def on_train_batch_end(self, batch, logs=None):
        if time.monotonic() >= self.run.deadline:
            raise OutOfTime
        share = (batch + 1) / self.params["steps"]
        done = (self.epoch + share) * self.epochs_per_report
        self.run.reporter.step(self.stage, done, self._total(), logs)

    def on_epoch_end(self, epoch, logs=None):
        state = self.run.state
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
        state.progress[self.stage]["seconds"] += seconds
        state.note(self.stage, row)
        if self.stage == "regularization":
            method = getattr(self.model, "method", None)
            if isinstance(method, SafeGAR):
                prior = method.class_prior
                state.progress["predicted_prior"] = prior and list(prior)
            state.keep(self.model.evaluated)
        state.save(self.stage, self.model)
        self.run.reporter.epoch(self.stage, row, self._total())
        self.start = time.perf_counter()

    def _total(self):
        """Epochs of the stage."""
        return self.params["epochs"] * self.epochs_per_report


def learned_from(e, seed, data_dir=None):
    """The `Task` of a run, X_U, and what a record says of both."""
    data = load_data(e, data_dir)
    task = make_task(e.world, data, e.num_labeled, e.num_validation, seed)
    data = task.data
    unlabeled, source = unlabeled_images(e, task, data_dir)
    prior = e.class_prior
    if prior == PRIOR_OF_LABELS:
        # A class without a label would have no share at all.
        prior = class_prior_of(task.y_labeled, data.num_classes, smoothing=1)
    if prior is not None:
        prior = list(check_class_prior(prior, data.num_classes))
    described = {
        "data": {
            "title": data.title,
            "source": data.source,
            "unlabeled": source,
        },
        "split_fingerprint": task.split.fingerprint(),
        "class_prior": prior,
        "method_settings": METHODS[e.method].settings(),
    }
    return task, unlabeled, described


def labeled_of(task):
    """Indices of X_L in the data set as loaded."""
    return task.kept[task.split.labeled].tolist()


def build_model(experiment, input_shape, num_classes):
    """The network of an experiment, with new weights."""
    e = experiment
    preprocessing = {
        "rescale": lambda: keras.layers.Rescaling(1 / 255, dtype="float32"),
        "standardize": lambda: PerImageStandardization(dtype="float32"),
        "none": lambda: None,
    }[e.preprocessing]
    filters = {} if e.filters is None else {"filters": e.filters}
    return {"cnn6": cnn6, "cnn9": cnn9, "mlp": mlp}[e.network](
        input_shape,
        num_classes,
        preprocessing=preprocessing(),
        dtype=POLICIES[e.precision],
        **filters,
    )


def _method(e, class_prior):
    """What stage 2 trains with."""
    entry = METHODS[e.method]
    if not entry.set_by_experiment:
        return entry.method()
    options = {
        **e.coefficients,
        "frobenius_of": e.frobenius_of,
        "balance_of": e.balance_of,
        "class_prior": class_prior,
    }
    if e.ablation is not None:
        return ablated(e.ablation, **options)
    return with_options(e.extensions, GraphActivityRegularization(**options))


def _optimizers(e, method, num_unlabeled):
    """The optimizers of both stages, by the stage."""
    options = method if isinstance(method, GAROptions) else e.extensions
    images = e.images_per_epoch or num_unlabeled
    steps = e.epochs * math.ceil(images / e.unlabeled_per_batch)
    rate = e.stage_2_rate or e.learning_rate
    return {
        "pretraining": sgd(e.learning_rate, e.momentum, e.decay),
        "regularization": stage_2_optimizer(
            options, steps, rate, e.momentum, e.decay
        ),
    }
