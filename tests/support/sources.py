"""Examples in other forms than an array, as users have them."""

import keras
import numpy as np


class Source:
    """The rows of an array, of which each asking gets a copy."""

    def __init__(self, x):
        self.x, self.shape, self.dtype = x, x.shape, x.dtype

    def __len__(self):
        return len(self.x)

    def take(self, indices):
        assert isinstance(indices, np.ndarray)
        return self.x[indices].copy()


class Batches(keras.utils.PyDataset):
    """Arrays, or dicts of them, as a `PyDataset`."""

    def __init__(self, *parts, size=8):
        super().__init__()
        self.parts, self.size = parts if len(parts) > 1 else parts[0], size

    def __len__(self):
        return -(-len(keras.tree.flatten(self.parts)[0]) // self.size)

    def __getitem__(self, index):
        rows = slice(index * self.size, (index + 1) * self.size)
        return keras.tree.map_structure(lambda part: part[rows], self.parts)


def dataset(*parts, size=8):
    """The same as a `tf.data.Dataset`."""
    import tensorflow as tf

    parts = parts if len(parts) > 1 else parts[0]
    return tf.data.Dataset.from_tensor_slices(parts).batch(size)
