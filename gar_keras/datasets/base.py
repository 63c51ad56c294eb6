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
            if x.ndim not in (2, 4) or x.shape[1:] != self.x_train.shape[1:]:
                raise DataError(
                    f"x_{part} of {self.name!r} must be (m, height, width, "
                    "channels) or (m, features), alike in both parts. "
                    f"Received: {x.shape}"
                )
            if y.shape != (len(x),) or y.dtype != np.int64:
                raise DataError(
                    f"y_{part} of {self.name!r} must have one int64 label for "
                    f"each of the {len(x)} images. Received: {y.dtype} "
                    f"{y.shape}"
                )
            if len(y) and (y.min() < 0 or y.max() >= self.num_classes):
                raise DataError(
                    f"Labels of {self.name!r} must lie in 0.."
                    f"{self.num_classes - 1}. Received: y_{part} from "
                    f"{y.min()} to {y.max()}"
                )
