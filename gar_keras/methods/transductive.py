"""What the methods share that infer classes on a graph of the images."""

import numpy as np

from gar_keras.utils.optional import optional
from gar_keras.utils.validation import check_array, check_labels


class GraphMethod:
    """A method without a network, on raw pixels.

    A subclass is a dataclass of its hyper-parameters and has `infer`.
    """

    def fit_predict(self, x_labeled, y_labeled, x_unlabeled, x_test, seed=0):
        """The classes of the test images, which have no part in the graph.

        Args:
            x_labeled: X_L, `(m_L, ...)`.
            y_labeled: Class indices `(m_L,)`.
            x_unlabeled: X_U, `(m_U, ...)`, in memory.
            x_test: `(m, ...)`.
            seed: Seed of what is drawn at random.

        Returns:
            Class indices `(m,)`.

        Raises:
            ValueError: if the arrays do not fit together.
            ImportError: if scikit-learn is not installed.
        """
        y = _checked_labels(x_labeled, y_labeled, x_unlabeled, x_test)
        x = np.concatenate([pixels(x_labeled), pixels(x_unlabeled)])
        return self.infer(x, y, pixels(x_test), seed)

    def infer(self, x, y, x_test, seed):
        """The classes of the test images.

        Args:
            x: X_L and X_U as rows of pixels, the labelled images first.
            y: Class indices of these, int64.
            x_test: The test images as rows of pixels.
            seed: Seed of what is drawn at random.
        """
        raise NotImplementedError


def pixels(images, dtype="float64"):
    """The images as a matrix `(m, pixels)`.

    Example:

    >>> pixels(np.zeros((3, 2, 2, 1), "uint8")).shape
    (3, 4)
    """
    return images.reshape(len(images), -1).astype(dtype)


def _checked_labels(x_labeled, y_labeled, x_unlabeled, x_test):
    check_array("x_labeled", x_labeled)
    like = ("x_labeled", x_labeled)
    check_array("x_unlabeled", x_unlabeled, like)
    check_array("x_test", x_test, like)
    return check_labels("y_labeled", y_labeled, len(x_labeled))


def scikit_learn(module):
    """A module of scikit-learn, such as `"neighbors"`."""
    return optional(f"sklearn.{module}", "A graph method", extra="experiments")
