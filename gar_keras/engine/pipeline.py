"""Batches of a `TrainingData` for `fit`: one generator, and a graph for arrays.

The generator makes the batches with NumPy, of any form of images. TensorFlow
takes images that are in memory by a `tf.data` graph of its own, which costs a
small network a tenth of a millisecond less a step.
"""

import itertools
import weakref

import keras
import numpy as np
from keras import ops

from gar_keras.engine import backend
from gar_keras.engine.batches import image_bytes, take
from gar_keras.engine.streams import Stream
from gar_keras.utils.validation import is_in_memory

# Steps for which images are fetched at once, at most, and what the batches
# that wait for `fit` may take in memory.
STEPS_AT_ONCE = 40
PREFETCH_BYTES = 256 << 20


def make_batches(feed):
    """What `fit` draws the batches of a feed from, on the backend in use.

    They are `(x,)` or `(x, y)`. There is no end: `fit` must be told
    `steps_per_epoch`.
    """
    if backend.name() != "tensorflow":
        return Batches(_begun_anew(feed))
    in_memory = all(map(is_in_memory, keras.tree.flatten(feed.images)))
    held = [feed]
    batches = (_graph_of_arrays if in_memory else _generated)(held)
    batches = batches.prefetch(2 * steps_at_once(feed))
    batches = batches.with_options(pipeline_options())
    # TensorFlow never lets go of a generator, and of what that refers to.
    weakref.finalize(batches, held.clear)
    return batches


def batches_of(feed):
    """The batches of a feed from NumPy, one epoch after the other, endless."""
    sampler = feed.sampler
    stream = made = None
    if isinstance(feed.images, Stream):
        full, rest = divmod(sampler.images_per_epoch, sampler.batch)
        sizes = [sampler.batch] * full
        if rest:
            sizes.append(rest)
        stream = feed.images.in_batches(sizes, sampler.seed)
    for number in itertools.count(feed.first_epoch):
        if stream and number > feed.last_epoch:
            # What waits for a step that does not come.
            yield from itertools.repeat(made)
        order, chosen = sampler.epoch(number)
        rows = np.split(order, range(sampler.batch, len(order), sampler.batch))
        images = stream or _taken(feed.images, rows, steps_at_once(feed))
        # The images last: none of the stream is taken behind the last rows.
        for r, c, x in zip(rows, chosen, images, strict=False):
            made = feed.batch(x, r, c)
            yield made


def _taken(images, rows, at_once):
    """The images of each batch, fetched for several batches at once."""
    for first in range(0, len(rows), at_once):
        some = rows[first : first + at_once]
        fetched = take(images, np.concatenate(some))
        end = 0
        for batch in some:
            start, end = end, end + len(batch)
            yield take(fetched, slice(start, end))


def steps_at_once(feed):
    """Steps whose images are fetched at once; twice as many wait for `fit`.

    `STEPS_AT_ONCE`, or less where these would take half of `PREFETCH_BYTES`.
    """
    in_batch = feed.sampler.batch + feed.sampler.labeled_per_batch
    room = PREFETCH_BYTES // (2 * in_batch * image_bytes(_like(feed.images)))
    return max(1, min(STEPS_AT_ONCE, room))


def _like(images):
    return images.first if isinstance(images, Stream) else images


class Batches(keras.utils.PyDataset):
    """Batches from a function of their index, by default without end.

    What Keras does at the end of a data set, and how often it calls
    `on_epoch_end`, differs between its versions.
    """

    def __init__(self, batch, count=None):
        super().__init__()
        self._batch, self._count = batch, count

    @property
    def num_batches(self):
        return self._count

    def __getitem__(self, index):
        return self._batch(index)

    def let_go(self):
        """Lets go of the function, and so of the examples behind it.

        TensorFlow keeps each `PyDataset` that it was given for good.
        """
        self._batch = None


def _begun_anew(feed):
    """The generator for backends without a pipeline, a function of the index.

    `fit` looks at the first batch before it begins, and asks for it again.
    """
    found = None

    def batch(index):
        nonlocal found
        if index == 0:
            found = batches_of(feed)
        return next(found)

    return batch


def _generated(held):
    """The generator as a `tf.data.Dataset`."""
    import tensorflow as tf

    (feed,) = held
    sampler = feed.sampler
    is_even = sampler.images_per_epoch % sampler.batch == 0
    rows = sampler.batch + sampler.labeled_per_batch if is_even else None

    def spec(part):
        dtype = np.dtype(part.dtype).newbyteorder("=")
        return tf.TensorSpec((rows, *part.shape[1:]), dtype)

    signature = [keras.tree.map_structure(spec, _like(feed.images))]
    labels = feed.labels if feed.y_labeled is None else feed.y_labeled
    if labels is not None:
        signature.append(spec(labels))
    return tf.data.Dataset.from_generator(
        lambda: batches_of(*held), output_signature=tuple(signature)
    )


def _graph_of_arrays(held):
    """The same batches from images in memory, gathered by TensorFlow."""
    import tensorflow as tf

    (feed,) = held
    sampler = feed.sampler
    full = sampler.images_per_epoch // sampler.batch
    cut = full * sampler.batch
    # Captured tensors, not constants of the graph, which must stay below 2 GB.
    tensors = feed.converted(backend.as_tensor)

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

    def drawn():
        (feed,) = held
        return map(feed.sampler.epoch, itertools.count(feed.first_epoch))

    chosen = (sampler.steps, sampler.labeled_per_batch)
    signature = (
        tf.TensorSpec((sampler.images_per_epoch,), tf.int64),
        tf.TensorSpec(chosen, tf.int64),
    )
    indices = tf.data.Dataset.from_generator(drawn, output_signature=signature)
    return indices.flat_map(epoch)


def pipeline_options():
    """The `tf.data.Options` of pipelines: repeatable, and light."""
    import tensorflow as tf

    options = tf.data.Options()
    options.deterministic = True
    # Making batches is light: leave the cores to the network. And what a
    # thread of TensorFlow's own pool has made, the network may work on in that
    # thread, alone.
    options.threading.private_threadpool_size = 1
    options.autotune.enabled = False
    return options
