"""MNIST, from the package (see NOTICE for its licence)."""

from importlib import resources

from gar_keras.datasets.data_files import ARRAYS, read_npz
from gar_keras.datasets.dataset import Dataset

# The file's arrays are those of the original idx files.
MD5 = "1645a3b44f673782419eaed6fa02cb86"


def load_mnist():
    """Loads MNIST, and checks its MD5.

    Returns:
        A `Dataset` with uint8 images `(m, 28, 28, 1)`.

    Raises:
        DataError: if the file in the package is damaged.

    Example:

    >>> mnist = load_mnist()
    >>> mnist.x_train.shape, mnist.x_train.dtype.name
    ((60000, 28, 28, 1), 'uint8')
    """
    path = resources.files("gar_keras") / "data" / "mnist.npz"
    arrays = read_npz(path, ARRAYS, MD5)
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
