"""Data sets of the paper and others, by name."""

from collections.abc import Callable
from typing import NamedTuple

from gar_keras.datasets import DataError, load_mnist
from gar_keras.utils.validation import check_choice
from reproduction.datasets import packages, svhn
from reproduction.datasets.infimnist import InfiMNIST
from reproduction.datasets.norb import load_norb

DATASETS: dict[str, Callable] = {
    "mnist": load_mnist,
    "mnist-pairs": packages.load_mnist_pairs,
    "norb": load_norb,
    "norb-jpeg": load_norb,
    "svhn": svhn.load_svhn,
    "svhn-grey": svhn.load_svhn_grey,
    "digits": packages.load_digits,
    **packages.TABLES,
}

# Their loaders take the folder of the files; the others come with a package.
FROM_FILES = {"norb", "norb-jpeg", "svhn", "svhn-grey"}


class Unlabeled(NamedTuple):
    """Where X_U comes from.

    `suffix` stands behind the name of the data set. `load`, of the folder of
    the data files, gives images in place of the training images, and what they
    are.
    """

    suffix: str
    load: Callable | None = None


def _infimnist(data_dir):
    images = InfiMNIST(data_dir)
    return images, images.source


def _svhn_extra(data_dir):
    source = "all training images and SVHN's extra set"
    return svhn.load_svhn_with_extra(data_dir), source


UNLABELED = {
    "train": Unlabeled(""),
    "infimnist": Unlabeled(", X_U from InfiMNIST", _infimnist),
    "svhn-extra": Unlabeled(" with the extra set", _svhn_extra),
}


def load(name, data_dir=None):
    """Loads a data set by name.

    Args:
        name: One of the keys of `DATASETS`, e.g. `"mnist"`.
        data_dir: Folder that holds the files; see
            `gar_keras.datasets.data_files.data_folder`. What comes with a
            Python package, as MNIST does, takes none.

    Returns:
        A `Dataset`.

    Raises:
        ValueError: if the name is unknown.
        DataError: if a file is missing, truncated or altered, or if the files
            are those of a data set of another name.
    """
    check_choice("name", name, sorted(DATASETS))
    if name not in FROM_FILES:
        if data_dir is not None:
            raise DataError(
                f"The data set {name} comes with a Python package. Received: "
                f"data_dir={str(data_dir)!r}. Leave the folder out."
            )
        return DATASETS[name]()
    dataset = DATASETS[name](data_dir)
    if dataset.name != name:
        raise DataError(
            f"The files are {dataset.title}, which goes by the name "
            f"{dataset.name!r}. Received: name={name!r}. Ask for it by its own "
            "name, or name the folder of the other files."
        )
    return dataset
