"""One run, an experiment with a seed: prepared, trained, recorded."""

import math
import time
from dataclasses import replace

import filelock
import keras
import numpy as np

from gar_keras.augmentation import RandomAffine
from gar_keras.callbacks import (
    LOST_CLASSES_ARE_RESTORED,
    Advice,
    ErrorRate,
    WarnOnCollapse,
)
from gar_keras.datasets import DataError
from gar_keras.engine import backend
from gar_keras.engine.data import stage_2_sampler
from gar_keras.engine.fit import largest_divisor
from gar_keras.engine.graphs import uncompiled
from gar_keras.engine.optimizers import (
    LARGEST_WARMUP,
    LEARNING_RATE,
    WARMUP_STEPS,
    sgd,
)
from gar_keras.layers import PerImageStandardization
from gar_keras.methods.safe_gar import SafeGAR
from gar_keras.models import POLICIES, cnn6, cnn9, mlp
from gar_keras.training import check_stage_2, pretrain, regularize
from gar_keras.utils import files
from gar_keras.utils.warnings import shown_by
from reproduction import progress, records
from reproduction.methods.terms import for_library
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
        if experiment.trains_network:
            job = NetworkRun(*named, data_dir, reporter)
            job.train(path_of_stage_1(*named) if share_stage_1 else None)
            job.save_best(path, save_models)
        else:
            job = GraphRun(*named, data_dir, reporter)
            job.fit()
        record = job.record(path)
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
        records.check_is_of(path, record, **expected)
    except DataError as e:
        print(f"{path} is not compared with its data: {e}")
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
        self.state = State(
            experiment,
            seed,
            results,
            self.described,
            data.x_test,
            self.reporter.say,
        )

    def record(self, path):
        """The record of the finished run, for a path."""
        e = self.experiment
        return {
            "format": records.FORMAT,
            "path": "/".join(path.absolute().parts[-3:]),
            "fingerprint": e.fingerprint(),
            "experiment": e.as_json(),
            "seed": self.seed,
            "labeled": labeled_of(self.task),
            **self.state.progress,
            "lost_classes": None,
            "dead_outputs": None,
            "balanced_errors": None,
        }


class GraphRun(Run):
    """A run of a method without a network."""

    def fit(self):
        """Fits the method; the curve of stage 2 has one epoch."""
        (method,) = self.experiment.method
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
        self.method = for_library(e.method, self.described["class_prior"])
        self.optimizers = _optimizers(e, len(self.unlabeled))
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
        }

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
            optimizer=self.optimizers["pretraining"],
            initial_epoch=self.state.done("pretraining"),
            seed=self.training_seed,
            callbacks=[recorder],
            verbose=0,
        )

    def regularize(self):
        """Stage 2: the method of the experiment."""
        e, done = self.experiment, self.state.done("regularization")
        first, *others = self.method
        is_safe = isinstance(first, SafeGAR)
        if done > 0 and is_safe:
            first = replace(
                first,
                class_prior=self.state.progress["predicted_prior"],
                # The networks of the experiments end in a Dense, which has it.
                logit_factor=1.0,
                start_weights=self.state.start_weights or None,
            )
        regularize(
            self.model,
            self.x_labeled,
            self.unlabeled,
            y_labeled=self.task.y_labeled,
            method=[first, *others],
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
        if any(term.can_collapse for term in self.method):
            callbacks.append(self._watch())
        return callbacks

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
        of_gar = self.experiment.method_name == "gar"
        labels = "the term CrossEntropy"
        learns_labels = any(term.uses_labels for term in self.method)
        is_safe = isinstance(self.method[0], SafeGAR)
        return Advice(
            rate="a lower stage_2_rate",
            labels=None if learns_labels else labels,
            prior="as class_prior" if of_gar else None,
            kept=LOST_CLASSES_ARE_RESTORED if is_safe else "",
        )

    def save_best(self, path, save_models):
        """Saves the snapshots, and the model of the validation-chosen epoch."""
        owner = self.experiment.fingerprint(), self.seed
        arrays = self.arrays()
        records.write_arrays(path.with_suffix(".npz"), owner, arrays)
        if save_models:
            self.model.set_weights(self.state.best_weights)
            # Without an optimizer: that of a resumed run is another one.
            uncompiled(self.model).save(path.with_suffix(".keras"))

    def arrays(self):
        """The classes of all test images by epoch, and the logits of some."""
        y = self.task.data.y_test
        return records.Arrays(
            np.arange(len(y)),
            y,
            self.state.predicted,
            self.state.logit_images,
            self.state.snapshots,
        )

    def record(self, path):
        """The record, with what stage 2 did to single classes."""
        arrays = self.arrays()
        return super().record(path) | {
            "lost_classes": records.lost_of(arrays),
            "balanced_errors": records.balanced_errors_of(arrays),
        }


def build_model(experiment, input_shape, num_classes):
    """The network of an experiment, with new weights."""
    e = experiment
    layers = []
    if e.shift or e.affine:
        layers.append(RandomAffine(e.affine, shift=e.shift))
    if e.preprocessing == "rescale":
        layers.append(keras.layers.Rescaling(1 / 255, dtype="float32"))
    elif e.preprocessing == "standardize":
        layers.append(PerImageStandardization(dtype="float32"))

    def preprocessing(images):
        for layer in layers:
            images = layer(images)
        return images

    filters = {} if e.filters is None else {"filters": e.filters}
    return {"cnn6": cnn6, "cnn9": cnn9, "mlp": mlp}[e.network](
        input_shape,
        num_classes,
        preprocessing=preprocessing if layers else None,
        dtype=POLICIES[e.precision],
        **filters,
    )


def _optimizers(e, num_unlabeled):
    """The optimizers of both stages, by the stage."""
    images = e.images_per_epoch or num_unlabeled
    steps = e.epochs * math.ceil(images / e.unlabeled_per_batch)
    warmup_steps = e.warmup_steps
    if warmup_steps is None:
        warmup_steps = min(WARMUP_STEPS, int(LARGEST_WARMUP * steps))
    return {
        "pretraining": sgd(),
        "regularization": sgd(
            e.stage_2_rate or LEARNING_RATE,
            warmup_steps=warmup_steps,
            global_clipnorm=e.global_clipnorm or None,
        ),
    }
