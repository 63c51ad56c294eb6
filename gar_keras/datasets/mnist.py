"""MNIST, from the copy inside the package (see NOTICE for its licence)."""

from importlib import resources

import numpy as np

from gar_keras.datasets.base import DataError
from gar_keras.datasets.base import Dataset
from gar_keras.datasets.base import check_md5
from gar_keras.datasets.files import data_folder
from gar_keras.datasets.files import read_arrays

# MD5 of the four original idx files: an 8 or 16 byte header, then the array.
IDX_MD5 = {
    "x_train": "6bbc9ace898e44ae57da46a324031adb",
    "y_train": "a25bea736e30d166cdddb491f175f624",
    "x_test": "2646ac647ad5339dbf082846283269ea",
    "y_test": "27ae3e4e09519cfbb04c329615203637",
}
SHAPES = {
    "x_train": (60000, 28, 28),
    "y_train": (60000,),
    "x_test": (10000, 28, 28),
    "y_test": (10000,),
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
    arrays = _read(path)
    for key, md5 in IDX_MD5.items():
        check_md5(_as_idx(arrays[key]), md5, f"{key} in {path}")
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


def _read(path):
    if not path.exists():
        raise DataError(
            f"No MNIST file. Received: {path}. Put Keras' mnist.npz there, or "
            "leave data_dir out to use the copy inside the package."
        )
    arrays = read_arrays(path, SHAPES)
    for key, shape in SHAPES.items():
        if arrays[key].shape != shape or arrays[key].dtype != np.uint8:
            raise DataError(
                f"{key} in {path} must be uint8 {shape}. Received: "
                f"{arrays[key].dtype} {arrays[key].shape}"
            )
    return arrays


def _as_idx(array):
    """The bytes of the idx file that holds this uint8 array."""
    magic = bytes([0, 0, 8, array.ndim])
    dims = np.array(array.shape, ">u4").tobytes()
    return magic + dims + array.tobytes()
