"""Streams: batches of examples one by one, with no access by index."""

import functools
import itertools
import sys

import keras
import numpy as np
from keras import ops

from gar_keras.engine.batches import (
    concatenated,
    num_examples,
    plain_numbers,
    take,
)
from gar_keras.engine.graphs import named_inputs


class Stream:
    """The examples of a data set that gives batches, over and over.

    The order is that of the data set, anew in each pass. The batches of a
    `PyDataset` come in random order, as in Keras' `fit`, between calls of its
    `on_epoch_begin` and `on_epoch_end` in each pass. Of batches in a dict
    it has what the `model` names, if there is one.

    Attributes:
        first: The examples of the first batch, as NumPy arrays.
        num_batches: Batches in a pass; `None` if that is not known.
        per_pass: Examples of a pass, all batches counted as large as the
            first, or `None`.
        is_endless: Whether it is known that there is no end.
    """

    def __init__(self, name, batches, model=None):
        self.name = name
        self.batches = batches
        self.model = model
        if _is_tensorflow_dataset(batches):
            known = int(batches.cardinality())
            self.num_batches = known if known >= 0 else None
            self.is_endless = known == -1
        else:
            self.num_batches = batches.num_batches
            self.is_endless = self.num_batches is None

    # Not before they are asked for: a generator gives its batches once.
    @functools.cached_property
    def first(self):
        x, _ = next(self.read(range(1)), (None, None))
        if x is None:
            raise self.none_read()
        return x

    @property
    def per_pass(self):
        if self.num_batches is None:
            return None
        return self.num_batches * num_examples(self.first)

    def none_read(self):
        """The error of a data set without a batch."""
        return ValueError(
            f"{self.name} must hold at least one batch. Received: a "
            f"{type(self.batches).__name__} without any"
        )

    def order(self, *seed):
        """The numbers of a pass's batches, at random if their end is known."""
        if self.num_batches is None:
            return itertools.count()
        rng = np.random.default_rng(seed)
        return rng.permutation(self.num_batches).tolist()

    def read(self, order=None):
        """The batches of one pass, as pairs `(x, y)`.

        `order` has the numbers of the batches of a `PyDataset`, if not all as
        they come.
        """
        if _is_tensorflow_dataset(self.batches):
            found = iter(self.batches)
        else:
            order = range(self.num_batches) if order is None else order
            found = (self.batches[i] for i in order)
        for batch in found:
            x, y, weights = keras.utils.unpack_x_y_sample_weight(batch)
            if weights is not None:
                raise ValueError(
                    f"{self.name} must hold pairs (x, y). Received: a third "
                    "part, and weights of examples play no part here"
                )
            if self.model is not None:
                x = named_inputs(self.model, self.name, x)
            yield _arrays(x), _arrays(y)

    def in_batches(self, sizes, seed):
        """The examples in batches of these sizes, over and over."""
        examples = self._forever(seed)
        held = next(examples)
        for size in itertools.cycle(sizes):
            while num_examples(held) < size:
                held = concatenated(held, next(examples))
            yield take(held, slice(size))
            held = take(held, slice(size, None))

    def _forever(self, seed):
        batches = self.batches
        has_hooks = isinstance(batches, keras.utils.PyDataset)
        for number in itertools.count():
            if has_hooks:
                batches.on_epoch_begin()
            read = 0
            passed = self.read(self.order(seed, number))
            for read, (x, _) in enumerate(passed, start=1):
                if has_hooks and read == self.num_batches:
                    batches.on_epoch_end()
                yield x
            if read == 0:
                self.refuse_empty(number)

    def refuse_empty(self, passes):
        """Raises for a data set without a batch after so many passes."""
        raise ValueError(
            f"{self.name} cannot be read again: it has no batch after {passes} "
            "pass(es). Give from_generator a function that makes a new "
            "generator in each call, or repeat()."
        )


def is_stream(x):
    """Whether `x` gives batches of examples, one after the other."""
    return _is_tensorflow_dataset(x) or isinstance(x, keras.utils.PyDataset)


def _is_tensorflow_dataset(x):
    # TensorFlow is not loaded for this.
    tf = sys.modules.get("tensorflow")
    return tf is not None and isinstance(x, tf.data.Dataset)


def _arrays(examples):
    return keras.tree.map_structure(
        lambda x: None if x is None else plain_numbers(ops.convert_to_numpy(x)),
        examples,
    )
