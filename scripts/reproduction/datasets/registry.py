"""The data sets and the sources of unlabelled images, by name."""

from collections.abc import Callable
from dataclasses import dataclass

from gar_keras.datasets import load_mnist
from reproduction.datasets import infimnist, norb, packages, svhn
from reproduction.datasets.mnist_pairs import load_mnist_pairs


@dataclass(frozen=True)
class Unlabeled:
    """Where X_U comes from.

    `suffix` stands behind the name of the data set; `loader`, of the folder of
    the data files, gives images in place of the training images, and `source`
    says what they are, if they do not tell it themselves.
    """

    suffix: str
    loader: Callable | None = None
    source: str | None = None


# Functions of the folder of the data files that give a `Dataset`.
DATASETS: dict[str, Callable] = {
    "mnist": load_mnist,
    "mnist-pairs": load_mnist_pairs,
    "norb": norb.load_norb,
    "norb-jpeg": norb.load_norb,
    "svhn": svhn.load_svhn,
    "svhn-grey": svhn.load_svhn_grey,
    "digits": packages.load_digits,
    **{table.name: table.load for table in packages.TABLES},
}

# The names of small NORB.
NORB = ("norb", "norb-jpeg")

UNLABELED = {
    "train": Unlabeled(""),
    "infimnist": Unlabeled(", X_U from InfiMNIST", infimnist.InfiMNIST),
    "svhn-extra": Unlabeled(
        " with the extra set",
        svhn.load_svhn_with_extra,
        "all training images and SVHN's extra set",
    ),
}
