"""Loaded data sets, and the errors that loading can raise."""

import hashlib
from dataclasses import dataclass

import numpy as np


class DataError(ValueError):
    """A data file that is missing, truncated, altered or of another format."""


@dataclass(frozen=True)
class Dataset:
    """Images and labels, with the name that figures made with them must show.

    Attributes:
        name: Key under which `load` finds it, e.g. `"mnist"`.
        title: Name shown beside every figure, e.g. `"small NORB (JPEG copy)"`.
        x_train, x_test: Image arrays `(m, height, width, channels)`.
        y_train, y_test: Class indices `(m,)`, int64, from 0 to
            `num_classes - 1`.
        num_classes: Number of classes `n`.
        source: One sentence: which files, and whether they are exact.
    """

    name: str
    title: str
    x_train: np.ndarray
    y_train: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    num_classes: int
    source: str

    def __post_init__(self):
        for part in ("train", "test"):
            x, y = getattr(self, f"x_{part}"), getattr(self, f"y_{part}")
            if x.ndim != 4:
                raise DataError(
                    f"x_{part} of {self.name!r} must be (m, height, width, "
                    f"channels). Received: shape={x.shape}"
                )
            if y.shape != (len(x),):
                raise DataError(
                    f"y_{part} of {self.name!r} must have one label for each "
                    f"of the {len(x)} images. Received: shape={y.shape}"
                )
            if x.shape[1:] != self.x_train.shape[1:]:
                raise DataError(
                    f"x_test of {self.name!r} must hold images of the shape "
                    f"of x_train's, {self.x_train.shape[1:]}. Received: "
                    f"{x.shape[1:]}"
                )
            if y.dtype != np.int64:
                raise DataError(
                    f"y_{part} of {self.name!r} must be int64. Received: "
                    f"dtype={y.dtype}"
                )
            if len(y) and (y.min() < 0 or y.max() >= self.num_classes):
                raise DataError(
                    f"Labels of {self.name!r} must lie in 0.."
                    f"{self.num_classes - 1}. Received: y_{part} from "
                    f"{y.min()} to {y.max()}"
                )


def check_md5(data, expected, what):
    """Raises `DataError` unless the MD5 of `data` is the expected one.

    Args:
        data: Bytes, or anything with the buffer protocol.
        expected: MD5 in hexadecimal.
        what: What the bytes are, for the message.
    """
    received = hashlib.md5(data, usedforsecurity=False).hexdigest()
    if received != expected:
        raise DataError(
            f"{what} is not the expected file: it was truncated or altered. "
            f"Received: md5={received}, expected md5={expected}. Put a clean "
            "copy in its place (for the copy inside the package: reinstall)."
        )
