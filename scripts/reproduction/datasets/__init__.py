"""Data sets of the paper and others, by name."""

from collections.abc import Callable

from gar_keras.datasets import load_mnist
from reproduction.datasets import norb, packages, svhn
from reproduction.datasets.infimnist import InfiMNIST

DATASETS: dict[str, Callable] = {
    "mnist": load_mnist,
    "mnist-pairs": packages.load_mnist_pairs,
    "norb": norb.load_norb,
    "norb-jpeg": norb.load_norb_jpeg,
    "svhn": svhn.load_svhn,
    "svhn-grey": svhn.load_svhn_grey,
    "digits": packages.load_digits,
    **packages.TABLES,
}

# Data sets whose loaders take a folder of files; others are in packages.
FROM_FILES = {"norb", "norb-jpeg", "svhn", "svhn-grey"}


def _infimnist(data_dir):
    images = InfiMNIST(data_dir)
    return images, images.source


def _svhn_extra(data_dir):
    source = "all training images and SVHN's extra set"
    return svhn.load_svhn_with_extra(data_dir), source


# Where X_U comes from, if not from the training images: functions of the folder
# of the data files that give images, and what they are.
UNLABELED = {"infimnist": _infimnist, "svhn-extra": _svhn_extra}


def load(name, data_dir=None):
    """Loads a `Dataset` of `DATASETS`, e.g. `"mnist"`.

    `data_dir` is the folder of the files, for those that come without a
    package; see `gar_keras.datasets.data_files.data_folder`.
    """
    if name in FROM_FILES:
        return DATASETS[name](data_dir)
    return DATASETS[name]()
