"""Images and labels of the batches of an epoch: the loops of Algorithm 1."""

import functools
import math
from dataclasses import dataclass

import h5py
import keras
import numpy as np

from gar_keras.engine import backend
from gar_keras.utils.validation import check_count, check_fields, is_source

# The paper's examples in a batch of either stage; in stage 2 b_L + b_U.
BATCH_SIZE = 128
LABELED_PER_BATCH = 16
UNLABELED_PER_BATCH = BATCH_SIZE - LABELED_PER_BATCH

# Random numbers that are drawn at once, for the labelled images of batches.
KEYS_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class BatchSampler:
    """The indices of every batch, a function of seed and epoch alone.

    An epoch is one pass over `size` images in random order, `batch` at a time;
    the last batch holds what is left. Each batch also gets `labeled_per_batch`
    of the labelled images, drawn without replacement within a batch and afresh
    for every batch. Stage 1 samples X_L alone; stage 2 samples X_U and adds
    some of X_L (paper, Algorithm 1).

    Args:
        images_per_epoch: Images seen in an epoch; `size` by default. If less,
            the epochs take turns: each sees images that those before have not
            seen, until all have been, and then round again.
        in_random_order: Whether the images lie in random order. If so, epoch
            1 sees the first of them, epoch 2 the next; if not, they are
            shuffled before, since they may lie class by class.

    Example:

    >>> sampler = BatchSampler(5, batch=2, num_labeled=4, labeled_per_batch=1)
    >>> order, chosen = sampler.epoch(1)
    >>> sampler.steps, sorted(order.tolist()), chosen.shape
    (3, [0, 1, 2, 3, 4], (3, 1))
    """

    size: int
    batch: int
    num_labeled: int = 0
    labeled_per_batch: int = 0
    seed: int = 0
    images_per_epoch: int | None = None
    in_random_order: bool = False

    def __post_init__(self):
        check_fields(self, check_count, "size", "batch", least=1)
        names = "num_labeled", "labeled_per_batch", "seed"
        check_fields(self, check_count, *names, least=0)
        if self.labeled_per_batch > self.num_labeled:
            raise ValueError(
                "A batch holds no labelled example twice. Received: "
                f"labeled_per_batch={self.labeled_per_batch}, "
                f"num_labeled={self.num_labeled}. Take fewer in a batch."
            )
        if self.images_per_epoch is None:
            object.__setattr__(self, "images_per_epoch", self.size)
        check_count(
            "images_per_epoch", self.images_per_epoch, least=1, most=self.size
        )

    @property
    def steps(self):
        """Batches in an epoch."""
        return -(-self.images_per_epoch // self.batch)

    @property
    def images_per_step(self):
        """Images in a whole batch, the labelled ones among them."""
        return min(self.batch, self.images_per_epoch) + self.labeled_per_batch

    def epoch(self, number):
        """The indices of one epoch, counted from 1.

        Returns:
            `(order, chosen)`: `order` is `(images_per_epoch,)`, the images in
            the order in which the batches take them; `chosen` is `(steps,
            labeled_per_batch)`, the labelled images of each batch. Both int64.
        """
        rng = np.random.default_rng([self.seed, number])
        first = (number - 1) * self.images_per_epoch
        order = (first + rng.permutation(self.images_per_epoch)) % self.size
        if self.images_per_epoch < self.size and not self.in_random_order:
            order = _shuffle(self.seed, self.size)[order]
        return order, self._draw_labeled(rng)

    def _draw_labeled(self, rng):
        b, m = self.labeled_per_batch, self.num_labeled
        chosen = np.empty((self.steps, b), "int64")
        # A part at a time: all keys may take gigabytes.
        rows = max(1, KEYS_AT_ONCE // max(1, m))
        for first in range(0, self.steps if b else 0, rows):
            part = chosen[first : first + rows]
            # The smallest keys of each row: a draw without replacement.
            keys = rng.random((len(part), m), dtype="float32")
            if b == m:
                part[:] = np.argsort(keys, axis=1)
            else:
                part[:] = np.argpartition(keys, b - 1, axis=1)[:, :b]
        return chosen


@functools.lru_cache(maxsize=1)
def _shuffle(seed, size):
    # The epochs, which are counted from 1, draw with other seeds.
    return np.random.default_rng([seed, 0]).permutation(size)


@dataclass(eq=False)
class TrainingData:
    """The data of a training, and the sampler that makes batches of it.

    Args:
        images: Array `(m, ...)`, `h5py.Dataset` or image source, a dict or
            tuple of them for several inputs, or a `streams.Stream`.
        x_labeled: The images behind the others in each batch (X_L in stage 2).
        labels: Class indices `(m,)` of `images`.
        y_labeled: Class indices of `x_labeled`, with which `y` is -1 for the
            other images, in place of `labels`.
    """

    sampler: BatchSampler
    images: object
    x_labeled: object = None
    labels: object = None
    y_labeled: object = None

    def batch(self, x, rows, chosen, gather=None, xp=np):
        """What `fit` gets of a step, `(x,)` or `(x, y)`, with `x` at `rows`.

        Of the labelled images it gets those `chosen`.
        """
        gather = gather or take
        if self.labels is not None:
            return x, gather(self.labels, rows)
        if self.x_labeled is not None:
            x = concatenated(x, gather(self.x_labeled, chosen), xp=xp)
        if self.y_labeled is None:
            return (x,)
        y = gather(self.y_labeled, chosen)
        unlabeled = xp.full_like(rows, -1, dtype=y.dtype)
        return x, xp.concatenate([unlabeled, y])


def labeled_alone(data):
    """The labelled images of each batch of stage 2, without the others."""
    sampler = _LabeledAlone(data.sampler)
    return TrainingData(sampler, data.x_labeled, labels=data.y_labeled)


class _LabeledAlone:
    """A sampler of the labelled images that another draws, step by step."""

    labeled_per_batch = 0

    def __init__(self, sampler):
        self.sampler = sampler
        self.steps = sampler.steps
        self.batch = self.images_per_step = sampler.labeled_per_batch
        self.images_per_epoch = sampler.steps * sampler.labeled_per_batch

    def epoch(self, number):
        _, chosen = self.sampler.epoch(number)
        return chosen.reshape(-1), np.zeros((self.steps, 0), "int64")


def take(examples, rows):
    """The examples at some rows: an array of indices, or a slice."""
    return keras.tree.map_structure(lambda part: _rows(part, rows), examples)


def _rows(part, rows):
    if isinstance(part, h5py.Dataset):
        return _read(part, rows)
    return part.take(rows) if is_source(part) else part[rows]


def _read(dataset, rows):
    """Rows of an HDF5 file, in any order, one slice for each chunk."""
    # h5py takes a list of indices too, over ten times slower.
    chunk = (dataset.chunks or (16,))[0]
    unique, position = np.unique(rows, return_inverse=True)
    # TensorFlow takes no other byte order than this machine's.
    dtype = dataset.dtype.newbyteorder("=")
    found = np.empty((len(unique), *dataset.shape[1:]), dtype)
    starts = np.flatnonzero(np.diff(unique // chunk, prepend=-1))
    for start, end in zip(starts, [*starts[1:], len(unique)], strict=True):
        wanted = unique[start:end]
        block = dataset[wanted[0] : wanted[-1] + 1]
        found[start:end] = block[wanted - wanted[0]]
    return found[position]


def concatenated(*several, xp=np):
    """Examples behind one another."""

    def joined(*arrays):
        shapes = {array.shape[1:] for array in arrays} if xp is np else ()
        if len(shapes) > 1:
            raise ValueError(
                "All batches must hold examples of one shape. Received: "
                f"examples of {' and '.join(map(str, sorted(shapes)))}. Pad "
                "or cut all of them to one."
            )
        return xp.concatenate(arrays)

    return keras.tree.map_structure(joined, *several)


def plain_numbers(array):
    """An array in this machine's byte order, and bytes in place of booleans.

    JAX would wrap integers of 64 bits round in 32: large ones become floats.
    """
    if array.dtype == bool:
        return array.view("uint8")
    is_long = array.dtype.kind in "iu" and array.dtype.itemsize == 8
    if is_long and backend.name() == "jax":
        limits = np.iinfo("int32")
        least, largest = np.min(array, initial=0), np.max(array, initial=0)
        if least < limits.min or largest > limits.max:
            return array.astype("float64")
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def num_examples(x):
    """How many examples there are."""
    return len(keras.tree.flatten(x)[0])


@dataclass(frozen=True)
class BytesOf:
    """Booleans of an `h5py.Dataset`, as an image source of bytes."""

    dataset: h5py.Dataset
    dtype = np.dtype("uint8")

    @property
    def shape(self):
        return self.dataset.shape

    def __len__(self):
        return len(self.dataset)

    def take(self, indices):
        return _read(self.dataset, indices).view("uint8")


def image_bytes(images):
    """Bytes of one example."""
    return sum(
        math.prod(part.shape[1:]) * np.dtype(part.dtype).itemsize
        for part in keras.tree.flatten(images)
    )
