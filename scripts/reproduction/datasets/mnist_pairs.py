"""Pairs of MNIST digits: a task of 100 classes."""

import numpy as np

from gar_keras.datasets import Dataset, load_mnist


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
