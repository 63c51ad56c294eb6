"""The state of an unfinished run, so that a killed one goes on exactly."""

import contextlib
import json
import reprlib
from pathlib import Path

import filelock
import keras
import numpy as np
from pydantic import ValidationError

from gar_keras.experiments.checked import in_one_line
from gar_keras.experiments.records import RecordError
from gar_keras.utils.files import NPZ_DAMAGE, write_atomically

# What a sound file of another version can raise where it is taken up.
_MISFITS = (AttributeError, IndexError, KeyError, TypeError, ValueError)


class Checkpoint:
    """One file with a run's curves and every variable it depends on.

    The file says whose state it is, and is not taken for another run's.

    Args:
        path: Path of the file.
        fingerprint: That of the experiment.
        seed: Seed of the run.
    """

    def __init__(self, path, fingerprint, seed):
        self.path = Path(path)
        self.owner = {"fingerprint": fingerprint, "seed": seed}
        # Path of a file that is copied to this one where there is none.
        self.origin = None

    @classmethod
    def of_run(cls, experiment, seed, results):
        """The state of a run, by the folder of its record."""
        record = Path(results) / experiment.file_name(seed)
        path = record.parent / ".checkpoints" / f"{record.stem}.npz"
        return cls(path, experiment.fingerprint(), seed)

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
        state = {
            "owner": self.owner,
            "progress": progress,
            # Damage to the directory of the archive can hide an array.
            "arrays": list(arrays),
        }
        text = np.array(json.dumps(state))
        write_atomically(
            self.path,
            lambda file: np.savez(file, state=text, **arrays),
            mode="wb",
        )

    def load(self):
        """The saved `(progress, variables)`, or `None` if there is no state.

        A damaged file counts as none: the run starts afresh.

        Raises:
            RecordError: if the file cannot be opened, or if it is the state
                of another run or version.
        """
        content = self._content()
        if content is None:
            return None
        state, arrays = content
        with self.taken_up():
            owner, progress = state["owner"], state["progress"]
            if state["arrays"] != list(arrays):
                return None
        if owner != self.owner:
            raise RecordError(
                f"{self.path} is the state of another run. Received: "
                f"{_words(owner)}, expected {_words(self.owner)}. "
                f"{self._advice()}"
            )
        variables = {}
        for key, value in arrays.items():
            variables.setdefault(key.split("/")[0], []).append(value)
        return progress, variables

    def _content(self):
        """What the file holds, `(state, arrays)`; `None` if it is damaged."""
        try:
            # Opened here, since np.load leaves a bad file open.
            file = open(self.path, "rb")
        except FileNotFoundError:
            return None
        except OSError as e:
            raise self._unreadable(e) from e
        try:
            with file, np.load(file) as archive:
                arrays = {key: archive[key] for key in archive.files}
        except MemoryError as e:
            raise self._unreadable(e) from e
        except NPZ_DAMAGE:
            return None
        with self.taken_up():
            return json.loads(str(arrays.pop("state"))), arrays

    def _unreadable(self, error):
        return RecordError(
            f"{self.path} cannot be read as a saved state "
            f"({str(error) or type(error).__name__}). {self._advice()}"
        )

    def _advice(self):
        files = "it" if self.origin is None else f"it and {self.origin}"
        return f"Delete {files} to start afresh."

    @contextlib.contextmanager
    def taken_up(self):
        """Names the file in what goes wrong while its content is taken up."""
        try:
            yield
        except RecordError:
            raise
        except _MISFITS as e:
            reason = in_one_line(e) if isinstance(e, ValidationError) else e
            reason = next(iter(str(reason).splitlines()), type(e).__name__)
            raise RecordError(
                f"{self.path} does not fit the run ({reason}): it comes from "
                f"another version. {self._advice()}"
            ) from e

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
    """Gives each variable its saved value; a `ValueError` if they do not fit.

    Nothing is assigned unless all of them fit.
    """
    shapes = [tuple(v.shape) for v in variables]
    saved = [np.shape(value) for value in values]
    if saved != shapes:
        raise ValueError(
            f"it has {len(saved)} variables of shapes {_short(saved)}, but "
            f"the run has {len(shapes)} of shapes {_short(shapes)}"
        )
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)


def _short(shapes):
    return reprlib.repr(shapes)


def _words(owner):
    return ", ".join(f"{name}={value!r}" for name, value in owner.items())
