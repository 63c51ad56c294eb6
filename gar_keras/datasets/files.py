"""Data files: where they lie, their download, and what is made of them once.

Data files lie in `data_dir`; if none is given, in the folder named by the
environment variable `GAR_KERAS_DATA`, else in the user's cache folder
(`gar_keras.utils.files.user_cache`). What is made of them lies in the folder
named by `GAR_KERAS_CACHE`, else in the user's cache folder; it can be deleted
at any time.
"""

import hashlib
import json
import os
from pathlib import Path

import numpy as np

from gar_keras.datasets.base import DataError
from gar_keras.utils.files import NPZ_DAMAGE, replacing, user_cache
from gar_keras.utils.optional import optional


def data_folder(data_dir=None):
    """The folder that holds the data files; it need not exist.

    Args:
        data_dir: A folder, or `None` for the folder named by the environment
            variable `GAR_KERAS_DATA` or, without that, the user's folder.

    Example:

    >>> data_folder("~/data") == Path.home() / "data"
    True
    """
    if data_dir is None:
        data_dir = os.environ.get("GAR_KERAS_DATA") or user_cache()
    folder = Path(data_dir).expanduser()
    if folder.exists() and not folder.is_dir():
        raise DataError(
            f"data_dir must be a folder. Received: data_dir={str(folder)!r}. "
            "Give the folder that holds the files."
        )
    return folder


def fetch(name, url, md5, data_dir=None):
    """The path of a published file, downloaded unless a sound one is there.

    Args:
        name: File name, without a folder.
        url: Where it is published.
        md5: Its MD5, 32 hexadecimal digits.
        data_dir: As in `data_folder`.

    Raises:
        DataError: if the download fails.
        ImportError: if pooch, which downloads it, is not installed.
    """
    folder = data_folder(data_dir)
    pooch = optional("pooch", f"The download of {name}")
    try:
        return Path(pooch.retrieve(url, f"md5:{md5}", name, folder))
    except (OSError, ValueError) as error:
        raise DataError(
            f"Could not download {name} from {url}: {error}. Try again, or "
            f"put the file in {folder} (--data-dir names another folder)."
        ) from error


def check_md5(data, expected, what):
    """Raises `DataError` unless the MD5 of bytes is the expected one."""
    received = hashlib.md5(data, usedforsecurity=False).hexdigest()
    if received != expected:
        raise DataError(
            f"{what} is not the expected file: it was truncated or altered. "
            f"Received: md5={received}, expected md5={expected}. Put a clean "
            "copy in its place (for the copy inside the package: reinstall)."
        )


def sha256_of(path):
    """The SHA-256 of a file, in hexadecimal."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


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
        settings: All that the arrays depend on, e.g. the SHA-256 of the files
            that they are made of, as JSON can hold it. Its fingerprint is part
            of the names.
        keys: Names of the arrays.
        make: Function without arguments that gives a dict of them.

    Returns:
        A dict of memory-mapped arrays.

    Raises:
        DataError: if they cannot be written.
    """
    text = json.dumps(settings, sort_keys=True)
    stem = f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    folder = os.environ.get("GAR_KERAS_CACHE") or user_cache()
    folder = Path(folder).expanduser()
    paths = {key: folder / f"{stem}-{key}.npy" for key in keys}
    try:
        return _mapped(paths)
    # What is missing or cut short is made anew.
    except (OSError, EOFError, ValueError):
        arrays = make()
    try:
        for key, path in paths.items():
            with replacing(path, suffix=".npy") as temporary:
                np.save(temporary, arrays[key])
        return _mapped(paths)
    except OSError as error:
        raise DataError(
            f"Could not write to {folder}: {error}. Make room there, or set "
            "the environment variable GAR_KERAS_CACHE to another folder."
        ) from error


def _mapped(paths):
    return {key: np.load(path, mmap_mode="r") for key, path in paths.items()}
