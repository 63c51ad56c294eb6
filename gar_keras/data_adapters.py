"""Data in the forms that `fit` takes, as what the engine draws batches from.

| form | labelled examples | unlabelled examples |
| --- | --- | --- |
| array, list, tensor, DataFrame | an array | an array |
| `numpy.memmap` | an array | read by index |
| `h5py.Dataset`, SciPy sparse matrix | an array | read by index |
| image source | read by index, by `pretrain` alone | read by index |
| `tf.data.Dataset`, `keras.utils.PyDataset` | read to the end | a `Stream` |
| dict or tuple: several inputs | each by itself | each by itself |

Labelled examples are few, and are taken into memory. Of unlabelled ones no
more is in memory than a few batches, unless it was before.
"""

import itertools
import math

import h5py
import keras
import numpy as np

from gar_keras.engine.streams import Stream, is_stream
from gar_keras.utils.hdf5 import read_rows
from gar_keras.utils.parts import (
    concatenated,
    have_same_parts,
    map_parts,
    names_of_parts,
    parts,
    with_parts,
)
from gar_keras.utils.validation import is_source, unmasked

# Examples of a data set that are evaluated at a time.
PIECE_BYTES = 256 << 20


def as_labeled(x, y=None, names=("x_labeled", "y_labeled")):
    """Labelled examples in memory.

    Args:
        x: Examples, in any form of the table above; a data set gives pairs
            `(x, y)`.
        y: Their labels: class indices, as integers, whole floats or booleans,
            or one-hot rows. `None` where `x` gives them, or has none.
        names: What messages call the two.

    Returns:
        `(x, y)`: arrays, or a dict or tuple of them, and labels as an array or
        `None`.

    Raises:
        ValueError: if it is none of these.

    Example:

    >>> x, y = as_labeled([[1.0, 2.0], [3.0, 4.0]], [[0, 1], [1, 0]])
    >>> x.dtype, y.tolist()
    (dtype('float32'), [1, 0])
    """
    if is_stream(x):
        if y is not None:
            raise ValueError(
                f"{names[1]} must be left out where {names[0]} is a data set "
                f"of pairs (x, y). Received: {names[0]} of type "
                f"{type(x).__name__}, and {names[1]}"
            )
        ((x, y),) = pieces(names[0], x, math.inf)
    else:
        x = _each_input(_in_memory, names[0], x)
    return x, None if y is None else _indices(names[1], y)


def as_unlabeled(x, name="x_unlabeled"):
    """Unlabelled examples: by index, or as a `Stream`.

    Args:
        x: Examples, in any form of the table above. A data set may give labels
            as well, which play no part.
        name: What messages call them.

    Returns:
        An array or image source, a dict or tuple of them, or a `Stream`.

    Raises:
        ValueError: if it is none of these.
    """
    if isinstance(x, Stream):
        return x
    if is_stream(x):
        return Stream(name, x)
    return _each_input(_by_index, name, x)


def is_read_in_batches(x):
    """Whether examples have a form of which memory need not hold all."""
    return is_stream(x) or is_source(x) or isinstance(x, h5py.Dataset)


def as_validation(data, like):
    """`validation_data` of any form in memory, or `None`.

    Args:
        data: A pair `(x, y)`, a data set of such pairs, or `None`.
        like: The labelled examples of the training.

    Returns:
        `(x, y)`, with `x` in the floats of these; or `None`.

    Raises:
        ValueError: if it is none of these.
    """
    names = ("validation_data[0]", "validation_data[1]")
    if data is None:
        return None
    if is_stream(data):
        x, y = as_labeled(data, names=("validation_data", names[1]))
        return in_floats_of(like, x), y
    if not isinstance(data, tuple | list) or len(data) != 2:
        raise ValueError(
            "validation_data must be a pair (x, y) of examples and class "
            "indices, or a data set of such pairs. Received: "
            f"{type(data).__name__}"
        )
    x, y = as_labeled(*data, names=names)
    return in_floats_of(like, x), y


def check_columns(like, **others):
    """Raises unless tables have the same columns, in the same order.

    Columns are taken by their place. Only DataFrames with names for all
    columns are looked at, by themselves or in a pair `(x, y)`.

    Args:
        like: `(name, x)` of the labelled examples.
        **others: Further examples by name, in any form, or `None`.

    Raises:
        ValueError: if they have not.
    """
    wanted = _columns(like[1])
    for name, x in others.items():
        found = _columns(x[0] if isinstance(x, tuple | list) and x else x)
        if wanted is None or found in (None, wanted):
            continue
        a, b = next(
            pair
            for pair in itertools.zip_longest(found, wanted)
            if pair[0] != pair[1]
        )
        raise ValueError(
            f"{name} must have the columns of {like[0]}, in the same order. "
            f"Received: {a!r} in the place of {b!r}. Take them by name: "
            f"{name}[{like[0]}.columns]."
        )


def _columns(x):
    names = list(getattr(x, "columns", ()))
    return names if names and all(isinstance(n, str) for n in names) else None


def in_floats_of(like, x):
    """Examples in memory, their floats in the precision of others.

    Args:
        like: Examples of any kind, or a `Stream`.
        x: Arrays of examples.

    Returns:
        `x` itself, wherever one of the two is not of floats.
    """
    like = like.first if isinstance(like, Stream) else like
    return map_parts(_cast, x, like) if have_same_parts(x, like) else x


def _cast(x, like):
    theirs = np.dtype(getattr(like, "dtype", "object"))
    floats = isinstance(x, np.ndarray) and x.dtype.kind == theirs.kind == "f"
    return x.astype(theirs, copy=False) if floats else x


def _each_input(convert, name, x):
    names = names_of_parts(name, x)
    new = [
        convert(its_name, unmasked(its_name, part))
        for its_name, part in zip(names, parts(x), strict=True)
    ]
    return with_parts(x, new)


def _in_memory(name, x):
    """An array of anything that is like one."""
    if isinstance(x, np.ndarray):
        return x.astype("uint8") if x.dtype == bool else x
    if isinstance(x, h5py.Dataset):
        return _in_memory(name, x[()])
    if hasattr(x, "toarray"):
        return _in_memory(name, x.toarray())
    if hasattr(x, "columns"):
        return _in_memory(name, _table(name, x))
    if isinstance(x, list):
        return _in_memory(name, _stacked(name, x))
    if hasattr(x, "__array__"):
        return _in_memory(name, keras.ops.convert_to_numpy(x))
    # An image source, or what no form is known for: checked later.
    return x


def _by_index(name, x):
    if isinstance(x, h5py.Dataset):
        return HDF5Rows(x)
    if hasattr(x, "tocsr"):
        return SparseRows(x)
    # A memmap stays what it is.
    is_boolean = isinstance(x, np.ndarray) and x.dtype == bool
    if is_source(x) or isinstance(x, np.ndarray) and not is_boolean:
        return x
    return _in_memory(name, x)


def _stacked(name, rows):
    try:
        array = np.asarray(rows)
    except ValueError as error:
        raise ValueError(
            f"{name} must be a list of examples of one shape. Received: "
            f"{len(rows)} of several. Give several inputs as a dict or tuple. "
            f"({error})"
        ) from error
    # Python's numbers have no precision of their own.
    plain = array.dtype == np.float64
    return array.astype(keras.config.floatx()) if plain else array


def _table(name, frame):
    """The columns of a DataFrame as one array."""
    columns = {column: frame[column].to_numpy() for column in frame.columns}
    wrong = [str(c) for c, x in columns.items() if x.dtype.kind not in "biuf"]
    if wrong:
        raise ValueError(
            f"{name} must have columns of numbers. Received: "
            f"{', '.join(wrong[:5])} of another type. Leave them out, or make "
            "numbers of them."
        )
    return np.column_stack(list(columns.values()))


def pieces(name, batches, most_bytes=None):
    """The pairs of a data set, in pieces of many batches in memory.

    Args:
        name: What messages call the data set.
        batches: A `tf.data.Dataset` or `keras.utils.PyDataset`.
        most_bytes: Size of the examples in a piece, but for its last batch;
            `PIECE_BYTES` by default.

    Yields:
        `(x, y)`, with `y` as the data set has it, or `None` if it has none.

    Raises:
        ValueError: if the data set has no end, no batches, or more than pairs.
    """
    stream = Stream(name, batches)
    if stream.is_endless:
        raise ValueError(
            f"{name} must have an end: it is read as a whole. Received: a "
            f"{type(batches).__name__} without one"
        )
    most_bytes = PIECE_BYTES if most_bytes is None else most_bytes
    xs, ys, size = [], [], 0
    for x, y, weights in stream.read():
        if weights is not None:
            raise ValueError(
                f"{name} must hold pairs (x, y). Received: a third part, and "
                "weights of examples play no part here"
            )
        if getattr(y, "ndim", None) == 0:
            raise _not_batched(name)
        xs.append(x)
        ys.append(y)
        size += sum(part.nbytes for part in parts(x))
        if size >= most_bytes:
            yield _joined(xs, ys)
            xs, ys, size = [], [], 0
    if xs:
        yield _joined(xs, ys)


def check_batched(stream, like):
    """Raises if what should be batches are single examples.

    Args:
        stream: A `Stream`.
        like: Arrays of such examples `(m, ...)`.

    Raises:
        ValueError: if they are.
    """
    shapes = [part.shape for part in parts(stream.first)]
    if shapes == [part.shape[1:] for part in parts(like)]:
        raise _not_batched(stream.name)


def _not_batched(name):
    return ValueError(
        f"{name} must give batches of examples. Received: single examples. "
        "Call its batch, e.g. .batch(32)."
    )


def _joined(xs, ys):
    return concatenated(*xs), None if ys[0] is None else np.concatenate(ys)


def _indices(name, y):
    """Labels as class indices, where they can be read as such."""
    y = np.asarray(unmasked(name, y))
    if y.ndim == 2 and y.shape[1] > 1:
        if np.isin(y, (0, 1)).all() and (y.sum(axis=1) == 1).all():
            return y.argmax(axis=1)
        raise ValueError(
            f"{name} must be class indices or one-hot rows. Received: "
            f"shape={y.shape}, of which not every row is a single 1 among 0"
        )
    if y.dtype == bool:
        return y.astype("int64")
    if y.dtype.kind == "f" and np.array_equal(y, np.floor(y)):
        return y.astype("int64")
    return y


class HDF5Rows:
    """Rows of an open `h5py.Dataset`, read when they are asked for.

    Args:
        dataset: An `h5py.Dataset` `(m, ...)`. Chunks of few rows suit draws
            at random.
    """

    def __init__(self, dataset):
        self._dataset = dataset
        self.shape = dataset.shape
        self.dtype = dataset.dtype.newbyteorder("=")

    def __len__(self):
        return self.shape[0]

    def take(self, indices):
        """The rows at these indices, a new array."""
        return read_rows(self._dataset, np.asarray(indices))


class SparseRows:
    """Rows of a SciPy sparse matrix, made dense when they are asked for.

    Args:
        matrix: A SciPy sparse matrix or array `(m, features)`.
    """

    def __init__(self, matrix):
        self._rows = matrix.tocsr()
        self.shape, self.dtype = matrix.shape, matrix.dtype

    def __len__(self):
        return self.shape[0]

    def take(self, indices):
        """The rows at these indices, a new array."""
        return self._rows[np.asarray(indices)].toarray()
