"""One run, an experiment with a seed: prepared, trained, recorded.

After each epoch a run keeps all its variables in a file, seeds among them, with
its curves: one that is killed goes on from there to the same numbers.
"""

import json
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import filelock
import keras
import numpy as np

from gar_keras.augmentation import RandomAffine
from gar_keras.callbacks import ErrorRate, WarnOfError, WarnOnCollapse
from gar_keras.engine import backend, optimizers
from gar_keras.engine.data import stage_2_sampler
from gar_keras.engine.fit import largest_divisor, predict
from gar_keras.layers import PerImageStandardization
from gar_keras.methods.base import needs_labels
from gar_keras.methods.safe_gar import SafeGAR
from gar_keras.models import POLICIES, cnn6, cnn9, mlp
from gar_keras.training import check_stage_2, pretrain, regularize
from reproduction import environment, files, progress, records
from reproduction.methods import graph
from reproduction.methods.library import for_library
from reproduction.paths import path_of
from reproduction.task import Task

STAGES = ("pretraining", "regularization")

# Figure 2 of the paper shows these epochs of stage 2; the last one is added.
SNAPSHOT_EPOCHS = (0, 1, 10, 50, 100)


def path_of_state(experiment, seed, results):
    """Where the state of an unfinished run is kept."""
    name = f"{experiment.cell}_seed{seed}_{experiment.fingerprint()}.npz"
    return Path(results, ".checkpoints", name)


def path_of_stage_1(experiment, seed, results):
    """Where the end of stage 1 is kept that runs have in common."""
    name = f"stage1_seed{seed}_{experiment.stage_1().fingerprint()}.npz"
    return Path(results, ".checkpoints", name)


def lock_of(path):
    """The lock of a state, which the system lifts however its holder dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return filelock.FileLock(path.with_suffix(".lock"))


def run(
    experiment,
    seed,
    results,
    *,
    data_dir=None,
    share_stage_1=False,
    reporter=None,
):
    """Runs an experiment with one seed and writes its record.

    A finished run is not run again. One that was killed goes on after its last
    finished epoch.

    Args:
        experiment: An `Experiment`.
        seed: Decides the split, the initial weights, dropout and the batches.
        results, data_dir, share_stage_1: As on the command line.
        reporter: A `progress.Reporter`.

    Returns:
        The record, or `None` if another process is running this run.

    Raises:
        ValueError: if the data do not allow the settings.
    """
    if experiment.trains_network and experiment.backend != backend.name():
        raise ValueError(
            f"backend={experiment.backend!r} is not the Keras backend in use, "
            f"{backend.name()!r}. Set KERAS_BACKEND before keras is imported."
        )
    state = path_of_state(experiment, seed, results)
    path = path_of(experiment, seed, results)
    reporter = reporter or progress.Reporter(f"{experiment.cell} seed {seed}")
    try:
        with lock_of(state).acquire(timeout=0):
            if not path.exists():
                for file in (path, path.with_suffix(".npz"), state):
                    files.delete_leftovers(file)
                kind = NetworkRun if experiment.trains_network else GraphRun
                job = kind(experiment, seed, state, data_dir, reporter)
                shared = path_of_stage_1(experiment, seed, results)
                job.train(shared if share_stage_1 else None)
                job.write(path)
            # It can outlive a process that was killed behind the record.
            state.unlink(missing_ok=True)
            return records.read(path)
    except filelock.Timeout:
        return None
    finally:
        reporter.end()


class Run:
    """The data of a run, and what its record is to say."""

    def __init__(self, experiment, seed, state, data_dir, reporter):
        self.experiment, self.seed, self.path = experiment, seed, state
        self.reporter = reporter
        self.task = Task(experiment, seed, data_dir)
        self.progress = {
            # The seconds of each stage, and a dict for each epoch.
            **{stage: {"seconds": 0.0, "rows": []} for stage in STAGES},
            # Epochs of stage 2 of which the arrays beside the record are.
            "snapshot_epochs": [],
            "environment": environment.describe(),
            # The data, a fingerprint of the split, and the `class_prior`: the
            # shares that GAR's balance expects, `None` for equal ones.
            **self.task.described,
            # The shares that the safe default found.
            "predicted_prior": None,
            # The environment of each process that went on with the run.
            "resumed_in": [],
            "warnings": [],
        }
        self.reporter.begin()

    def rows(self, stage):
        """What is noted of the epochs of a stage, a dict each."""
        return self.progress[stage]["rows"]

    def write(self, path, **of_classes):
        """Writes the record, with which the run is finished."""
        stages = {}
        for stage in STAGES:
            stages[stage] = dict(self.progress[stage])
            rows = stages[stage].pop("rows")
            # Epoch 0 of stage 2 has errors alone.
            names = dict.fromkeys(name for row in rows for name in row)
            curve = {name: [row.get(name) for row in rows] for name in names}
            stages[stage]["curve"] = curve
        record = {
            "format": records.FORMAT,
            # Path below the results folder.
            "path": "/".join(path.absolute().parts[-3:]),
            "fingerprint": self.experiment.fingerprint(),
            "experiment": self.experiment.as_json(),
            "seed": self.seed,
            # Indices of X_L.
            "labeled": self.task.labeled,
            **self.progress,
            **stages,
            # Classes given to some test images after stage 1 and to none in
            # the end; in older records `None` where nothing tells, an entry of
            # `None` for a class without a name.
            "lost_classes": None,
            # Mean over the classes of the errors on each, after stage 1 and in
            # the end, of the test images in the arrays beside the record.
            "balanced_errors": None,
            **of_classes,
        }
        records.write(path, record)


class GraphRun(Run):
    """A run of a method without a network."""

    def train(self, shared=None):
        """Fits the method; the curve of stage 2 has one epoch."""
        task, start = self.task, time.perf_counter()
        x, y = zip(*task.sets.values(), strict=True)
        term, images = self.experiment.method[0], np.concatenate(x)
        learned = task.x_labeled, task.y_labeled, task.unlabeled
        predicted = graph.fit_predict(term, *learned, images, self.seed)
        seconds = time.perf_counter() - start
        wrong = np.split(predicted != np.concatenate(y), [len(y[0])])
        errors = (float(of_set.mean()) for of_set in wrong)
        row = dict(zip(task.sets, errors, strict=True))
        row = {"epoch": 1, **row, "seconds": round(seconds, 3)}
        rows = [{"epoch": 0}, row]
        self.progress["regularization"] = {"seconds": seconds, "rows": rows}


class NetworkRun(Run):
    """A run of both stages of a network."""

    def __init__(self, experiment, seed, state, data_dir, reporter):
        super().__init__(experiment, seed, state, data_dir, reporter)
        e, task = experiment, self.task
        # Seed of weights and batches.
        self.training_seed = seed
        if e.restart:
            rng = np.random.default_rng([seed, e.restart])
            self.training_seed = int(rng.integers(2**31))
        keras.utils.set_random_seed(self.training_seed)
        shape = task.data.x_train.shape[1:]
        self.model = build_model(e, shape, task.data.num_classes)
        self.method = for_library(e.method, task.described["class_prior"])
        # What stage 2 would refuse is refused now, and not hours later.
        sampler = stage_2_sampler(
            task.x_labeled,
            task.unlabeled,
            e.labeled_per_batch,
            e.unlabeled_per_batch,
            e.images_per_epoch,
            self.training_seed,
        )
        check_stage_2(self.method, self.model, task.unlabeled, sampler)
        warmup_steps = e.warmup_steps
        if warmup_steps is None:
            most = int(optimizers.LARGEST_WARMUP * e.epochs * sampler.steps)
            warmup_steps = min(optimizers.WARMUP_STEPS, most)
        self.optimizers = {
            "pretraining": optimizers.sgd(),
            "regularization": optimizers.sgd(
                e.stage_2_rate or optimizers.LEARNING_RATE,
                warmup_steps=warmup_steps,
                global_clipnorm=e.global_clipnorm or None,
            ),
        }
        for optimizer in self.optimizers.values():
            optimizer.build(self.model.trainable_variables)
        # Weights at the end of stage 1.
        self.start_weights = []
        # Logits of some images and classes of all, by the epoch of stage 2.
        self.logit_images = records.kept_images(seed, len(task.data.x_test))
        self.logits, self.predicted = {}, {}
        # What a method has beside weights and optimizer, until it is taken up.
        self.method_variables = []

    def done(self, stage):
        """Number of the last epoch of a stage that is done."""
        rows = self.rows(stage)
        return rows[-1]["epoch"] if rows else 0

    def keep(self, network):
        """Keeps what the last epoch of stage 2 gives, where it counts."""
        epoch = self.done("regularization")
        if epoch in SNAPSHOT_EPOCHS or epoch == self.experiment.epochs:
            logits = predict(network, self.task.data.x_test)
            self.logits[epoch] = logits[self.logit_images]
            self.predicted[epoch] = logits.argmax(axis=1)
            self.progress["snapshot_epochs"] = [*self.logits]

    def warn(self, text):
        """Notes a warning, once, and tells it."""
        if text not in self.progress["warnings"]:
            self.progress["warnings"].append(text)
        self.reporter.say(f"warning: {text}")

    # The file that keeps the state of the run.

    def owner(self):
        """What a state is of: this run, and these data."""
        described = self.task.described
        return [self.experiment.fingerprint(), self.seed, described]

    def save(self, stage, method_variables=()):
        """Writes the state after an epoch, whole or not at all."""
        write_state(
            self.path,
            self.owner(),
            self.progress,
            model=self.model.variables,
            optimizer=self.optimizers[stage].variables,
            method=method_variables,
            start=self.start_weights,
            logits=self.logits.values(),
            predicted=self.predicted.values(),
        )

    def load(self):
        """Takes up the run's saved state, if there is one that fits."""
        found = read_state(self.path, self.owner(), self.reporter)
        if found is None:
            return
        here = self.progress["environment"]
        self.progress, arrays = found
        stage = STAGES[self.done("regularization") > 0]
        assign(self.model.variables, arrays["model"])
        assign(self.optimizers[stage].variables, arrays["optimizer"])
        # Variables of stage 2: the method assigns them once it trains.
        self.method_variables = arrays["method"]
        self.start_weights = arrays["start"]
        epochs = self.progress["snapshot_epochs"]
        self.logits = dict(zip(epochs, arrays["logits"], strict=True))
        self.predicted = dict(zip(epochs, arrays["predicted"], strict=True))
        resumed_in = self.progress["resumed_in"]
        if here != [self.progress["environment"], *resumed_in][-1]:
            resumed_in.append(here)
        self.reporter.say(f"goes on after epoch {self.done(stage)} of {stage}")

    # Training.

    def train(self, shared=None):
        """Trains what is left; `shared` is the path of the end of stage 1."""
        e = self.experiment
        self.load()
        if self.done("pretraining") < e.pretrain_epochs:
            if shared is None:
                self.pretrain()
            else:
                self.take_or_make(shared)
        if not self.rows("regularization"):
            last = self.rows("pretraining")[-1]
            errors = {name: last[name] for name in self.task.sets}
            self.rows("regularization").append({"epoch": 0, **errors})
            self.start_weights = self.model.get_weights()
            self.keep(self.model)
        if self.done("regularization") < e.epochs:
            with progress.shown_by(self.warn):
                self.regularize()

    def take_or_make(self, shared):
        """Stage 1, as another run has made it, or made for other runs."""
        owner = [shared.stem, self.task.described["split_fingerprint"]]
        # Whoever comes second waits for the first.
        with lock_of(shared):
            files.delete_leftovers(shared)
            found = None
            if not self.rows("pretraining"):
                found = read_state(shared, owner, self.reporter)
            if found is None:
                self.pretrain()
                model = self.model.variables
                write_state(shared, owner, self.progress, model=model)
                return
        theirs, arrays = found
        assign(self.model.variables, arrays["model"])
        made_in = {name: theirs[name] for name in ("environment", "resumed_in")}
        self.progress["pretraining"] = theirs["pretraining"] | made_in
        self.reporter.say("takes stage 1 from an earlier run")

    def pretrain(self):
        """Stage 1: the labelled images alone."""
        e = self.experiment
        per_report = largest_divisor(e.pretrain_epochs, 100)
        pretrain(
            self.model,
            self.task.x_labeled,
            self.task.y_labeled,
            epochs=e.pretrain_epochs,
            report_every=per_report,
            optimizer=self.optimizers["pretraining"],
            initial_epoch=self.done("pretraining"),
            seed=self.training_seed,
            callbacks=[Recorder(self, "pretraining", per_report)],
            verbose=0,
        )

    def regularize(self):
        """Stage 2: the method of the experiment."""
        e, done = self.experiment, self.done("regularization")
        first, *others = self.method
        is_safe = isinstance(first, SafeGAR)
        if done > 0 and is_safe:
            first = replace(
                first,
                class_prior=self.progress["predicted_prior"],
                # The networks end in a Dense layer, which has the factor.
                logit_factor=1.0,
                start_weights=self.start_weights,
            )
        callbacks = [Recorder(self, "regularization")]
        if any(term.can_collapse for term in self.method) and not is_safe:
            before, *earlier = self.rows("regularization")
            callbacks = [
                # In front of what saves the warnings.
                WarnOnCollapse(
                    e.labeled_per_batch + e.unlabeled_per_batch,
                    earlier=earlier,
                ),
                *callbacks,
                WarnOfError(
                    before["val_error"],
                    self.model,
                    *self.task.sets["val_error"],
                ),
            ]
        y_labeled = self.task.y_labeled
        regularize(
            self.model,
            self.task.x_labeled,
            self.task.unlabeled,
            y_labeled=y_labeled if needs_labels(self.method) else None,
            method=[first, *others],
            epochs=e.epochs,
            labeled_per_batch=e.labeled_per_batch,
            unlabeled_per_batch=e.unlabeled_per_batch,
            images_per_epoch=e.images_per_epoch,
            optimizer=self.optimizers["regularization"],
            initial_epoch=done,
            seed=self.training_seed,
            callbacks=callbacks,
            verbose=0,
        )
        if is_safe:
            # What a training leaves may be the weights of its start.
            errors = ErrorRate(**self.task.sets).measure(self.model)
            self.rows("regularization")[-1].update(errors)
            self.keep(self.model)
        self.save("regularization")

    def write(self, path):
        """Writes the arrays and the record."""
        y = self.task.data.y_test
        arrays = records.Arrays(
            np.arange(len(y)), y, self.predicted, self.logit_images, self.logits
        )
        owner = self.experiment.fingerprint(), self.seed
        records.write_arrays(path.with_suffix(".npz"), owner, arrays)
        super().write(
            path,
            lost_classes=records.lost_of(arrays),
            balanced_errors=records.balanced_errors_of(arrays),
        )


class Recorder(keras.callbacks.Callback):
    """Measures, notes, saves and reports each epoch of a stage of a run.

    Args:
        run: The `NetworkRun`.
        stage: One of `STAGES`.
        epochs_per_report: Epochs that make up one epoch of `fit`.
    """

    def __init__(self, run, stage, epochs_per_report=1):
        super().__init__()
        self.run, self.stage = run, stage
        self.errors = ErrorRate(**run.task.sets)
        self.epochs_per_report = epochs_per_report
        # What comes before the first epoch, such as a graph, counts too.
        self.start = time.perf_counter()

    def on_train_begin(self, logs=None):
        total = self.params["epochs"] * self.epochs_per_report
        self.run.reporter.stage(self.stage, self.run.done(self.stage), total)
        if self.run.method_variables:
            assign(self.model.state, self.run.method_variables)

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch

    def on_train_batch_end(self, batch, logs=None):
        share = (batch + 1) / self.params["steps"]
        done = (self.epoch + share) * self.epochs_per_report
        self.run.reporter.step(done, logs)

    def on_epoch_end(self, epoch, logs=None):
        run, stage_2 = self.run, self.model
        seconds = time.perf_counter() - self.start
        errors = self.errors.measure(self.model)
        # The callbacks that follow read the errors.
        logs.update(errors)
        row = {
            "epoch": (epoch + 1) * self.epochs_per_report,
            **errors,
            **logs,
            "seconds": round(seconds, 3),
        }
        run.rows(self.stage).append(row)
        run.progress[self.stage]["seconds"] += seconds
        if self.stage == "pretraining":
            run.save(self.stage)
        else:
            first = stage_2.method[0]
            if isinstance(first, SafeGAR):
                prior = first.class_prior
                run.progress["predicted_prior"] = list(prior) if prior else None
            run.keep(stage_2.evaluated)
            # The last epoch is done when what comes after it is.
            if epoch + 1 < run.experiment.epochs:
                run.save(self.stage, stage_2.state)
        run.reporter.epoch(row)
        self.start = time.perf_counter()


def assign(variables, values):
    """Gives each variable its saved value."""
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)


def write_state(path, owner, progress, **lists):
    """Writes what JSON can hold, and lists of arrays by name."""
    arrays = {
        f"{name}/{i}": keras.ops.convert_to_numpy(value)
        for name, values in lists.items()
        for i, value in enumerate(values)
    }
    meta = np.array(json.dumps({"of": owner, "progress": progress}))
    with files.writing(path, "wb") as file:
        np.savez(file, meta=meta, **arrays)


def read_state(path, owner, reporter):
    """The progress and the arrays at a path; `None` if they do not fit.

    Raises:
        RecordError: if the file is damaged. It is left as it is.
    """
    if not path.exists():
        return None
    arrays = defaultdict(list)
    with records.reading(path), open(path, "rb") as file:
        archive = np.load(file)
        meta = json.loads(str(archive["meta"]))
        # Arrays come in the order in which they were written.
        for key in archive.files:
            arrays[key.partition("/")[0]].append(archive[key])
    if meta["of"] != owner:
        reporter.say(f"starts afresh: {path} is of another run or other data")
        return None
    return meta["progress"], arrays


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
