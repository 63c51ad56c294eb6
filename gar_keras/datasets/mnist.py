"""MNIST, from the copy inside the package (see NOTICE for its licence)."""

from importlib import resources

import numpy as np

from gar_keras.datasets.base import Dataset
from gar_keras.datasets.files import check_md5, data_folder, read_npz

TITLE = "MNIST"
PAIRS_TITLE = "pairs of MNIST digits"

# MD5 of the four original idx files: an 8 or 16 byte header, then the array.
IDX_MD5 = {
    "x_train": "6bbc9ace898e44ae57da46a324031adb",
    "y_train": "a25bea736e30d166cdddb491f175f624",
    "x_test": "2646ac647ad5339dbf082846283269ea",
    "y_test": "27ae3e4e09519cfbb04c329615203637",
}


def load_mnist(data_dir=None):
    """Loads MNIST and checks every image and label against the original MD5.

    Args:
        data_dir: Folder with another `mnist.npz` (Keras' own format). The
            copy inside the package by default.

    Returns:
        A `Dataset` with uint8 images `(m, 28, 28, 1)`.

    Raises:
        DataError: if the file is missing, truncated or altered.

    Example:

    >>> mnist = load_mnist()
    >>> mnist.x_train.shape, mnist.x_train.dtype.name
    ((60000, 28, 28, 1), 'uint8')
    """
    if data_dir is None:
        path = resources.files("gar_keras") / "data" / "mnist.npz"
    else:
        path = data_folder(data_dir) / "mnist.npz"
    arrays = read_npz(path, IDX_MD5)
    for key, md5 in IDX_MD5.items():
        check_md5(_as_idx(arrays[key]), md5, f"{key} in {path}")
    return Dataset(
        name="mnist",
        title=TITLE,
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

    Args:
        data_dir: As for `load_mnist`.

    Returns:
        A `Dataset` with uint8 images `(m, 28, 56, 1)`.

    Raises:
        DataError: as `load_mnist`.

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
        title=PAIRS_TITLE,
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


def _as_idx(array):
    """The bytes of the idx file that holds this uint8 array."""
    magic = bytes([0, 0, 8, array.ndim])
    dims = np.array(array.shape, ">u4").tobytes()
    return magic + dims + array.tobytes()
