"""One run, an experiment with a seed: prepared, trained, recorded."""

import math
import time
from dataclasses import replace

import filelock
import keras
import numpy as np

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
from gar_keras.methods import (
    GAR,
    VAT,
    Consistency,
    CrossEntropy,
    SafeGAR,
)
from gar_keras.metrics import lost_classes
from gar_keras.models import POLICIES, cnn6, cnn9, mlp
from gar_keras.training import check_stage_2, pretrain, regularize
from gar_keras.utils import files
from gar_keras.utils.warnings import shown_by
from reproduction import progress, records
from reproduction.methods import METHODS
from reproduction.methods.ablation import ablated
from reproduction.paths import path_of
from reproduction.recorder import Recorder, Stage2Recorder
from reproduction.state import (
    State,
    lock_of,
    path_of_stage_1,
    path_of_state,
    put_away,
)
from reproduction.task import labeled_of, learned_from, versions_of_test


def run(
    experiment,
    seed,
    results,
    *,
    data_dir=None,
    save_models=False,
    share_stage_1=False,
    reporter=None,
):
    """Runs an experiment with one seed and writes its record.

    A finished run is not run again. One that was killed goes on after its last
    finished epoch and ends with the numbers of an unbroken run.

    Args:
        experiment: An `Experiment`.
        seed: Decides the split, the initial weights, dropout and the batches.
        results: Folder of the records.
        data_dir, save_models, share_stage_1: As in
            `experiment_command.RunOptions`.
        reporter: A `progress.Reporter`, or `None`.

    Returns:
        The record, or `None` if another process is running this run.

    Raises:
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
        record = finished(*named, data_dir)
        if record is not None:
            return record
        for file in (path, path.with_suffix(".npz"), path_of_state(*named)):
            files.delete_leftovers(file)
        if METHODS[experiment.method].network:
            job = NetworkRun(*named, data_dir, reporter)
            job.train(path_of_stage_1(*named) if share_stage_1 else None)
            job.save_best(path, save_models)
        else:
            job = GraphRun(*named, data_dir, reporter)
            job.fit()
        record = job.record()
        # As the last: with it, the run is finished.
        records.write(path, record)
        put_away(*named)
        return record


def finished(experiment, seed, results, data_dir=None):
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
    put_away(experiment, seed, results)
    return record


class Run:
    """The data of a run, how far it has come, and its record."""

    def __init__(self, experiment, seed, results, data_dir=None, reporter=None):
        self.experiment, self.seed = experiment, seed
        self.reporter = reporter or progress.Reporter(
            "", progress.console(quiet=True)
        )
        learned = learned_from(experiment, seed, data_dir)
        self.task, self.unlabeled, self.described = learned
        self.reporter.begin(experiment, len(self.unlabeled))
        data, split = self.task.data, self.task.split
        self.x_labeled = data.x_train[split.labeled]
        held_out = split.validation
        # What the error is measured of, by its name.
        self.sets = {
            "val_error": (data.x_train[held_out], data.y_train[held_out]),
            "test_error": (data.x_test, data.y_test),
        }
        self.snapshot_images = records.kept_images(seed, len(data.x_test))
        self.state = State(
            experiment,
            seed,
            results,
            self.described,
            data.x_test[self.snapshot_images],
            self.reporter.say,
        )

    def record(self):
        """The record of the finished run."""
        e = self.experiment
        return {
            "format": records.FORMAT,
            "experiment": e.as_json(),
            "cell": e.cell,
            "fingerprint": e.fingerprint(),
            "seed": self.seed,
            "labeled": labeled_of(self.task),
            **self.state.progress,
            "result": records.result_of(self.state.curve("regularization")),
        }


class GraphRun(Run):
    """A run of a method without a network."""

    def fit(self):
        """Fits the method; the curve of stage 2 has one epoch."""
        method = METHODS[self.experiment.method].method()
        x, y = zip(*self.sets.values(), strict=True)
        start = time.perf_counter()
        predicted = method.fit_predict(
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


class NetworkRun(Run):
    """A run of both stages: what is trained, and its training."""

    def __init__(self, experiment, seed, results, data_dir=None, reporter=None):
        super().__init__(experiment, seed, results, data_dir, reporter)
        e, data = experiment, self.task.data
        # Measured from the end of stage 1 on.
        self.versions = versions_of_test(e, data, data_dir)
        # Of weights and batches.
        self.training_seed = seed
        if e.restart:
            rng = np.random.default_rng([seed, e.restart])
            self.training_seed = int(rng.integers(2**31))
        keras.utils.set_random_seed(self.training_seed)
        self.model = build_model(e, data.x_train.shape[1:], data.num_classes)
        self.method = _method(e, self.described["class_prior"])
        self.optimizers = _optimizers(e, self.method, len(self.unlabeled))
        self._check_stage_2()
        for optimizer in self.optimizers.values():
            optimizer.build(self.model.trainable_variables)

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

    def variables(self, stage):
        """The variables of a stage that the state has, lists by name.

        Those of a method in stage 2 are in the `Stage2` that trains it.
        """
        return {
            "model": self.model.variables,
            "optimizer": self.optimizers[stage].variables,
        } | ({"method": []} if stage == "pretraining" else {})

    def train(self, shared=None):
        """Trains what is left; `shared` is the path of the end of stage 1."""
        e, state = self.experiment, self.state
        state.load(self.model, self.variables)
        if shared is not None and not state.curve("pretraining"):
            state.load_stage_1(shared, self.model)
        if state.done("pretraining") < e.pretrain_epochs:
            self.pretrain()
            if shared is not None:
                state.save_stage_1(shared, self.model)
        if not state.curve("regularization"):
            curve = state.curve("pretraining")
            errors = {name: curve[name][-1] for name in self.sets}
            errors |= ErrorRate(**self.versions).measure(self.model)
            state.begin_stage_2(errors, self.model)
        if state.done("regularization") < e.epochs:
            with shown_by(state.warn):
                self.regularize()

    def pretrain(self):
        """Stage 1: the labelled images alone."""
        e = self.experiment
        per_report = largest_divisor(e.pretrain_epochs, 100)
        recorder = Recorder(
            self.state,
            self.variables,
            self.sets,
            self.reporter,
            per_report,
        )
        pretrain(
            self.model,
            self.x_labeled,
            self.task.y_labeled,
            epochs=e.pretrain_epochs,
            report_every=per_report,
            batch_size=e.batch_size,
            optimizer=self.optimizers["pretraining"],
            initial_epoch=self.state.done("pretraining"),
            seed=self.training_seed,
            callbacks=[recorder],
            verbose=0,
        )

    def regularize(self):
        """Stage 2: the method of the experiment."""
        e, done = self.experiment, self.state.done("regularization")
        method = self.method
        is_safe = isinstance(method[0], SafeGAR)
        if done > 0 and is_safe:
            term = replace(
                method[0],
                class_prior=self.state.progress["predicted_prior"],
                # The networks of the experiments end in a Dense, which has it.
                logit_factor=1.0,
                start_weights=self.state.start_weights or None,
            )
            method = [term, *method[1:]]
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
            optimizer=self.optimizers["regularization"],
            initial_epoch=done,
            seed=self.training_seed,
            callbacks=self._callbacks(),
            verbose=0,
        )
        if is_safe:
            errors = ErrorRate(**self.sets, **self.versions)
            self.state.end_stage_2(errors.measure(self.model), self.model)

    def _callbacks(self):
        """Those of stage 2, in the order in which they have to be called."""
        recorder = Stage2Recorder(
            self.state,
            self.variables,
            self.sets | self.versions,
            self.reporter,
        )
        callbacks = [recorder]
        if self.experiment.extensions.affinity_warmup > 0:
            callbacks.append(CoefficientSchedule(affinity=self._affinity))
        if any(term.can_collapse for term in self.method):
            callbacks.append(self._watch())
        return callbacks

    def _affinity(self, epoch):
        """The coefficient of the affinity while it rises from 0."""
        e = self.experiment
        done = (epoch + 1) / e.extensions.affinity_warmup
        return e.affinity * min(1.0, done)

    def _watch(self):
        """A `WarnOnCollapse` that knows the epochs before this process."""
        e, curve = self.experiment, self.state.curve("regularization")
        before, *earlier = (
            dict(zip(curve, row, strict=True))
            for row in zip(*curve.values(), strict=True)
        )
        return WarnOnCollapse(
            before["val_error"],
            earlier,
            e.labeled_per_batch + e.unlabeled_per_batch,
            num_validation=e.num_validation,
            advice=self._advice(),
        )

    def _advice(self):
        """The `Advice` in the words of the settings."""
        of_gar = self.experiment.method == "gar"
        labels = "the labels (supervised in extensions)"
        restores = isinstance(self.method[0], SafeGAR)
        uses_labels = any(term.uses_labels for term in self.method)
        return Advice(
            rate="a lower stage_2_rate",
            labels=None if uses_labels else labels,
            prior="as class_prior" if of_gar else None,
            kept=LOST_CLASSES_ARE_RESTORED if restores else "",
        )

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
        """The record, with the classes that stage 2 lost."""
        logits = self.state.snapshots
        lost = lost_classes(logits[0], logits[self.experiment.epochs])
        return {**super().record(), "lost_classes": lost}


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
    """The terms that stage 2 trains with."""
    entry, added = METHODS[e.method], e.extensions
    if not entry.set_by_experiment:
        first, *others = entry.method
        own = {name: getattr(e, name) for name in entry.of_experiment}
        return [replace(first, **own), *others]
    if (
        *(added.shift, added.affine, added.average, e.pretrain_shift),
        *(e.pretrain_affine, added.rate),
    ) != (0, 0, 0, 0, 0, "inverse-time"):
        raise ValueError(
            "shift, affine, average, rate, pretrain_shift and pretrain_affine "
            "are of earlier records alone. Leave them at their defaults."
        )
    options = {
        **e.coefficients,
        "frobenius_of": e.frobenius_of,
        "balance_of": e.balance_of,
        "class_prior": class_prior,
    }
    if e.ablation is not None:
        return ablated(e.ablation, **options)
    terms = [GAR(layer=GraphActivityRegularization(**options))]
    if added.supervised:
        terms.append(CrossEntropy(added.supervised))
    if added.consistency:
        terms.append(Consistency(added.consistency, 0.0, keeps_dropout=False))
    if added.vat:
        terms.append(VAT(added.vat, epsilon=added.vat_radius))
    return terms


def _optimizers(e, method, num_unlabeled):
    """The optimizers of both stages, by the stage."""
    images = e.images_per_epoch or num_unlabeled
    steps = e.epochs * math.ceil(images / e.unlabeled_per_batch)
    usual = stage_2_optimizer(method, steps)
    warmup_steps, clip = usual.warmup_steps, usual.global_clipnorm
    if METHODS[e.method].set_by_experiment:
        clip = e.extensions.global_clipnorm or None
        if e.extensions.warmup_steps is not None:
            warmup_steps = e.extensions.warmup_steps
    first = e.learning_rate, e.momentum, e.decay
    second = e.stage_2_rate or e.learning_rate, e.momentum, e.decay
    return {
        "pretraining": sgd(*first),
        "regularization": sgd(
            *second, warmup_steps=warmup_steps, global_clipnorm=clip
        ),
    }
