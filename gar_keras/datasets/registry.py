"""The data sets and the sources of unlabelled images, by name."""

from collections.abc import Callable
from dataclasses import dataclass

from gar_keras.datasets import infimnist, mnist, norb, packages, svhn


@dataclass(frozen=True)
class Entry:
    """A data set. Called with the folder of the data files, it loads it.

    Further arguments are those of its loader. `note` says where it comes from,
    or what it stands in for.
    """

    title: str
    loader: Callable
    note: str = "in the package"

    def __call__(self, data_dir=None, **options):
        return self.loader(data_dir, **options)


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


DATASETS = {
    "mnist": Entry(mnist.TITLE, mnist.load_mnist),
    "mnist-pairs": Entry(mnist.PAIRS_TITLE, mnist.load_mnist_pairs),
    "norb": Entry(norb.TITLE, norb.load_norb, "official files"),
    "norb-jpeg": Entry(norb.COPY_TITLE, norb.load_norb, "a stand-in for norb"),
    "svhn": Entry(svhn.TITLE, svhn.load_svhn, "downloaded"),
    "svhn-grey": Entry(
        svhn.GREY_TITLE, svhn.load_svhn_grey, "a stand-in for svhn"
    ),
    "digits": Entry(
        packages.DIGITS_TITLE, packages.load_digits, "for a quick try"
    ),
    **{
        table.name: Entry(table.title, table.load, table.note)
        for table in packages.TABLES
    },
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
