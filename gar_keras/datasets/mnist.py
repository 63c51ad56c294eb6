"""MNIST, from the package (see NOTICE for its licence) or a folder."""

from importlib import resources
from pathlib import Path

import numpy as np

from gar_keras.datasets.data_files import (
    check_md5,
    data_folder,
    read_npz,
    read_unpacked,
)
from gar_keras.datasets.dataset import DataError, Dataset

# Of the file, whose arrays are those of the original idx files.
MD5 = "1645a3b44f673782419eaed6fa02cb86"

NPZ = "mnist.npz"
# The original files, and their MD5 unpacked: of a head and an array.
IDX = {
    "x_train": ("train-images-idx3-ubyte", "6bbc9ace898e44ae57da46a324031adb"),
    "y_train": ("train-labels-idx1-ubyte", "a25bea736e30d166cdddb491f175f624"),
    "x_test": ("t10k-images-idx3-ubyte", "2646ac647ad5339dbf082846283269ea"),
    "y_test": ("t10k-labels-idx1-ubyte", "27ae3e4e09519cfbb04c329615203637"),
}


def load_mnist(data_dir=None):
    """Loads MNIST, and checks its MD5.

    Args:
        data_dir: `None` for the copy inside the package; or a folder that holds
            the four original files, packed or not, or `mnist.npz` with the
            same arrays, as Keras has it.

    Returns:
        A `Dataset` with uint8 images `(m, 28, 28, 1)`.

    Raises:
        DataError: if a file is missing, truncated or altered, or if its images
            are others, such as those of Fashion-MNIST.

    Example:

    >>> mnist = load_mnist()
    >>> mnist.x_train.shape, mnist.x_train.dtype.name
    ((60000, 28, 28, 1), 'uint8')
    """
    if data_dir is not None:
        arrays = _read_folder(data_folder(data_dir))
    else:
        path = resources.files("gar_keras") / "data" / NPZ
        check_md5(path.read_bytes(), MD5, path)
        arrays = read_npz(path, IDX)
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


def _read_folder(folder):
    """MNIST's arrays from `mnist.npz` in a folder, or the original files."""
    npz = folder / NPZ
    if not npz.exists():
        return {
            name: _read_idx(folder, file, md5)
            for name, (file, md5) in IDX.items()
        }
    arrays = read_npz(npz, IDX)
    for name, array in arrays.items():
        head = bytes([0, 0, 8, array.ndim])
        head += np.array(array.shape, ">u4").tobytes()
        check_md5(head + array.tobytes(), IDX[name][1], f"{name} of {npz}")
    return arrays


def _read_idx(folder, name, md5):
    """The array of an original file, of whichever of its names is there."""
    # Some copies have a dot in front of "idx".
    names = [name, name.replace("-idx", ".idx")]
    paths = [folder / f"{name}{end}" for name in names for end in ("", ".gz")]
    path = next(filter(Path.exists, paths), None)
    if path is None:
        raise DataError(
            f"No MNIST in {folder}. Looked for {NPZ}, and for {name}, plain or "
            ".gz. Put it there, or name no folder (--data-dir) to have the "
            "copy inside the package."
        )
    content = read_unpacked(path, md5)
    shape = np.frombuffer(content, ">u4", count=content[3], offset=4)
    array = np.frombuffer(content, "u1", offset=4 + 4 * len(shape))
    return array.reshape(shape).copy()
