"""What a run can be asked for beside its experiment and its seed."""

from dataclasses import dataclass, fields

from gar_keras.utils import cli


@dataclass(frozen=True)
class RunnerOptions:
    """Options of `runner.run`, with the texts of the command lines.

    Example:

    >>> RunnerOptions(save_models=True).keep_state
    False
    """

    data_dir: cli.Folder = None
    """Folder of the data files, for data that are not in the package."""
    save_models: bool = False
    """Save the model of the validation-chosen epoch beside its record."""
    tensorboard: cli.Folder = None
    """Folder for TensorBoard logs of stage 2 (needs tensorboard)."""
    share_stage_1: bool = False
    """Keep the end of stage 1 in the folder .checkpoints of the results, and
    take it up in runs that have the same stage 1, such as GAR and its
    rivals."""
    keep_state: bool = False
    """Keep the state at the end of each run in the folder .checkpoints of the
    results, and go on from it in a run of more epochs. Not for a rival, nor
    a rate or warm-up that depends on their number."""

    @classmethod
    def of(cls, holder):
        """The options that an object has under the same names."""
        return cls(**{f.name: getattr(holder, f.name) for f in fields(cls)})


# What these options leave on the machine of the run.
_LEFT_BEHIND = {
    "tensorboard": "logs",
    "keep_state": "states",
    "share_stage_1": "ends of stage 1",
}


def check_for_cluster(options, spelling=str):
    """Raises `ValueError` if runs on a cluster would leave files on it.

    Args:
        options: `RunnerOptions`, or an object that has them.
        spelling: Function from the name of an option to what the message
            calls it.

    Example:

    >>> check_for_cluster(RunnerOptions(save_models=True))
    """
    for name, files in _LEFT_BEHIND.items():
        if getattr(options, name):
            raise ValueError(
                f"{spelling(name)} cannot be had with {spelling('ray')}: the "
                f"{files} would stay on the machines of the cluster. Leave one "
                "of them out."
            )
