"""MNIST, and the split into labelled and unlabelled images."""

from gar_keras.datasets.dataset import DataError, Dataset
from gar_keras.datasets.mnist import load_mnist
from gar_keras.datasets.splits import Split, make_split

__all__ = ["DataError", "Dataset", "Split", "load_mnist", "make_split"]
