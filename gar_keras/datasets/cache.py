"""Cached files made from data files, such as preprocessed images.

They lie in the folder named by the environment variable `GAR_KERAS_CACHE`;
without it, in the folder of the data files if that can be written, else in the
user's cache folder (`gar_keras.utils.files.user_cache`).

A file made from others carries a fingerprint of all that it depends on, in its
name and inside. It is written under another name first, then renamed, and
HDF5 keeps a checksum of all that is in it. So one that is stale, cut short or
damaged is never used; it is made anew. They can be deleted at any time.
"""

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np

from gar_keras.datasets.base import DataError
from gar_keras.datasets.download import data_folder, lock
from gar_keras.utils.files import delete_leftovers, replacing, user_cache

# From this version of its format on, HDF5 has checksums over metadata too. In
# older ones, one flipped bit there can yield other data without any error.
_CHECKED = ("v110", "v110")


def cache_folders(data_dir=None):
    """The folders in which files made from the data may lie.

    They are looked for in all of these, in this order, and written to the
    first that can be written. A folder without any write permission counts as
    read-only even for root.

    Args:
        data_dir: As in `data_folder`.

    Returns:
        A list of `Path`: the folder named by the environment variable
        `GAR_KERAS_CACHE` alone or, without that, the folder of the data files
        and the user's folder.
    """
    chosen = os.environ.get("GAR_KERAS_CACHE")
    if chosen:
        return [Path(chosen).expanduser()]
    return list(dict.fromkeys([data_folder(data_dir), user_cache()]))


def fingerprint(paths, settings):
    """SHA-256 over the content of files and over settings.

    Args:
        paths: Paths of files. Their names count, their folders do not.
        settings: What JSON can hold, e.g. a dict.

    Returns:
        64 hexadecimal digits.

    Example:

    >>> fingerprint([], {"seed": 0})[:8]
    'de7d7744'
    """
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for path in paths:
        with open(path, "rb") as stream:
            content = hashlib.file_digest(stream, "sha256")
        digest.update(f"|{path.name}|{content.hexdigest()}".encode())
    return digest.hexdigest()


@dataclass(frozen=True)
class Cached:
    """An HDF5 file made once from the data, and then read.

    Args:
        name: What its file name begins with.
        fingerprint: `fingerprint` of all that its content depends on.
        write: `write(file)` fills an open, empty `h5py.File`, by means of
            `create_checked`.
        read: `read(path)` returns what is wanted of it. It raises `OSError`,
            `KeyError` or `ValueError` if the file is damaged.
    """

    name: str
    fingerprint: str
    write: Callable
    read: Callable

    def load(self, data_dir=None):
        """Reads the file, made first if there is none that is sound.

        Args:
            data_dir: As in `data_folder`.

        Returns:
            What `read` returns.

        Raises:
            DataError: if the data are bad, or if the file cannot be written.
        """
        name = f"{self.name}-{self.fingerprint[:16]}.h5"
        folders = cache_folders(data_dir)
        for folder in folders:
            content = self._read_sound(folder / name)
            if content is not None:
                return content
        path = _first_writable(folders) / name
        try:
            with lock(path):
                # Another process may have made it while this one waited.
                content = self._read_sound(path)
                if content is None:
                    self._make(path)
        except (OSError, RuntimeError) as error:
            raise DataError(
                f"Could not write {path}: {error}. Make room there, or set "
                "the environment variable GAR_KERAS_CACHE to a folder with "
                "room."
            ) from error
        return self.read(path) if content is None else content

    def _read_sound(self, path):
        """Content by `read`, or `None` if the file is absent or unsound."""
        try:
            with h5py.File(path, "r") as file:
                same = file.attrs["fingerprint"] == self.fingerprint.encode()
            return self.read(path) if same else None
        except (OSError, KeyError, ValueError, RuntimeError):
            return None

    def _make(self, path):
        delete_leftovers(path)
        with replacing(path) as temporary:
            with h5py.File(temporary, "w", libver=_CHECKED) as file:
                self.write(file)
                # Of fixed length: strings of any length have no checksum.
                file.attrs["fingerprint"] = np.bytes_(self.fingerprint)


def create_checked(file, key, shape, dtype, per_chunk):
    """An empty data set in an HDF5 file, with a checksum for every chunk.

    Args:
        file: Open `h5py.File`.
        key: Its name.
        shape: Its shape.
        dtype: Its dtype.
        per_chunk: Rows in a chunk, at most.

    Returns:
        The `h5py.Dataset`.
    """
    chunks = (min(per_chunk, shape[0]), *shape[1:])
    return file.create_dataset(
        key, shape, dtype, chunks=chunks, fletcher32=True
    )


def _first_writable(folders):
    for folder in folders:
        if _is_writable(folder):
            return folder
    raise DataError(
        "No folder for files made from the data can be written. Received: "
        f"{', '.join(map(str, folders))}. Set the environment variable "
        "GAR_KERAS_CACHE to one that can."
    )


def _is_writable(folder):
    while not folder.exists():
        folder = folder.parent
    # root may write to any folder: go by what its owner wants.
    wanted = folder.stat().st_mode & 0o222
    return bool(wanted) and os.access(folder, os.W_OK | os.X_OK)
