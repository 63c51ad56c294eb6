"""Batches of a `Feed`: from a `tf.data` graph, or the same from NumPy."""

import functools
import weakref

import keras
from keras import ops
import numpy as np

from gar_keras.engine import backend
from gar_keras.engine.batches import Start
from gar_keras.engine.batches import behind_unlabeled
from gar_keras.engine.batches import image_bytes
from gar_keras.engine.batches import take
from gar_keras.utils.validation import is_in_memory

# Steps for which images are fetched at once from a source outside memory, at
# most, and what the batches that wait for `fit` may take in memory.
SOURCE_CHUNK = 40
PREFETCH_BYTES = 256 << 20


def make_batches(feed, start=None):
    """What `fit` draws its batches from, on the backend in use.

    Args:
        feed: A `batches.Feed`.
        start: A `batches.Start` that may be set until `fit` begins. By default
            that of the feed's first epoch.

    Returns:
        A `tf.data.Dataset` or a `keras.utils.PyDataset`, of batches `x` or
        `(x, y)`. It has no end: `fit` must be told `steps_per_epoch`.
    """
    make = _graph_batches if backend.name() == "tensorflow" else _ArrayBatches
    return make(feed, start or Start(feed.first_epoch))


def chunk_steps(sampler, images):
    """Steps whose batches are made at once; twice as many wait for `fit`.

    Args:
        sampler: `BatchSampler` over `images`.
        images: Array `(m, ...)` or image source.

    Returns:
        `SOURCE_CHUNK`, or less where so many batches would be larger than
        half of `PREFETCH_BYTES`; 1 at least.

    Example:

    >>> from gar_keras.engine.batches import BatchSampler
    >>> chunk_steps(BatchSampler(2000, 128), np.zeros((2000, 28, 28), "uint8"))
    40
    """
    batch_bytes = (sampler.batch + sampler.labeled_per_batch) * image_bytes(
        images
    )
    return max(1, min(SOURCE_CHUNK, PREFETCH_BYTES // (2 * batch_bytes)))


def _graph_batches(feed, start):
    import tensorflow as tf

    sampler, images = feed.sampler, feed.images
    full = sampler.images_per_epoch // sampler.batch
    cut = full * sampler.batch
    chunk = chunk_steps(sampler, images)

    draw = _Lent(lambda done: sampler.epoch(start.epoch + done))
    fetch = _Lent(lambda rows: take(images, rows))

    def indices(done):
        order, chosen = tf.numpy_function(
            draw, [done], (tf.int64, tf.int64), stateful=False
        )
        order = tf.ensure_shape(order, (sampler.images_per_epoch,))
        chosen = tf.ensure_shape(
            chosen, (sampler.steps, sampler.labeled_per_batch)
        )
        rows = tf.reshape(order[:cut], (full, sampler.batch))
        batches = fetch_all(rows, chosen[:full])
        if full == sampler.steps:
            return batches
        # One more, shorter batch with what is left.
        return batches.concatenate(fetch_all(order[None, cut:], chosen[full:]))

    def fetch_all(rows, chosen):
        data = tf.data.Dataset.from_tensor_slices((rows, chosen))
        if is_in_memory(images):
            return data.map(gather)
        return data.batch(chunk).map(take_chunk).unbatch()

    # Captured tensors, not constants of the graph, which must stay below 2 GB.
    resident = tf.convert_to_tensor(images) if is_in_memory(images) else None
    x_labeled, labels, y_labeled = (
        None if array is None else tf.convert_to_tensor(array)
        for array in (feed.x_labeled, feed.labels, feed.y_labeled)
    )

    def with_labels(x, rows, chosen):
        if y_labeled is not None:
            y = tf.gather(y_labeled, chosen)
            return x, behind_unlabeled(y, rows, ops)
        return x if labels is None else (x, tf.gather(labels, rows))

    def gather(row, chosen):
        x = tf.gather(resident, row)
        if x_labeled is not None:
            x = tf.concat([x, tf.gather(x_labeled, chosen)], axis=0)
        return with_labels(x, row, chosen)

    def take_chunk(rows, chosen):
        x = tf.numpy_function(
            fetch, [tf.reshape(rows, [-1])], images.dtype, stateful=False
        )
        x = tf.reshape(x, (-1, rows.shape[1], *images.shape[1:]))
        if x_labeled is not None:
            x = tf.concat([x, tf.gather(x_labeled, chosen)], axis=1)
        return with_labels(x, rows, chosen)

    # Not `counter`: TensorFlow never lets go of the graph of its scan.
    epochs = tf.data.Dataset.range(np.iinfo("int64").max)
    batches = epochs.flat_map(indices).prefetch(2 * chunk)
    batches = batches.with_options(pipeline_options())
    for lent in (draw, fetch):
        weakref.finalize(batches, lent.take_back)
    return batches


class _Lent:
    """A function for `tf.numpy_function`, which never lets go of it.

    Once it is taken back, what it refers to can be freed.
    """

    def __init__(self, function):
        self._function = function

    def __call__(self, *arguments):
        return self._function(*arguments)

    def take_back(self):
        self._function = None


def pipeline_options():
    """The `tf.data.Options` of every pipeline: repeatable, and light."""
    import tensorflow as tf

    options = tf.data.Options()
    options.deterministic = True
    # Making batches is light: leave the cores to the network. And what a
    # thread of TensorFlow's own pool has made, the network may work on in that
    # thread, alone.
    options.threading.private_threadpool_size = 1
    options.autotune.enabled = False
    return options


class _ArrayBatches(keras.utils.PyDataset):
    """The same batches from NumPy, for backends without a pipeline.

    Without end, like the pipeline: what Keras does at the end of a data set,
    and how often it calls `on_epoch_end`, differs between its versions.
    """

    num_batches = None

    def __init__(self, feed, start):
        super().__init__()
        self.feed = feed
        self.start = start
        # One epoch's indices are kept, for the steps that come next.
        self._epoch = functools.lru_cache(maxsize=1)(feed.sampler.epoch)

    def __getitem__(self, index):
        feed, batch = self.feed, self.feed.sampler.batch
        done, step = divmod(index, feed.sampler.steps)
        order, chosen = self._epoch(self.start.epoch + done)
        rows = order[step * batch : (step + 1) * batch]
        x = take(feed.images, rows)
        if feed.x_labeled is not None:
            x = np.concatenate([x, feed.x_labeled[chosen[step]]])
        if feed.y_labeled is not None:
            return x, behind_unlabeled(feed.y_labeled[chosen[step]], rows)
        return x if feed.labels is None else (x, feed.labels[rows])
