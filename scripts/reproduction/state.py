"""What a run has done so far, kept in a file: a killed run goes on exactly."""

import contextlib
import json
import math
from collections import defaultdict
from pathlib import Path

import filelock
import keras
import numpy as np

from gar_keras.engine.fit import predict
from gar_keras.utils.files import write_atomically
from reproduction import environment
from reproduction.records import MUST_AGREE, kept_images

STAGES = ("pretraining", "regularization")

# Figure 2 of the paper shows these epochs of stage 2; the last one is added.
SNAPSHOT_EPOCHS = (0, 1, 10, 50, 100)


def path_of_state(experiment, seed, results):
    """Where the state of an unfinished run is kept."""
    return _path(results, experiment.cell, seed, experiment.fingerprint())


def path_of_stage_1(experiment, seed, results):
    """Where the end of stage 1 is kept, for all runs that have the same."""
    return _path(results, "stage1", seed, experiment.stage_1().fingerprint())


def lock_of(experiment, seed, results):
    """The lock of a run, which the system lifts however its holder dies."""
    return lock_at(path_of_state(experiment, seed, results))


def lock_at(path):
    """The lock of what is kept at a path, beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return filelock.FileLock(path.with_suffix(".lock"))


def put_away(experiment, seed, results):
    """Removes the state of a finished run."""
    path_of_state(experiment, seed, results).unlink(missing_ok=True)


class State:
    """How far a run has come, and the file that keeps it.

    Args:
        experiment, seed, results: Those of the run.
        described: What the run is made from, as its record has it.
        images: The test images whose classes are kept, and of some the logits.
        say: Function that is told, in words, what is taken up.
    """

    def __init__(self, experiment, seed, results, described, images, say):
        self.path = path_of_state(experiment, seed, results)
        self.owner = [experiment.fingerprint(), seed]
        self.epochs = experiment.epochs
        self.described = described
        self.images = images
        self.logit_images = kept_images(seed, len(images))
        self.say = say
        # The environment now: the source may be edited while the run goes on.
        self.progress = {
            **{stage: {"seconds": 0.0, "curve": {}} for stage in STAGES},
            "snapshot_epochs": [],
            "environment": environment.describe(),
            **described,
            "predicted_prior": None,
            "resumed_in": [],
            "warnings": [],
        }
        # Of the end of stage 1.
        self.start_weights = []
        # Of the validation-chosen epoch so far.
        self.best_weights = []
        # By the epoch of stage 2: logits of some images, and all classes.
        self.snapshots, self.predicted = {}, {}
        # What a method has beside weights and optimizer, in stage 2.
        self.method = None

    def curve(self, stage):
        """The curve of a stage, lists by name; empty before it begins."""
        return self.progress[stage]["curve"]

    def done(self, stage):
        """Number of the last epoch of a stage that is done."""
        return _last_epoch(self.progress, stage)

    def note(self, stage, row, seconds):
        """Adds an epoch to the curve of a stage, values by name."""
        self.progress[stage]["seconds"] += seconds
        curve = self.curve(stage)
        missing = max(map(len, curve.values()), default=0)
        for name, value in row.items():
            # Epoch 0 has errors alone.
            curve.setdefault(name, [None] * missing).append(value)

    def note_predicted_prior(self, prior):
        """Notes the shares that stage 2 expects; `None` for equal ones."""
        self.progress["predicted_prior"] = None if prior is None else [*prior]

    def begin_stage_2(self, errors, network):
        """Takes the end of stage 1, with errors by name, as epoch 0."""
        curve = self.curve("regularization")
        curve["epoch"] = [0]
        curve.update({name: [error] for name, error in errors.items()})
        self.start_weights = network.get_weights()
        self.keep(network)

    def is_last_epoch(self):
        """Whether the last epoch of stage 2 is done."""
        return self.done("regularization") == self.epochs

    def end_stage_2(self, errors, network):
        """Takes what a training leaves, with errors by name, as its end."""
        for name, error in errors.items():
            self.curve("regularization")[name][-1] = error
        self.keep(network)

    def keep(self, network):
        """Keeps what the last epoch of stage 2 gives, where it counts."""
        epoch = self.done("regularization")
        if self._has_snapshot(epoch):
            logits = predict(network, self.images)
            self.snapshots[epoch] = logits[self.logit_images]
            self.predicted[epoch] = logits.argmax(axis=1).astype("uint8")
            self.progress["snapshot_epochs"] = [*self.snapshots]
        *earlier, last = self.curve("regularization")["val_error"]
        # Of equals, the last is chosen; epoch 0 is that of stage 1.
        if epoch > 0 and last <= min(earlier[1:], default=math.inf):
            self.best_weights = network.get_weights()

    def _has_snapshot(self, epoch):
        return epoch in SNAPSHOT_EPOCHS or epoch == self.epochs

    def warn(self, text):
        """Notes a warning, once, and tells it."""
        if text not in self.progress["warnings"]:
            self.progress["warnings"].append(text)
        self.say(f"warning: {text}")

    def save(self, model, optimizer, method=()):
        """Writes the state with the variables in training, whole or not."""
        _write(
            self.path,
            self.owner,
            self.progress,
            model=model,
            optimizer=optimizer,
            start=self.start_weights,
            best=self.best_weights,
            snapshots=self.snapshots.values(),
            predicted=self.predicted.values(),
            method=method,
        )

    def save_stage_1(self, path, model):
        """Keeps the end of stage 1 for the runs that have the same."""
        _write(path, path.stem, self.progress, model=model.variables)

    def load(self, model, variables):
        """Takes up the run's own state, if it fits.

        Args:
            model: The network.
            variables: Function that gives the variables of a stage, lists by
                name.
        """
        with self._telling_what_does_not_fit(self.path):
            progress, arrays = _read(self.path, self.owner)
            self._check_is_of(progress, self.described)
            self._go_on(progress, arrays, model, variables)

    def restore_method(self, variables):
        """Gives a `Stage2` the variables of its own that were taken up."""
        if self.method is None:
            return
        try:
            assign_all({"method": variables}, {"method": self.method})
        except ValueError as e:
            raise ValueError(
                f"{self.path} does not fit the method ({e}). Delete it to "
                "begin this run again."
            ) from None

    def load_stage_1(self, path, model):
        """Takes up the end of another run's stage 1, if it fits."""
        with self._telling_what_does_not_fit(path):
            progress, arrays = _read(path, path.stem)
            self._check_is_of(progress, ["split_fingerprint"])
            assign_all({"model": model.variables}, arrays)
            self.progress["pretraining"] = {
                **progress["pretraining"],
                "environment": progress["environment"],
            }
            self.say("takes stage 1 from an earlier run")

    @contextlib.contextmanager
    def _telling_what_does_not_fit(self, path):
        try:
            yield
        except FileNotFoundError:
            # Nothing was kept.
            return
        # A damaged file, one of another run or version: anything comes of it.
        except Exception as e:
            reason = next(iter(str(e).splitlines()), type(e).__name__)
            self.say(f"starts afresh: {path} does not fit ({reason})")

    def _check_is_of(self, progress, names):
        """Raises unless saved progress is of this run's data."""
        for name in names:
            if progress[name] != self.described[name]:
                raise ValueError(f"it is of other {MUST_AGREE[name]}")

    def _go_on(self, progress, arrays, model, variables):
        epochs = _last_epoch(progress, "regularization")
        if epochs > self.epochs:
            raise ValueError(f"it has {epochs} epochs")
        kept_epochs = progress["snapshot_epochs"]
        logits = dict(zip(kept_epochs, arrays["snapshots"], strict=True))
        predicted = dict(zip(kept_epochs, arrays["predicted"], strict=True))
        kept = len(self.logit_images), model.output_shape[-1]
        if any(z.shape != kept or z.dtype.kind != "f" for z in logits.values()):
            raise ValueError("it has logits of other images")
        stage = "regularization" if epochs > 0 else "pretraining"
        if stage == "regularization":
            check_values(model.weights, arrays["best"])
            # Earlier versions did not keep it.
            if arrays["start"]:
                check_values(model.weights, arrays["start"])
        assign_all(variables(stage), arrays)
        if stage == "regularization":
            # Only the method in training knows what these are of.
            self.method = arrays["method"]
        so_far = [progress["environment"], *progress["resumed_in"]]
        if so_far[-1] != self.progress["environment"]:
            progress["resumed_in"].append(self.progress["environment"])
        self.progress = progress
        self.start_weights = arrays["start"]
        self.best_weights = arrays["best"]
        self.snapshots, self.predicted = logits, predicted
        self.say(f"goes on after epoch {self.done(stage)} of {stage}")


def check_values(variables, values):
    """Raises unless saved values are of the shapes and dtypes of variables."""
    wanted = [(tuple(v.shape), np.dtype(v.dtype)) for v in variables]
    if wanted != [(value.shape, value.dtype) for value in values]:
        raise ValueError("it has other variables")


def assign_all(variables, values):
    """Gives each variable, in lists by name, its saved value.

    None of them gets one if one does not fit.
    """
    for name, listed in variables.items():
        check_values(listed, values[name])
    for name, listed in variables.items():
        for variable, value in zip(listed, values[name], strict=True):
            variable.assign(value)


def _path(results, name, seed, fingerprint):
    return Path(results, ".checkpoints", f"{name}_seed{seed}_{fingerprint}.npz")


def _last_epoch(progress, stage):
    return progress[stage]["curve"].get("epoch", [0])[-1]


def _write(path, owner, progress, **variables):
    """Writes a dict of what `json` can hold, and lists of arrays by name."""
    arrays = {
        f"{name}/{i}": keras.ops.convert_to_numpy(value)
        for name, values in variables.items()
        for i, value in enumerate(values)
    }
    text = np.array(json.dumps({"owner": owner, "progress": progress}))
    write_atomically(
        path, lambda file: np.savez(file, state=text, **arrays), mode="wb"
    )


def _read(path, owner):
    """What `_write` wrote, `(progress, arrays)`."""
    arrays = defaultdict(list)
    # Opened here, since np.load leaves a bad file open.
    with open(path, "rb") as file, np.load(file) as archive:
        state = json.loads(str(archive["state"]))
        if state["owner"] != owner:
            raise ValueError("it is of another run")
        # In the order in which they were written.
        for key in archive.files:
            arrays[key.partition("/")[0]].append(archive[key])
    return state["progress"], arrays
