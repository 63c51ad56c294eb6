"""Streams: batches of examples one after the other, with no access by index.

A `tf.data.Dataset` or a `keras.utils.PyDataset`, of which memory holds a few
batches at a time.
"""

import itertools
import sys

import keras
import numpy as np
from keras import ops

from gar_keras.engine.batches import take
from gar_keras.utils.parts import concatenated, map_parts, num_examples


class Stream:
    """The examples of a data set that gives batches, over and over.

    The order is that of the data set, anew in each pass. The batches of a
    `PyDataset` come in random order, as in Keras' `fit`.

    Args:
        name: Name of the argument, for messages.
        batches: A `tf.data.Dataset` or `keras.utils.PyDataset` of examples
            `x`, or of `(x, y)` or `(x, y, sample_weight)`.

    Attributes:
        first: The examples of the first batch, as NumPy arrays.
        per_pass: How many examples a pass has, all batches counted as large
            as the first; `None` if the data set does not know its length, or
            has no end.

    Raises:
        ValueError: if there is no batch, or if it holds no dense arrays.
    """

    def __init__(self, name, batches):
        self.name = name
        self.batches = batches
        self._check_dense()
        first = next(iter(self._one_pass(range(1))), None)
        if first is None:
            raise ValueError(
                f"{name} must hold at least one batch. Received: a "
                f"{type(batches).__name__} without any"
            )
        self.first = _arrays(first[0])
        self.per_pass = None
        if self.num_batches is not None:
            self.per_pass = self.num_batches * num_examples(self.first)

    @property
    def num_batches(self):
        """Batches in a pass, or `None` if there is no end or it is unknown."""
        if is_tensorflow_dataset(self.batches):
            known = int(self.batches.cardinality())
            return known if known >= 0 else None
        return self.batches.num_batches

    @property
    def is_endless(self):
        """Whether it is known that there is no end."""
        if is_tensorflow_dataset(self.batches):
            return int(self.batches.cardinality()) == -1
        return self.num_batches is None

    def read(self):
        """The batches of one pass, as tuples `(x, y, sample_weight)`."""
        for batch in self._one_pass(range(self.num_batches or 0)):
            yield tuple(map(_arrays, batch))

    def forever(self, seed):
        """The examples of every batch, as NumPy arrays, without end.

        Args:
            seed: Seed of the order of the batches of a `PyDataset`.
        """
        for number in itertools.count():
            if is_tensorflow_dataset(self.batches) or self.is_endless:
                order = itertools.count()
            else:
                rng = np.random.default_rng([seed, number])
                order = rng.permutation(self.num_batches).tolist()
            for x, *_ in self._one_pass(order):
                yield _arrays(x)
            if not is_tensorflow_dataset(self.batches):
                self.batches.on_epoch_end()

    def dataset(self, seed, failures):
        """The same as an endless `tf.data.Dataset`.

        Args:
            seed: As for `forever`.
            failures: A `failures.Failures` that keeps what a `PyDataset`
                raises.
        """
        import tensorflow as tf

        if is_tensorflow_dataset(self.batches):
            return self.batches.map(lambda *batch: _examples(batch)).repeat()
        signature = map_parts(
            lambda array: tf.TensorSpec((None, *array.shape[1:]), array.dtype),
            self.first,
        )

        def examples():
            with failures.noted():
                yield from self.forever(seed)

        return tf.data.Dataset.from_generator(
            examples, output_signature=signature
        )

    def _check_dense(self):
        if not is_tensorflow_dataset(self.batches):
            return
        import tensorflow as tf

        for spec in tf.nest.flatten(self.batches.element_spec):
            if not isinstance(spec, tf.TensorSpec):
                raise ValueError(
                    f"{self.name} must hold batches of dense tensors. "
                    f"Received: {spec}. Make them dense in its map."
                )

    def _one_pass(self, order):
        """Batches `(x, y, sample_weight)`: those of these numbers, if any."""
        if is_tensorflow_dataset(self.batches):
            found = iter(self.batches)
        else:
            found = (self.batches[i] for i in order)
        return map(keras.utils.unpack_x_y_sample_weight, found)


def is_stream(x):
    """Whether `x` gives batches of examples, one after the other."""
    return is_tensorflow_dataset(x) or isinstance(x, keras.utils.PyDataset)


def is_tensorflow_dataset(x):
    """Whether `x` is a `tf.data.Dataset`; does not load TensorFlow."""
    tf = sys.modules.get("tensorflow")
    return tf is not None and isinstance(x, tf.data.Dataset)


def batches_of(stream, sizes, seed):
    """The examples of a stream in batches of other sizes, without end.

    Args:
        stream: A `Stream`.
        sizes: Examples in a batch: of the first, the second and so on, and
            round again at the end.
        seed: As for `Stream.forever`.
    """
    examples = stream.forever(seed)
    held = next(examples)
    for size in itertools.cycle(sizes):
        while num_examples(held) < size:
            held = concatenated(held, next(examples))
        yield take(held, slice(size))
        held = take(held, slice(size, None))


def as_element(x):
    """Examples as an element of a data set: a tuple would be `(x, y)`."""
    return (x,) if isinstance(x, tuple) else x


def _examples(batch):
    return keras.utils.unpack_x_y_sample_weight(batch)[0]


def _arrays(x):
    return None if x is None else map_parts(ops.convert_to_numpy, x)
