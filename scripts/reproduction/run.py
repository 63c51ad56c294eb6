"""One run, an experiment with a seed: prepared, trained, recorded.

After each epoch a run keeps all its variables in a file, seeds among them, with
its curves: one that is killed goes on from there to the same numbers.
"""

import json
import math
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
from gar_keras.engine.graphs import uncompiled
from gar_keras.layers import PerImageStandardization
from gar_keras.methods.safe_gar import SafeGAR
from gar_keras.models import POLICIES, cnn6, cnn9, mlp
from gar_keras.training import check_stage_2, pretrain, regularize
from gar_keras.utils import files
from gar_keras.utils.warnings import shown_by
from reproduction import environment, progress, records
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


def lock_of(path):
    """The lock of what is kept at a path, beside it.

    The system lifts it however its holder dies.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    return filelock.FileLock(path.with_suffix(".lock"))


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
    finished epoch.

    Args:
        experiment: An `Experiment`.
        seed: Decides the split, the initial weights, dropout and the batches.
        results, data_dir, save_models, share_stage_1: As on the command line.
        reporter: A `progress.Reporter`.

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
                shared = path_of_state(experiment.stage_1(), seed, results)
                job.train(shared if share_stage_1 else None)
                job.write(path, save_models)
            # It can outlive a process that was killed behind the record.
            state.unlink(missing_ok=True)
            return records.read(path)
    except filelock.Timeout:
        return None
    except OSError as e:
        raise OSError(
            f"{e.filename or path} cannot be written or read "
            f"({e.strerror or e}). Make room, or name another folder by "
            "--results; the same command goes on from the last finished epoch."
        ) from e
    finally:
        reporter.end()


class Run:
    """The data of a run, and what its record is to say."""

    def __init__(self, experiment, seed, state, data_dir, reporter):
        self.experiment, self.seed, self.path = experiment, seed, state
        self.reporter = reporter
        self.task = Task(experiment, seed, data_dir)
        # The environment now: the source may be edited while the run goes on.
        self.progress = {
            **{stage: {"seconds": 0.0, "curve": {}} for stage in STAGES},
            "snapshot_epochs": [],
            "environment": environment.describe(),
            **self.task.described,
            "predicted_prior": None,
            "resumed_in": [],
            "warnings": [],
        }
        self.reporter.begin()

    def write(self, path, save_models=False, **of_classes):
        """Writes the record, with which the run is finished."""
        record = {
            "format": records.FORMAT,
            "path": "/".join(path.absolute().parts[-3:]),
            "fingerprint": self.experiment.fingerprint(),
            "experiment": self.experiment.as_json(),
            "seed": self.seed,
            "labeled": self.task.labeled,
            **self.progress,
            "lost_classes": None,
            "dead_outputs": None,
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
        curve = {"epoch": [0, 1]}
        for name, of_set in zip(task.sets, wrong, strict=True):
            curve[name] = [None, float(of_set.mean())]
        curve["seconds"] = [None, round(seconds, 3)]
        self.progress["regularization"] = {"seconds": seconds, "curve": curve}


class NetworkRun(Run):
    """A run of both stages: what is trained, how far, and its training."""

    def __init__(self, experiment, seed, state, data_dir, reporter):
        super().__init__(experiment, seed, state, data_dir, reporter)
        e, task = experiment, self.task
        # Of weights and batches.
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
        # Of the end of stage 1, and of the validation-chosen epoch so far.
        self.start_weights, self.best_weights = [], []
        # By the epoch of stage 2: logits of some images, and all classes.
        self.logit_images = records.kept_images(seed, len(task.data.x_test))
        self.logits, self.predicted = {}, {}
        # What a method has beside weights and optimizer, until it is taken up.
        self.method_variables = []

    def curve(self, stage):
        """The curve of a stage, lists by name; empty before it begins."""
        return self.progress[stage]["curve"]

    def done(self, stage):
        """Number of the last epoch of a stage that is done."""
        return self.curve(stage).get("epoch", [0])[-1]

    def note(self, stage, row, seconds):
        """Adds an epoch to the curve of a stage, values by name."""
        self.progress[stage]["seconds"] += seconds
        curve = self.curve(stage)
        missing = max(map(len, curve.values()), default=0)
        for name, value in row.items():
            # Epoch 0 has errors alone.
            curve.setdefault(name, [None] * missing).append(value)

    def keep(self, network):
        """Keeps what the last epoch of stage 2 gives, where it counts."""
        epoch = self.done("regularization")
        if epoch in SNAPSHOT_EPOCHS or epoch == self.experiment.epochs:
            logits = predict(network, self.task.data.x_test)
            self.logits[epoch] = logits[self.logit_images]
            self.predicted[epoch] = logits.argmax(axis=1)
            self.progress["snapshot_epochs"] = [*self.logits]
        *earlier, last = self.curve("regularization")["val_error"]
        # Of equals, the last is chosen; epoch 0 is that of stage 1.
        if epoch > 0 and last <= min(earlier[1:], default=math.inf):
            self.best_weights = network.get_weights()

    def warn(self, text):
        """Notes a warning, once, and tells it."""
        if text not in self.progress["warnings"]:
            self.progress["warnings"].append(text)
        self.reporter.say(f"warning: {text}")

    # The file that keeps it.

    def owner(self):
        """Whose state it is: of this run, and of these data."""
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
            best=self.best_weights,
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
        # Of stage 2 alone; only the method in training knows what they are of.
        self.method_variables = arrays["method"]
        self.start_weights, self.best_weights = arrays["start"], arrays["best"]
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
        if not self.curve("regularization"):
            curve = self.curve("pretraining")
            errors = {name: curve[name][-1] for name in self.task.sets}
            self.note("regularization", {"epoch": 0, **errors}, 0.0)
            self.start_weights = self.model.get_weights()
            self.keep(self.model)
        if self.done("regularization") < e.epochs:
            with shown_by(self.warn):
                self.regularize()

    def take_or_make(self, shared):
        """Stage 1, as another run has made it, or made for other runs."""
        owner = [shared.stem, self.task.described["split_fingerprint"]]
        # Whoever comes second waits for the first.
        with lock_of(shared):
            found = None
            if not self.curve("pretraining"):
                found = read_state(shared, owner, self.reporter)
            if found is None:
                self.pretrain()
                model = self.model.variables
                write_state(shared, owner, self.progress, model=model)
                return
        theirs, arrays = found
        assign(self.model.variables, arrays["model"])
        made_in = {"environment": theirs["environment"]}
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
                # The networks of the experiments end in a Dense, which has it.
                logit_factor=1.0,
                start_weights=self.start_weights,
            )
        callbacks = [Recorder(self, "regularization")]
        if any(term.can_collapse for term in self.method) and not is_safe:
            curve = self.curve("regularization")
            before, *earlier = (
                dict(zip(curve, row, strict=True))
                for row in zip(*curve.values(), strict=True)
            )
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
        regularize(
            self.model,
            self.task.x_labeled,
            self.task.unlabeled,
            y_labeled=self.task.y_labeled,
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
            for name, error in errors.items():
                self.curve("regularization")[name][-1] = error
            self.keep(self.model)

    def write(self, path, save_models=False):
        """Writes the arrays, the model of the chosen epoch, and the record."""
        y = self.task.data.y_test
        arrays = records.Arrays(
            np.arange(len(y)), y, self.predicted, self.logit_images, self.logits
        )
        owner = self.experiment.fingerprint(), self.seed
        records.write_arrays(path.with_suffix(".npz"), owner, arrays)
        if save_models:
            self.model.set_weights(self.best_weights)
            # Without an optimizer: that of a resumed run is another one.
            uncompiled(self.model).save(path.with_suffix(".keras"))
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
        # For the callbacks that follow.
        logs.update(errors)
        row = {
            "epoch": (epoch + 1) * self.epochs_per_report,
            **errors,
            **logs,
            "seconds": round(seconds, 3),
        }
        run.note(self.stage, row, seconds)
        can_be_undone = False
        if self.stage == "pretraining":
            run.save(self.stage)
        else:
            first = stage_2.method[0]
            if isinstance(first, SafeGAR):
                prior = first.class_prior
                run.progress["predicted_prior"] = list(prior) if prior else None
                # The run keeps what is left of the last epoch.
                can_be_undone = epoch + 1 == run.experiment.epochs
            if not can_be_undone:
                run.keep(stage_2.evaluated)
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
    files.write_atomically(
        path, lambda file: np.savez(file, meta=meta, **arrays), mode="wb"
    )


def read_state(path, owner, reporter):
    """The progress and the arrays at a path; `None` if they do not fit."""
    arrays = defaultdict(list)
    try:
        # Opened here, since np.load leaves a bad file open.
        with open(path, "rb") as file, np.load(file) as archive:
            meta = json.loads(str(archive["meta"]))
            # In the order in which they were written.
            for key in archive.files:
                arrays[key.partition("/")[0]].append(archive[key])
        if meta["of"] != owner:
            raise ValueError("it is of another run, or of other data")
        return meta["progress"], arrays
    except FileNotFoundError:
        return None
    # A damaged file: anything comes of it.
    except Exception as e:
        reason = records.first_line(e)
        reporter.say(f"starts afresh: {path} does not fit ({reason})")
        return None


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
