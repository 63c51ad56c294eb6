"""The state of a run: its weights, its curves and what else is saved of it."""

import numpy as np

from gar_keras.experiments.checkpoint import assign
from gar_keras.experiments.records import Progress
from gar_keras.methods.base import evaluated_by, state_of
from gar_keras.utils.warnings import shown_by

STAGES = ("pretraining", "regularization")
# What a saved state must have in common with the run that takes it up.
MUST_AGREE = {
    "split_fingerprint": "data",
    "data": "data",
    "method_settings": "hyper-parameters",
}


class RunState:
    """What a run has done so far, on its way from epoch to epoch.

    Args:
        model: The network.
        augmentation: The layers that change the images of stage 1.
        snapshots: The `Snapshots` of stage 2.
        progress: Dict of what the record will hold of the training.
        checkpoint: The `Checkpoint` that keeps the state.
        shared: That of the end of stage 1, for all runs that have the same,
            or `None`.
        say: Function that is told, in words, what is taken up.

    Attributes:
        best_weights: Those of the validation-chosen epoch so far.
        method_state: What `gar_keras.methods.base.state_of` gave when the
            state was saved in stage 2, else `None`.
    """

    def __init__(
        self,
        model,
        augmentation,
        snapshots,
        progress,
        checkpoint,
        shared=None,
        say=print,
    ):
        self.model = model
        self.augmentation = augmentation
        self.snapshots = snapshots
        self.progress = {
            **{stage: {"seconds": 0.0, "curve": {}} for stage in STAGES},
            "snapshot_epochs": snapshots.epochs,
            **progress,
            "resumed_in": [],
            "evaluation_seconds": 0.0,
            "warnings": [],
        }
        self.checkpoint = checkpoint
        self.shared = shared
        self.say = say
        self.best_weights = []
        self.method_state = None
        self._moments = None

    def curve(self, stage):
        """The curve of a stage, lists by name; empty before it begins."""
        return self.progress[stage]["curve"]

    def done(self, stage):
        """Number of the last epoch of a stage that is done."""
        return _last(self.curve(stage).get("epoch"))

    def restore(self):
        """Takes up what was saved: the run's own state, or a shared stage 1."""
        saved = self.checkpoint.load()
        if saved is not None:
            with self.checkpoint.taken_up():
                self._go_on(*saved)
        elif not self._take_stage_1() and self.checkpoint.path.exists():
            self.say("the saved state is damaged; starts afresh")

    def save(self, stage, trained):
        """Saves the state.

        Args:
            stage: The stage that the run is in.
            trained: The model that `fit` is called of.
        """
        in_stage_1 = stage == "pretraining"
        method = self._augmentation_state() if in_stage_1 else state_of(trained)
        self.checkpoint.save(
            self.progress,
            model=self.model.variables,
            optimizer=trained.optimizer.variables,
            best=self.best_weights,
            snapshots=self.snapshots.logits,
            method=method,
        )

    def note(self, stage, row, seconds, evaluation_seconds):
        """Adds an epoch to the curve of a stage.

        Args:
            stage: The stage.
            row: What the curve has of the epoch, by name.
            seconds: Those of the training.
            evaluation_seconds: Those of the errors.
        """
        self.progress[stage]["seconds"] += seconds
        self.progress["evaluation_seconds"] += evaluation_seconds
        curve = self.curve(stage)
        missing = max(map(len, curve.values()), default=0)
        for name, value in row.items():
            # An older version, which began the curve, did not measure this.
            if name not in curve and missing > 1:
                continue
            # Epoch 0 has errors alone.
            curve.setdefault(name, [None] * missing).append(value)

    def keep_chosen(self, trained):
        """Keeps weights and logits of stage 2's last epoch, if it counts.

        Args:
            trained: The model that `fit` is called of.
        """
        curve = self.curve("regularization")
        evaluated = evaluated_by(trained, self.model)
        *earlier, last = curve["val_error"][1:]
        if not earlier or last < min(earlier):
            self.best_weights = evaluated.get_weights()
        self.snapshots.take(curve["epoch"][-1], evaluated)

    def restored(self, optimizer):
        """The optimizer, with the moments that it had when it was saved."""
        optimizer.build(self.model.trainable_variables)
        if self._moments is not None:
            with self.checkpoint.taken_up():
                assign(optimizer.variables, self._moments)
        return optimizer

    def begin_stage_2(self, errors):
        """Ends stage 1, whose last epoch is epoch 0 of stage 2.

        Args:
            errors: Dict of errors that stage 1 has no curve of.
        """
        if self.shared is not None and self.shared.load() is None:
            self.shared.save(self.progress, model=self.model.variables)
        self._moments = None
        curve = self.curve("pretraining")
        self.progress["regularization"]["curve"] = {
            "epoch": [0],
            "val_error": curve["val_error"][-1:],
            "test_error": curve["test_error"][-1:],
            **{name: [error] for name, error in errors.items()},
        }
        self.snapshots.take(0, self.model)

    def warnings_shown(self):
        """A context in which warnings of GAR are noted, once, and told."""

        def show(text):
            if text not in self.progress["warnings"]:
                self.progress["warnings"].append(text)
            self.say(f"warning: {text}")

        return shown_by(show)

    def _go_on(self, progress, variables):
        Progress.model_validate(progress)
        progress = {**self.progress, **progress}
        for name, what in MUST_AGREE.items():
            if progress[name] != self.progress[name]:
                self.say(f"the saved state is of other {what}; starts afresh")
                return
        so_far = [progress["environment"], *progress["resumed_in"]]
        if so_far[-1] != self.progress["environment"]:
            progress["resumed_in"].append(self.progress["environment"])
        self.progress = progress
        in_stage_2 = bool(self.curve("regularization"))
        stage = STAGES[in_stage_2]
        done = _last(self.curve(stage)["epoch"])
        self.say(f"goes on after epoch {done} of {stage}")
        assign(self.model.variables, variables["model"])
        self.best_weights = self._best_of(variables)
        kept = variables.get("snapshots", [])
        self.snapshots.restore(progress["snapshot_epochs"], kept)
        progress["snapshot_epochs"] = self.snapshots.epochs
        if in_stage_2:
            self.method_state = variables.get("method", [])
        else:
            assign(self._augmentation_state(), variables.get("method", []))
        self._moments = variables["optimizer"]

    def _best_of(self, variables):
        """The weights of the epoch chosen so far, if there is one."""
        best = variables.get("best", [])
        if len(self.curve("regularization").get("epoch", ())) > 1:
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
        self.say("takes stage 1 from an earlier run")
        return True

    def _augmentation_state(self):
        """The variables that the augmentation is drawn with."""
        return [v for layer in self.augmentation for v in layer.variables]


def _last(values):
    return values[-1] if values else 0
