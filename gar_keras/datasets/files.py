"""Data files: where they lie, and what is made of them once.

What is made of them lies in the folder named by the environment variable
`GAR_KERAS_CACHE`, else in the user's cache folder
(`gar_keras.utils.files.user_cache`); it can be deleted at any time.
"""

import hashlib
import json
import os
from pathlib import Path

import numpy as np

from gar_keras.datasets.base import DataError
from gar_keras.utils.files import NPZ_DAMAGE, replacing, user_cache


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


def read_npz(path, names):
    """Arrays of an `.npz` file by name, or `DataError` if it is damaged."""
    try:
        with open(path, "rb") as stream, np.load(stream) as archive:
            return {name: archive[name] for name in names}
    except NPZ_DAMAGE as error:
        raise DataError(
            f"{path} is not a readable .npz file with {', '.join(names)}: "
            f"{error}. Put a clean copy in its place."
        ) from error


def made_once(name, settings, keys, make):
    """Arrays that are made at the first call, and kept in `.npy` files.

    Args:
        name: What the names of the files begin with.
        settings: All that the arrays depend on, e.g. the MD5 of the files that
            they are made of, as JSON can hold it.
        keys: Names of the arrays.
        make: Function without arguments that gives a dict of them.

    Returns:
        A dict of memory-mapped arrays.
    """
    text = json.dumps(settings, sort_keys=True)
    stem = f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    folder = Path(os.environ.get("GAR_KERAS_CACHE") or user_cache())
    paths = {key: folder.expanduser() / f"{stem}-{key}.npy" for key in keys}

    def opened():
        return {key: np.load(p, mmap_mode="r") for key, p in paths.items()}

    try:
        return opened()
    # What is missing or cut short is made anew.
    except (OSError, EOFError, ValueError):
        arrays = make()
    for key, path in paths.items():
        with replacing(path, suffix=".npy") as temporary:
            np.save(temporary, arrays[key])
    return opened()
