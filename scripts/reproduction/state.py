"""What a run has done so far, kept in a file: a killed run goes on exactly."""

import contextlib
import json
import math
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import filelock
import keras
import numpy as np

from gar_keras.engine.fit import predict
from gar_keras.methods.base import Stage2
from gar_keras.utils.files import write_atomically
from reproduction import environment
from reproduction.records import MUST_AGREE, Progress

STAGES = ("pretraining", "regularization")


def path_of_state(experiment, seed, results):
    """Where the state of an unfinished run is kept."""
    return _path(results, experiment.cell, seed, experiment.fingerprint())


def path_of_end(experiment, seed, results):
    """Where the state at the end of a run is kept, for one of more epochs.

    A run of 200 epochs is, after 60, what a run of 60 is in the end, as long as
    neither the rate nor its warm-up depends on their number.
    """
    return _path(results, "end", seed, _family(experiment))


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


def put_away(experiment, seed, results, keep_state):
    """Removes the state of a finished run, or keeps it as its end."""
    path = path_of_state(experiment, seed, results)
    with contextlib.suppress(FileNotFoundError):
        if keep_state and experiment.can_be_longer:
            path.replace(path_of_end(experiment, seed, results))
        else:
            path.unlink()


class State:
    """The curves, weights and logits of a `Run`, and the file that keeps them.

    It is described by what it is made from, as a record has it. The function
    `say` is told, in words, what is taken up.
    """

    def __init__(self, run, results, described, say):
        self.run = run
        self.path = path_of_state(run.experiment, run.seed, results)
        self.owner = [_family(run.experiment), run.seed]
        self.described = described
        self.say = say
        # The environment now: the source may be edited while the run goes on.
        self.progress = {
            **{stage: {"seconds": 0.0, "curve": {}} for stage in STAGES},
            "snapshot_epochs": [],
            "environment": environment.describe(),
            **described,
            "resumed_in": [],
            "warnings": [],
        }
        # Of the validation-chosen epoch so far.
        self.best_weights = []
        # Logits of some test images, by the epoch of stage 2.
        self.snapshots = {}
        # What a method has beside weights and optimizer, in stage 2.
        self.method = None
        # The file that was taken up.
        self.source = None

    def curve(self, stage):
        """The curve of a stage, lists by name; empty before it begins."""
        return self.progress[stage]["curve"]

    def done(self, stage):
        """Number of the last epoch of a stage that is done."""
        return _last_epoch(self.progress, stage)

    def note(self, stage, row):
        """Adds an epoch to the curve of a stage, values by name."""
        curve = self.curve(stage)
        missing = max(map(len, curve.values()), default=0)
        for name, value in row.items():
            # Epoch 0 has errors alone.
            curve.setdefault(name, [None] * missing).append(value)

    def keep(self, network):
        """Keeps what the last epoch of stage 2 gives, where it counts."""
        epoch = self.done("regularization")
        if epoch in self.run.snapshot_epochs:
            images = self.run.task.data.x_test[self.run.snapshot_images]
            self.snapshots[epoch] = predict(network, images)
            self.progress["snapshot_epochs"] = [*self.snapshots]
        *earlier, last = self.curve("regularization")["val_error"]
        # Of equals, the first is chosen; epoch 0 is that of stage 1.
        if epoch and last < min(earlier[1:], default=math.inf):
            self.best_weights = network.get_weights()

    def warn(self, text):
        """Notes a warning, once, and tells it."""
        if text not in self.progress["warnings"]:
            self.progress["warnings"].append(text)
        self.say(f"warning: {text}")

    def save(self, stage, trained):
        """Writes the state while a model is in training, whole or not."""
        in_stage_1 = stage == "pretraining"
        _write(
            self.path,
            self.owner,
            self.progress,
            model=self.run.model.variables,
            optimizer=self.run.optimizers[stage].variables,
            best=self.best_weights,
            snapshots=self.snapshots.values(),
            method=self._augmentation() if in_stage_1 else state_of(trained),
        )

    def save_stage_1(self, path):
        """Keeps the end of stage 1 for the runs that have the same."""
        _write(path, path.stem, self.progress, model=self.run.model.variables)

    def load(self, path=None):
        """Takes up the run's own state, or that of a path, if it fits."""
        self._load(path or self.path, self.owner, self._go_on)

    def load_stage_1(self, path):
        """Takes up the end of another run's stage 1, if it fits."""
        self._load(path, path.stem, self._take_stage_1, ["split_fingerprint"])

    def _load(self, path, owner, take_up, must_agree=None):
        if not path.exists():
            return
        try:
            progress, arrays = _read(path, owner)
            Progress.model_validate(progress)
            for name in must_agree or self.described:
                if progress[name] != self.described[name]:
                    raise ValueError(f"it is of other {MUST_AGREE[name]}")
            take_up(progress, arrays)
            self.source = path
        # A damaged file, one of another run or version: anything comes of it.
        except Exception as e:
            reason = next(iter(str(e).splitlines()), type(e).__name__)
            self.say(f"starts afresh: {path} does not fit ({reason})")

    def _go_on(self, progress, arrays):
        run = self.run
        epochs = _last_epoch(progress, "regularization")
        if epochs > run.experiment.epochs:
            raise ValueError(f"it has {epochs} epochs")
        stage = STAGES[bool(epochs)]
        logits = dict(
            zip(progress["snapshot_epochs"], arrays["snapshots"], strict=True)
        )
        kept = len(run.snapshot_images), run.task.data.num_classes
        if any(z.shape != kept or z.dtype.kind != "f" for z in logits.values()):
            raise ValueError("it has logits of other images")
        if epochs:
            check_values(run.model.weights, arrays["best"])
        variables = [*run.model.variables, *run.optimizers[stage].variables]
        values = arrays["model"] + arrays["optimizer"]
        # In stage 2, only the method knows what else it has.
        if not epochs:
            variables += self._augmentation()
            values += arrays["method"]
        assign_all(variables, values)
        so_far = [progress["environment"], *progress["resumed_in"]]
        if so_far[-1] != self.progress["environment"]:
            progress["resumed_in"].append(self.progress["environment"])
        self.progress = progress
        self.method = arrays["method"] if epochs else None
        self.best_weights = arrays["best"]
        # The last epoch of a shorter run need not be one to be shown.
        self.snapshots = {
            i: z for i, z in logits.items() if i in run.snapshot_epochs
        }
        progress["snapshot_epochs"] = [*self.snapshots]
        self.say(f"goes on after epoch {self.done(stage)} of {stage}")

    def _take_stage_1(self, progress, arrays):
        assign_all(self.run.model.variables, arrays["model"])
        made_in = {"environment": progress["environment"]}
        self.progress["pretraining"] = {**progress["pretraining"], **made_in}
        self.say("takes stage 1 from an earlier run")

    def _augmentation(self):
        """The variables that the augmentation is drawn with."""
        return [v for layer in self.run.augmentation for v in layer.variables]


def state_of(trained):
    """The variables of a model in stage 2, but for the network's."""
    return trained.state if isinstance(trained, Stage2) else []


def check_values(variables, values):
    """Raises unless saved values are of the shapes and dtypes of variables."""
    wanted = [(tuple(v.shape), np.dtype(v.dtype)) for v in variables]
    if wanted != [(value.shape, value.dtype) for value in values]:
        raise ValueError("it has other variables")


def assign_all(variables, values):
    """Gives each variable its saved value, or none if one does not fit."""
    check_values(variables, values)
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)


class RestoreState(keras.callbacks.Callback):
    """Gives the variables of `state_of` their values of an earlier training.

    The model has to have the weights that were in training then. The path is
    that of the file which the values are from.
    """

    def __init__(self, values, path):
        super().__init__()
        self._values = values
        self._path = path

    def on_train_begin(self, logs=None):
        try:
            assign_all(state_of(self.model), self._values)
        except ValueError as e:
            raise ValueError(
                f"{self._path} does not fit the method ({e}). Delete it to "
                "begin this run again."
            ) from None


def _path(results, name, seed, fingerprint):
    return Path(results, ".checkpoints", f"{name}_seed{seed}_{fingerprint}.npz")


def _family(experiment):
    """The fingerprint of a run, without its epochs where these are no tie."""
    epochs = 1 if experiment.can_be_longer else experiment.epochs
    return replace(experiment, epochs=epochs).fingerprint()


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
