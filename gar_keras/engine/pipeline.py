"""Batches of a `Feed`: from a `tf.data` graph, or the same from NumPy."""

import functools
import weakref

import keras
import numpy as np
from keras import ops

from gar_keras.engine import backend
from gar_keras.engine.batches import Start, behind_unlabeled, image_bytes, take
from gar_keras.engine.failures import Failures
from gar_keras.engine.streams import Stream, as_element, batches_of
from gar_keras.utils.parts import concatenated, map_parts, parts, with_parts
from gar_keras.utils.validation import is_in_memory

# Steps for which images are fetched at once from a source outside memory, at
# most, and what the batches that wait for `fit` may take in memory.
SOURCE_CHUNK = 40
PREFETCH_BYTES = 256 << 20


def make_batches(feed, start=None, failures=None):
    """What `fit` draws its batches from, on the backend in use.

    Args:
        feed: A `batches.Feed`.
        start: A `batches.Start` that may be set until `fit` begins. By default
            that of the feed's first epoch.
        failures: A `failures.Failures` that keeps what the images raise.

    Returns:
        A `tf.data.Dataset` or a `keras.utils.PyDataset`, of batches `x` or
        `(x, y)`. It has no end: `fit` must be told `steps_per_epoch`.
    """
    is_stream = isinstance(feed.images, Stream)
    start = start or Start(feed.first_epoch)
    if backend.name() == "tensorflow":
        make = _graph_batches_of_stream if is_stream else _graph_batches
        return make(feed, start, failures or Failures())
    make = _ArrayBatchesOfStream if is_stream else _ArrayBatches
    return make(feed, start)


def chunk_steps(sampler, images):
    """Steps whose batches are made at once; twice as many wait for `fit`.

    Args:
        sampler: `BatchSampler` over `images`.
        images: Arrays `(m, ...)` or image sources.

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


def _graph_batches(feed, start, failures):
    import tensorflow as tf

    sampler = feed.sampler
    draw = _Lent(lambda done: sampler.epoch(start.epoch + done))
    in_memory = all(map(is_in_memory, parts(feed.images)))
    images = _Resident(feed) if in_memory else _Fetched(feed, failures)

    def epoch(done):
        order, chosen = _drawn(draw, sampler, done)
        full = sampler.images_per_epoch // sampler.batch
        cut = full * sampler.batch
        rows = tf.reshape(order[:cut], (full, sampler.batch))
        batches = images.batches(rows, chosen[:full])
        if full == sampler.steps:
            return batches
        # One more, shorter batch with what is left.
        return batches.concatenate(
            images.batches(order[None, cut:], chosen[full:])
        )

    # Not `counter`: TensorFlow never lets go of the graph of its scan.
    epochs = tf.data.Dataset.range(np.iinfo("int64").max)
    batches = epochs.flat_map(epoch)
    batches = batches.prefetch(2 * chunk_steps(sampler, feed.images))
    batches = batches.with_options(pipeline_options())
    for lent in (draw, *images.lent):
        weakref.finalize(batches, lent.take_back)
    return batches


class _Resident:
    """Images in memory, gathered for one batch at a time."""

    lent = ()

    def __init__(self, feed):
        import tensorflow as tf

        # Captured tensors, not constants of the graph, which must stay below
        # 2 GB.
        self._images = map_parts(tf.convert_to_tensor, feed.images)
        self._labeled = _LabeledPart(feed)

    def batches(self, rows, chosen):
        """A `tf.data.Dataset` of batches.

        Args:
            rows: Indices of the images of each batch.
            chosen: Indices of the labelled images of each batch.
        """
        import tensorflow as tf

        indices = tf.data.Dataset.from_tensor_slices((rows, chosen))
        return indices.map(self._batch)

    def _batch(self, rows, chosen):
        import tensorflow as tf

        x = map_parts(lambda part: tf.gather(part, rows), self._images)
        return self._labeled.completed(x, rows, chosen)


class _Fetched:
    """Images outside memory, fetched for many batches at once.

    Attributes:
        lent: The functions to take back.
    """

    def __init__(self, feed, failures):
        def fetched(rows):
            with failures.noted():
                return parts(take(feed.images, rows))

        self._fetch = _Lent(fetched)
        self.lent = (self._fetch,)
        self._images = feed.images
        self._chunk = chunk_steps(feed.sampler, feed.images)
        self._labeled = _LabeledPart(feed)

    def batches(self, rows, chosen):
        """As those of `_Resident`."""
        import tensorflow as tf

        indices = tf.data.Dataset.from_tensor_slices((rows, chosen))
        return indices.batch(self._chunk).map(self._batches).unbatch()

    def _batches(self, rows, chosen):
        import tensorflow as tf

        fetched = tf.numpy_function(
            self._fetch,
            [tf.reshape(rows, [-1])],
            [part.dtype for part in parts(self._images)],
            stateful=False,
        )
        x = map_parts(
            lambda x, part: tf.reshape(x, (-1, rows.shape[1], *part.shape[1:])),
            with_parts(self._images, fetched),
            self._images,
        )
        return self._labeled.completed(x, rows, chosen)


def _graph_batches_of_stream(feed, start, failures):
    import tensorflow as tf

    sampler, stream = feed.sampler, feed.images
    draw = _Lent(lambda done: sampler.epoch(start.epoch + done))
    labeled = _LabeledPart(feed)

    def chosen(done):
        return tf.data.Dataset.from_tensor_slices(
            _drawn(draw, sampler, done)[1]
        )

    def join(x, chosen):
        count = tf.shape(parts(x)[0])[:1]
        return labeled.completed(x, tf.zeros(count, tf.int64), chosen)

    examples = stream.dataset(sampler.seed, failures).rebatch(_sizes(sampler))
    epochs = tf.data.Dataset.range(np.iinfo("int64").max)
    batches = tf.data.Dataset.zip(examples, epochs.flat_map(chosen)).map(join)
    batches = batches.prefetch(2 * chunk_steps(sampler, stream.first))
    weakref.finalize(batches, draw.take_back)
    return batches


def _sizes(sampler):
    """Images in each batch of an epoch, the labelled ones not counted."""
    full, rest = divmod(sampler.images_per_epoch, sampler.batch)
    return [sampler.batch] * full + [rest] * bool(rest)


def _drawn(draw, sampler, done):
    """What the sampler draws for an epoch, as tensors."""
    import tensorflow as tf

    order, chosen = tf.numpy_function(
        draw, [done], (tf.int64, tf.int64), stateful=False
    )
    order = tf.ensure_shape(order, (sampler.images_per_epoch,))
    shape = sampler.steps, sampler.labeled_per_batch
    return order, tf.ensure_shape(chosen, shape)


class _LabeledPart:
    """The labelled images of a feed and all its labels, as tensors."""

    def __init__(self, feed):
        import tensorflow as tf

        self.x = self.y = self.labels = None
        if feed.labels is not None:
            self.labels = tf.convert_to_tensor(feed.labels)
        if feed.x_labeled is not None:
            self.x = map_parts(tf.convert_to_tensor, feed.x_labeled)
        if feed.y_labeled is not None:
            self.y = tf.convert_to_tensor(feed.y_labeled)

    def completed(self, x, rows, chosen):
        """Batches as `fit` takes them: the labelled part behind, and labels.

        Args:
            x: Images of one batch, or of several.
            rows: Their indices.
            chosen: Indices of the labelled images of each batch.
        """
        import tensorflow as tf

        if self.labels is not None:
            return x, tf.gather(self.labels, rows)
        if self.x is not None:
            x = map_parts(
                lambda part, labeled: tf.concat(
                    [part, tf.gather(labeled, chosen)], axis=len(rows.shape) - 1
                ),
                x,
                self.x,
            )
        if self.y is None:
            return as_element(x)
        y = tf.gather(self.y, chosen)
        return x, behind_unlabeled(y, rows, ops)


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
    """The `tf.data.Options` of pipelines from arrays: repeatable, and light.

    A stream keeps those of its own data set.
    """
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
        x = self._images(index, rows)
        if feed.x_labeled is not None:
            x = concatenated(x, take(feed.x_labeled, chosen[step]))
        if feed.y_labeled is not None:
            return x, behind_unlabeled(feed.y_labeled[chosen[step]], rows)
        return as_element(x) if feed.labels is None else (x, feed.labels[rows])

    def _images(self, index, rows):
        return take(self.feed.images, rows)


class _ArrayBatchesOfStream(_ArrayBatches):
    """Batches of which only the labelled images are taken by index."""

    def __init__(self, feed, start):
        super().__init__(feed, start)
        sampler = feed.sampler
        self._next = batches_of(feed.images, _sizes(sampler), sampler.seed)
        self._index = None

    def _images(self, index, rows):
        # `fit` looks at a batch before it begins, and asks for it again.
        if index != self._index:
            self._index, self._held = index, next(self._next)
        return self._held
