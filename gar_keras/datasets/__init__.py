"""Data sets of the paper; the split into labelled and unlabelled images."""

from gar_keras.datasets.base import DataError
from gar_keras.datasets.base import Dataset
from gar_keras.datasets.mnist import load_mnist
from gar_keras.datasets.splits import Split
from gar_keras.datasets.splits import make_split

__all__ = [
    "DataError",
    "Dataset",
    "Split",
    "load",
    "load_mnist",
    "make_split",
]

LOADERS = {"mnist": load_mnist}


def load(name, data_dir=None):
    """Loads a data set by name.

    Args:
        name: One of the keys of `LOADERS`, e.g. `"mnist"`.
        data_dir: Folder that holds the files. MNIST ships with the package
            and needs none.

    Returns:
        A `Dataset`.

    Raises:
        ValueError: if the name is unknown.
        DataError: if a file is missing, truncated or altered.
    """
    if name not in LOADERS:
        raise ValueError(
            f"Unknown data set. Received: name={name!r}. Allowed: "
            f"{', '.join(sorted(LOADERS))}"
        )
    return LOADERS[name](data_dir)
