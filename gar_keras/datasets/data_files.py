"""Data files: where they lie, and whether they are as published."""

import hashlib
import io
import os
from pathlib import Path

import numpy as np

from gar_keras.datasets.dataset import DataError
from gar_keras.utils.cache import user_cache

# Names of the arrays of a data set in one file.
ARRAYS = ("x_train", "y_train", "x_test", "y_test")


def data_folder(data_dir=None):
    """The folder that holds the data files; it need not exist.

    `None` is the folder named by the environment variable `GAR_KERAS_DATA` or,
    without that, the user's cache folder.

    Example:

    >>> data_folder("~/data") == Path.home() / "data"
    True
    """
    if data_dir is None:
        data_dir = os.environ.get("GAR_KERAS_DATA") or user_cache()
    return Path(data_dir).expanduser()


def md5_of(data):
    """The MD5 of bytes, in hexadecimal digits."""
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def check_md5(data, expected, what):
    """Raises `DataError` unless the MD5 of bytes is the expected one."""
    received = md5_of(data)
    if received != expected:
        raise DataError(
            f"{what} is damaged: it is not the expected file. Received: "
            f"md5={received}, expected md5={expected}. Put a clean copy in its "
            "place (for that inside the package: reinstall)."
        )


def read_npz(path, names, md5=None):
    """Arrays of an `.npz` file by name, or `DataError` if it has not got them.

    `md5` is that of the whole file, or `None` if it is not known.
    """
    if not path.exists():
        raise DataError(
            f"{path} is missing. Put it there, or name the folder that has it "
            "by --data-dir, the argument data_dir or GAR_KERAS_DATA."
        )
    content = path.read_bytes()
    if md5 is not None:
        check_md5(content, md5, path)
    try:
        with np.load(io.BytesIO(content)) as archive:
            return {name: archive[name] for name in names}
    # NumPy raises many kinds for a damaged file or another one.
    except Exception as error:
        raise DataError(
            f"{path} is damaged: no .npz file with {', '.join(names)} "
            f"({error}). Received: md5={md5_of(content)}. Put a clean copy in "
            "its place."
        ) from error
