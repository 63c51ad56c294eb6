"""Data sets of the paper; the split into labelled and unlabelled images."""

from gar_keras.datasets.base import DataError, Dataset
from gar_keras.datasets.infimnist import InfiMNIST
from gar_keras.datasets.mnist import load_mnist
from gar_keras.datasets.registry import DATASETS, UNLABELED
from gar_keras.datasets.splits import Split, make_split
from gar_keras.utils.validation import check_choice

__all__ = [
    "DATASETS",
    "UNLABELED",
    "DataError",
    "Dataset",
    "InfiMNIST",
    "Split",
    "load",
    "load_mnist",
    "make_split",
]


def load(name, data_dir=None, **options):
    """Loads a data set by name.

    Args:
        name: One of the keys of `DATASETS`, e.g. `"mnist"`.
        data_dir: Folder that holds the files; see
            `gar_keras.datasets.files.data_folder`. Without one, MNIST is that
            inside the package; what comes with another package takes none.
        **options: Further arguments of its loader, e.g. `preprocessing` of
            `load_norb`.

    Returns:
        A `Dataset`.

    Raises:
        ValueError: if the name is unknown.
        DataError: if a file is missing, truncated or altered, or if the files
            are those of a data set of another name.
    """
    check_choice("name", name, sorted(DATASETS))
    dataset = DATASETS[name](data_dir, **options)
    if dataset.name != name:
        raise DataError(
            f"The files are {dataset.title}, which goes by the name "
            f"{dataset.name!r}. Received: name={name!r}. Ask for it by its own "
            "name, or name the folder of the other files."
        )
    return dataset
