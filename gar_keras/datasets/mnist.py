"""MNIST, from the copy inside the package (see NOTICE for its licence)."""

from importlib import resources

import numpy as np

from gar_keras.datasets.base import Dataset
from gar_keras.datasets.files import check_md5, read_npz

# Of the file, whose arrays are those of the original idx files.
MD5 = "1645a3b44f673782419eaed6fa02cb86"


def load_mnist(data_dir=None):
    """Loads MNIST from inside the package, and checks its MD5.

    Args:
        data_dir: Not used.

    Returns:
        A `Dataset` with uint8 images `(m, 28, 28, 1)`.

    Raises:
        DataError: if the file was truncated or altered.

    Example:

    >>> mnist = load_mnist()
    >>> mnist.x_train.shape, mnist.x_train.dtype.name
    ((60000, 28, 28, 1), 'uint8')
    """
    path = resources.files("gar_keras") / "data" / "mnist.npz"
    check_md5(path.read_bytes(), MD5, path)
    arrays = read_npz(path, ("x_train", "y_train", "x_test", "y_test"))
    return Dataset(
        name="mnist",
        title="MNIST",
        x_train=arrays["x_train"][..., None],
        y_train=arrays["y_train"].astype("int64"),
        x_test=arrays["x_test"][..., None],
        y_test=arrays["y_test"].astype("int64"),
        num_classes=10,
        source="MNIST, pixel- and label-exact (MD5 of the original idx files)",
    )


def load_mnist_pairs(data_dir=None):
    """MNIST digits side by side: a task of 100 classes, 00 to 99.

    Each image of MNIST is the left half of one image; the right half is
    another one of the same part of MNIST, drawn with a fixed seed.

    Example:

    >>> pairs = load_mnist_pairs()
    >>> pairs.x_test.shape, pairs.num_classes
    ((10000, 28, 56, 1), 100)
    """
    mnist = load_mnist(data_dir)
    x_train, y_train = _pairs(mnist.x_train, mnist.y_train, seed=0)
    x_test, y_test = _pairs(mnist.x_test, mnist.y_test, seed=1)
    return Dataset(
        name="mnist-pairs",
        title="pairs of MNIST digits",
        x_train=x_train,
        y_train=y_train,
        x_test=x_test,
        y_test=y_test,
        num_classes=100,
        source=f"two images side by side of {mnist.source}",
    )


def _pairs(x, y, seed):
    right = np.random.default_rng(seed).permutation(len(x))
    return np.concatenate([x, x[right]], axis=2), 10 * y + y[right]
