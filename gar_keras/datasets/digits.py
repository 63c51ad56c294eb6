"""The digits of 8 x 8 pixels that come with scikit-learn: a quick try."""

import numpy as np

from gar_keras.datasets.base import Dataset
from gar_keras.utils.optional import optional

TITLE = "digits of 8 x 8 pixels"
NUM_TEST = 500


def load_digits(data_dir=None):
    """Loads scikit-learn's 1,797 digits, the last 500 as test images.

    Args:
        data_dir: Not used: the images come with scikit-learn.

    Returns:
        A `Dataset` with uint8 images `(m, 8, 8, 1)`.

    Raises:
        ImportError: if scikit-learn is not installed.

    Example:

    >>> digits = load_digits()
    >>> digits.x_train.shape, digits.x_test.shape
    ((1297, 8, 8, 1), (500, 8, 8, 1))
    """
    sklearn = optional("sklearn.datasets", "The digits")
    x, y = sklearn.load_digits(return_X_y=True)
    # The brightest pixel is a 16 there.
    x = np.round(x * (255 / 16)).astype("uint8").reshape(-1, 8, 8, 1)
    y = y.astype("int64")
    return Dataset(
        name="digits",
        title=TITLE,
        x_train=x[:-NUM_TEST],
        y_train=y[:-NUM_TEST],
        x_test=x[-NUM_TEST:],
        y_test=y[-NUM_TEST:],
        num_classes=10,
        source="scikit-learn's digits, the last 500 for testing",
    )
