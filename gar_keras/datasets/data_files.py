"""Data files: where they lie, and whether they are as published."""

import gzip
import hashlib
import os
import zlib
from pathlib import Path

import numpy as np

from gar_keras.datasets.dataset import DataError
from gar_keras.utils.files import user_cache


def data_folder(data_dir=None):
    """The folder that holds the data files; it need not exist.

    Args:
        data_dir: A folder, or `None` for the folder named by the environment
            variable `GAR_KERAS_DATA` or, without that, the user's cache
            folder.

    Example:

    >>> data_folder("~/data") == Path.home() / "data"
    True
    """
    if data_dir is None:
        data_dir = os.environ.get("GAR_KERAS_DATA") or user_cache()
    return Path(data_dir).expanduser()


def check_md5(data, expected, what):
    """Raises `DataError` unless the MD5 of bytes is the expected one."""
    received = hashlib.md5(data, usedforsecurity=False).hexdigest()
    if received != expected:
        raise DataError(
            f"{what} is not the expected file: it was truncated or altered. "
            f"Received: md5={received}, expected md5={expected}. Put a clean "
            "copy in its place (for that inside the package: reinstall)."
        )


def read_unpacked(path, where_from=""):
    """The bytes of a file, unpacked if its name ends in `.gz`."""
    try:
        if path.suffix != ".gz":
            return path.read_bytes()
        with gzip.open(path) as file:
            return file.read()
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(
            f"{path} cannot be read: {error}. Put a clean copy in its place"
            f"{where_from}."
        ) from error


def read_npz(path, names):
    """Arrays of an `.npz` file by name, or `DataError` if it is damaged."""
    try:
        with open(path, "rb") as stream, np.load(stream) as archive:
            return {name: archive[name] for name in names}
    # NumPy raises many kinds for a damaged file, a folder or another file.
    except Exception as error:
        raise DataError(
            f"{path} is not a readable .npz file with {', '.join(names)}: "
            f"{error}. Put a clean copy in its place."
        ) from error
