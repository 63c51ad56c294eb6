"""Loaded data sets, and the error that loading can raise."""

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
        x_train, x_test: Image arrays `(m, height, width, channels)`, or
            features `(m, f)`.
        y_train, y_test: Class indices `(m,)`, int64, from 0 to
            `num_classes - 1`; in `y_train` -1 where the label is not known.
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
