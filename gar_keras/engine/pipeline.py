"""Batches of a `TrainingData` for `fit`: of NumPy, or of a `tf.data` graph.

NumPy makes the batches of any form of images. TensorFlow takes images that are
in memory by a `tf.data` graph of its own, which costs a small network a tenth
of a millisecond less a step.
"""

import itertools
import math
import weakref
from dataclasses import replace

import keras
import numpy as np
from keras import ops

from gar_keras.engine.batches import image_bytes, take
from gar_keras.engine.streams import Stream
from gar_keras.utils.validation import is_in_memory

# Steps for which images are fetched at once, at most, and what the batches
# that wait for `fit` may take in memory.
STEPS_AT_ONCE = 40
PREFETCH_BYTES = 256 << 20


class Batches(keras.utils.PyDataset):
    """Batches `(x,)` or `(x, y)`, each a function of its number, without end.

    `fit` must be told `steps_per_epoch`: what Keras does at the end of a data
    set differs between its versions. It may ask for batches again, but for
    those of a `streams.Stream` only from number 0 on.

    Args:
        data: The `TrainingData`.
        epochs: Epochs for which a `streams.Stream` is read.

    Attributes:
        done: Epochs of the sampler that were done before batch 0.
        error: What a batch raised in a pipeline of TensorFlow, which tells it
            in a text of its own.
    """

    num_batches = None

    def __init__(self, data, epochs=math.inf):
        super().__init__()
        self.data = data
        self.done = 0
        self.error = None
        self._epochs = epochs
        # Numbers and values of the epoch and the images that were made last.
        self._drawn = self._fetched = (None, None)
        self._stream = self._streamed = None

    def __getitem__(self, index):
        data, sampler = self.data, self.data.sampler
        epoch, step = divmod(index, sampler.steps)
        number = self.done + epoch
        order, chosen = self.epoch(number)
        rows = order[step * sampler.batch :][: sampler.batch]
        if not isinstance(data.images, Stream):
            images = self._images(order, number, step)
        else:
            if index == 0:
                full, rest = divmod(len(order), sampler.batch)
                sizes = [sampler.batch] * full
                if rest > 0:
                    sizes.append(rest)
                self._stream = data.images.in_batches(sizes, sampler.seed)
            # A batch that waits for a step that does not come repeats the last.
            if number < self._epochs:
                self._streamed = next(self._stream)
            images = self._streamed
        return data.batch(images, rows, chosen[step])

    def epoch(self, number):
        """The indices of an epoch of the sampler, of which the first is 0."""
        if self._drawn[0] != number:
            # The sampler counts them from 1.
            self._drawn = number, self.data.sampler.epoch(1 + number)
        return self._drawn[1]

    def _images(self, order, number, step):
        """The images of a step, fetched for several steps at once."""
        batch, at_once = self.data.sampler.batch, steps_at_once(self.data)
        first = step - step % at_once
        if self._fetched[0] != (number, first):
            rows = order[first * batch : (first + at_once) * batch]
            fetched = take(self.data.images, rows)
            self._fetched = (number, first), fetched
        start = (step - first) * batch
        return take(self._fetched[1], slice(start, start + batch))


def steps_at_once(data):
    """Steps whose images are fetched at once; twice as many wait for `fit`.

    `STEPS_AT_ONCE`, or less where these would take half of `PREFETCH_BYTES`.
    """
    in_batch = data.sampler.batch + data.sampler.labeled_per_batch
    room = PREFETCH_BYTES // (2 * in_batch * image_bytes(_like(data.images)))
    return max(1, min(STEPS_AT_ONCE, room))


def _like(images):
    return images.first if isinstance(images, Stream) else images


def as_pipeline(batches):
    """The same batches as a `tf.data.Dataset`."""
    import tensorflow as tf

    in_memory = all(map(is_in_memory, keras.tree.flatten(batches.data.images)))
    # TensorFlow never lets go of a generator, and of what that refers to.
    held = [batches]
    make = _graph_of_arrays if in_memory else _generated
    made = make(held)
    made = made.prefetch(2 * steps_at_once(batches.data))
    options = tf.data.Options()
    options.deterministic = True
    # Making batches is light: leave the cores to the network. And what a
    # thread of TensorFlow's own pool has made, the network may work on in that
    # thread, alone.
    options.threading.private_threadpool_size = 1
    options.autotune.enabled = False
    made = made.with_options(options)
    weakref.finalize(made, held.clear)
    return made


def _generated(held):
    """The batches from NumPy."""
    import tensorflow as tf

    data = held[0].data
    sampler = data.sampler
    is_even = sampler.images_per_epoch % sampler.batch == 0
    rows = sampler.batch + sampler.labeled_per_batch if is_even else None

    def spec(part):
        dtype = np.dtype(part.dtype).newbyteorder("=")
        return tf.TensorSpec((rows, *part.shape[1:]), dtype)

    signature = [keras.tree.map_structure(spec, _like(data.images))]
    labels = data.labels if data.y_labeled is None else data.y_labeled
    if labels is not None:
        signature.append(spec(labels))

    def batches():
        try:
            yield from map(held[0].__getitem__, itertools.count())
        except Exception as error:
            held[0].error = error
            raise

    return tf.data.Dataset.from_generator(
        batches, output_signature=tuple(signature)
    )


def _graph_of_arrays(held):
    """The batches from images in memory, gathered by TensorFlow."""
    import tensorflow as tf

    data = held[0].data
    sampler = data.sampler
    full = sampler.images_per_epoch // sampler.batch
    cut = full * sampler.batch
    # Captured tensors, not constants of the graph, which must stay below 2 GB.
    names = ("images", "x_labeled", "labels", "y_labeled")
    with tf.device("CPU:0"):
        tensors = keras.tree.map_structure(
            lambda part: None if part is None else tf.convert_to_tensor(part),
            {name: getattr(data, name) for name in names},
        )
    tensors = replace(data, **tensors)

    def gather(examples, rows):
        return keras.tree.map_structure(
            lambda part: tf.gather(part, rows), examples
        )

    def batches(rows, chosen):
        indices = tf.data.Dataset.from_tensor_slices((rows, chosen))
        return indices.map(
            lambda r, c: tensors.batch(
                gather(tensors.images, r), r, c, gather, ops
            )
        )

    def epoch(order, chosen):
        rows = tf.reshape(order[:cut], (full, sampler.batch))
        made = batches(rows, chosen[:full])
        if full == sampler.steps:
            return made
        # One more, shorter batch with what is left.
        return made.concatenate(batches(order[None, cut:], chosen[full:]))

    signature = (
        tf.TensorSpec((sampler.images_per_epoch,), tf.int64),
        tf.TensorSpec((sampler.steps, sampler.labeled_per_batch), tf.int64),
    )
    indices = tf.data.Dataset.from_generator(
        lambda: map(held[0].epoch, itertools.count(held[0].done)),
        output_signature=signature,
    )
    return indices.flat_map(epoch)
