"""Images as rows of raw pixels, for the methods that work on a graph."""

from gar_keras.utils.optional import optional
from gar_keras.utils.validation import check_array
from gar_keras.utils.validation import check_labels


def pixels(images, dtype="float64"):
    """The images as a matrix `(m, pixels)`.

    Example:

    >>> pixels(np.zeros((3, 2, 2, 1), "uint8")).shape
    (3, 4)
    """
    return images.reshape(len(images), -1).astype(dtype)


def check_task(x_labeled, y_labeled, x_unlabeled, x_test):
    """Returns the labels as int64, or raises if the arrays do not fit."""
    check_array("x_labeled", x_labeled)
    like = ("x_labeled", x_labeled)
    check_array("x_unlabeled", x_unlabeled, like)
    check_array("x_test", x_test, like)
    return check_labels("y_labeled", y_labeled, len(x_labeled))


def scikit_learn(module):
    """A module of scikit-learn, such as `"neighbors"`."""
    return optional(f"sklearn.{module}", "A graph method", extra="experiments")
