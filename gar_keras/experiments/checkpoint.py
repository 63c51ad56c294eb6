"""The state of an unfinished run, so that a killed one goes on exactly."""

import json
from pathlib import Path
import zipfile
import zlib

import filelock
import keras
import numpy as np

from gar_keras.experiments.records import RecordError
from gar_keras.experiments.records import write_atomically

# What NumPy can raise for a damaged file.
_DAMAGES = (
    OSError,
    ValueError,
    TypeError,
    KeyError,
    EOFError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)

_NAMES = "names of the arrays"


class Checkpoint:
    """One file with a run's curves and every variable it depends on.

    Args:
        path: Path of the file.
    """

    def __init__(self, path):
        self.path = Path(path)

    @classmethod
    def of_run(cls, record):
        """The state of the run whose record will have this path."""
        record = Path(record)
        return cls(record.parent / ".checkpoints" / f"{record.stem}.npz")

    def lock(self):
        """The lock that whoever makes the run has to hold.

        The system lifts it when its holder dies, however it dies.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        return filelock.FileLock(self.path.with_suffix(".lock"))

    def save(self, progress, **variables):
        """Writes the state, whole or not at all.

        Args:
            progress: Dict of what `json` can hold.
            **variables: Lists of Keras variables or arrays, by name.
        """
        arrays = {
            f"{name}/{i}": keras.ops.convert_to_numpy(value)
            for name, values in variables.items()
            for i, value in enumerate(values)
        }
        # Damage to the directory of the archive can hide an array.
        text = np.array(json.dumps({**progress, _NAMES: list(arrays)}))
        write_atomically(
            self.path,
            lambda file: np.savez(file, progress=text, **arrays),
            mode="wb",
        )

    def load(self):
        """The saved `(progress, variables)`, or `None` if there is no state.

        A file that cannot be read counts as none: the run starts afresh.
        """
        try:
            # Opened here, since np.load leaves a bad file open.
            with open(self.path, "rb") as file, np.load(file) as archive:
                arrays = {key: archive[key] for key in archive.files}
            progress = json.loads(str(arrays.pop("progress")))
        except _DAMAGES:
            return None
        if progress.pop(_NAMES, list(arrays)) != list(arrays):
            return None
        variables = {}
        for key, value in arrays.items():
            variables.setdefault(key.split("/")[0], []).append(value)
        return progress, variables

    def read_bytes(self):
        """The file's content, to be sent elsewhere; `None` without a file."""
        try:
            return self.path.read_bytes()
        except FileNotFoundError:
            return None

    def write_bytes(self, content):
        """Writes a file's content that came from elsewhere, whole or not."""
        write_atomically(self.path, lambda file: file.write(content), mode="wb")

    def delete(self):
        """Removes the file, if it is there."""
        self.path.unlink(missing_ok=True)


def assign(variables, values):
    """Gives each variable its saved value."""
    if len(variables) != len(values):
        raise RecordError(
            f"The saved state has {len(values)} variables, but the run has "
            f"{len(variables)}: it comes from another version. Delete the "
            "folder .checkpoints in the results folder to start afresh."
        )
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)
