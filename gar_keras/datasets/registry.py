"""The data sets and the sources of unlabelled images, by name.

Loaders are named by their path, `"module:function"` in this package, and are
imported when they are first called.
"""

import importlib
from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """A data set. Called with the folder of the data files, it loads it.

    Further arguments are those of its loader.

    Attributes:
        title: Its name for a reader.
        path: Its loader.
        note: What to know before it is chosen: where it comes from, or what
            it stands in for.
    """

    title: str
    path: str
    note: str = "in the package"

    def __call__(self, data_dir=None, **options):
        return load_path(self.path)(data_dir, **options)


@dataclass(frozen=True)
class Unlabeled:
    """Where X_U comes from.

    Attributes:
        suffix: What to put behind the name of the data set.
        path: Loader of an image source, or `None` for the training images.
        beside: What the images are, if they are put behind the training
            images; `None` if they take their place.
    """

    suffix: str
    path: str | None = None
    beside: str | None = None

    def __call__(self, data_dir=None, **options):
        return load_path(self.path)(data_dir, **options)


def load_path(path):
    """The function of a path.

    Example:

    >>> load_path("mnist:load_mnist").__name__
    'load_mnist'
    """
    module, _, name = path.partition(":")
    package = __name__.rpartition(".")[0]
    return getattr(importlib.import_module(f"{package}.{module}"), name)


_NORB = "norb:load_norb"

DATASETS = {
    "mnist": Entry("MNIST", "mnist:load_mnist"),
    "mnist-pairs": Entry("pairs of MNIST digits", "mnist:load_mnist_pairs"),
    "norb": Entry("small NORB", _NORB, "official files"),
    "norb-jpeg": Entry("small NORB (JPEG copy)", _NORB, "a stand-in for norb"),
    "svhn": Entry("SVHN", "svhn:load_svhn", "downloaded"),
    "svhn-grey": Entry(
        "SVHN-grey", "svhn:load_svhn_grey", "a stand-in for svhn"
    ),
    "digits": Entry(
        "digits of 8 x 8 pixels", "digits:load_digits", "for a quick try"
    ),
}

# The names of small NORB.
NORB = tuple(name for name, entry in DATASETS.items() if entry.path == _NORB)

UNLABELED = {
    "train": Unlabeled(""),
    "infimnist": Unlabeled(", X_U from InfiMNIST", "infimnist:load_infimnist"),
    "svhn-extra": Unlabeled(
        " with the extra set", "svhn:load_svhn_extra", "SVHN's extra set"
    ),
}
