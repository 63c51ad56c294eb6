"""Data in the forms that `fit` takes, and the checks of a training.

| form | labelled examples | unlabelled examples |
| --- | --- | --- |
| what `numpy.asarray` takes | an array | an array |
| `numpy.memmap`, `h5py.Dataset`, image source | an array | read by index |
| `tf.data.Dataset`, `keras.utils.PyDataset` | read to the end | a `Stream` |
| dict or tuple: several inputs | each by itself | each by itself |

Labelled examples are few, and are taken into memory. Of unlabelled ones no
more is in memory than a few batches, unless it was before. An image source has
a length, `shape`, `dtype` and `take(indices)`.
"""

import math

import h5py
import keras
import numpy as np
from keras import layers

from gar_keras.engine.batches import (
    LABELED_PER_BATCH,
    BatchSampler,
    Feed,
    concatenated,
    num_examples,
    take,
)
from gar_keras.engine.graphs import ensure_built, has_graph, uncompiled
from gar_keras.engine.streams import Stream, is_stream
from gar_keras.utils.validation import (
    check_array,
    check_count,
    check_images,
    check_labels,
    is_source,
    unmasked,
)
from gar_keras.utils.warnings import warn

# Examples of a data set that are evaluated at a time.
PIECE_BYTES = 256 << 20
# Initial weights are made for inputs of a mean square of about 1.
LARGEST_ROOT_MEAN_SQUARE = 10.0


# Forms


def as_labeled(x, y=None, names=("x_labeled", "y_labeled")):
    """Labelled examples in memory, and their labels or `None`.

    Args:
        x: Examples, in any form of the table above; a data set gives pairs
            `(x, y)`.
        y: Class indices, as integers, whole floats or booleans, or one-hot
            rows. `None` where `x` gives them, or has none.
        names: What messages call the two.

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
        x = _each(_in_memory, names[0], x)
    return x, None if y is None else _indices(names[1], y)


def as_unlabeled(x, name="x_unlabeled"):
    """Unlabelled examples: by index, or as a `Stream`.

    `x` is of any form of the table above. A data set may give labels as well,
    which play no part.
    """
    return Stream(name, x) if is_stream(x) else _each(_by_index, name, x)


def _by_index(name, x):
    return x if isinstance(x, h5py.Dataset) else _in_memory(name, x)


def some_of(x, most):
    """Unlabelled examples in memory: up to so many, from the whole of X_U.

    Of a data set they are the first.

    Args:
        x: Examples as `as_unlabeled` gives them.
        most: Number of examples, at most.
    """
    if not isinstance(x, Stream):
        m = num_examples(x)
        return take(x, np.linspace(0, m - 1, min(m, most)).astype(int))
    held, left = [], most
    for batch, *_ in x.read():
        held.append(batch)
        left -= num_examples(batch)
        if left <= 0:
            break
    return concatenated(*held)


def as_validation(data, like):
    """`validation_data` of any form as a pair in memory, or `None`.

    The examples are in the precision of `like`, those of the training.
    """
    if data is None:
        return None
    names = ("validation_data[0]", "validation_data[1]")
    if is_stream(data):
        x, y = as_labeled(data, names=("validation_data", names[1]))
    elif isinstance(data, tuple | list) and len(data) == 2:
        x, y = as_labeled(*data, names=names)
    else:
        raise ValueError(
            "validation_data must be a pair (x, y) of examples and class "
            "indices, or a data set of such pairs. Received: "
            f"{type(data).__name__}"
        )
    return _in_floats_of(like, x), y


def pieces(name, batches, most_bytes=None):
    """The pairs `(x, y)` of a data set, in pieces of many batches in memory.

    A piece ends with the batch that fills `most_bytes`, by default
    `PIECE_BYTES`. `y` is `None` if the data set has none.
    """
    stream = Stream(name, batches)
    if stream.is_endless:
        raise ValueError(
            f"{name} must have an end: it is read as a whole. Received: a "
            f"{type(batches).__name__} without one"
        )
    held, size = [], 0
    for x, y, weights in stream.read():
        if weights is not None:
            raise ValueError(
                f"{name} must hold pairs (x, y). Received: a third part, and "
                "weights of examples play no part here"
            )
        if getattr(y, "ndim", None) == 0:
            raise _not_batched(name)
        held.append((x, y))
        size += sum(part.nbytes for part in keras.tree.flatten(x))
        if size >= (PIECE_BYTES if most_bytes is None else most_bytes):
            yield _joined(held)
            held, size = [], 0
    if held:
        yield _joined(held)


def _joined(pairs):
    xs, ys = zip(*pairs, strict=True)
    return concatenated(*xs), None if ys[0] is None else np.concatenate(ys)


def _each(convert, name, x):
    """`convert(name, input)` of each input, in the structure that they have."""
    if isinstance(x, dict):
        return {k: _each(convert, f"{name}[{k!r}]", x[k]) for k in x}
    if isinstance(x, tuple):
        parts = enumerate(x)
        return tuple(_each(convert, f"{name}[{i}]", part) for i, part in parts)
    return convert(name, x)


def _in_memory(name, x):
    """An array of anything that is like one; a memmap stays what it is."""
    if is_source(x):
        return x
    array = unmasked(name, x)
    if not isinstance(array, np.ndarray):
        try:
            array = np.asarray(x)
        except (TypeError, ValueError):
            # Rows of several lengths.
            array = np.asarray(None)
        if not array.ndim:
            raise ValueError(
                f"{name} must be an array, or what numpy.asarray makes one of, "
                "or a data set of batches; several inputs a dict or tuple. "
                f"Received: {name} of type {type(x).__name__}"
            )
    if array.dtype == bool:
        return array.astype("uint8")
    # Python's numbers have no precision of their own.
    plain = isinstance(x, list) and array.dtype == np.float64
    return array.astype(keras.config.floatx()) if plain else array


def _in_floats_of(like, x):
    """Examples in memory, in the precision of others where both are floats."""
    like = like.first if isinstance(like, Stream) else like
    dtypes = [np.dtype(part.dtype) for part in keras.tree.flatten(like)]
    parts = keras.tree.flatten(x)
    if len(parts) != len(dtypes):
        return x
    cast = [
        part.astype(dtype, copy=False)
        if isinstance(part, np.ndarray) and part.dtype.kind == dtype.kind == "f"
        else part
        for part, dtype in zip(parts, dtypes, strict=True)
    ]
    return keras.tree.pack_sequence_as(x, cast)


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
    whole = y.dtype.kind == "f" and np.array_equal(y, np.floor(y))
    return y.astype("int64") if whole or y.dtype == bool else y


# Checks


def stage_2_data(x_labeled, y_labeled, x_unlabeled, validation_data, **batches):
    """What stage 2 trains on, of any form, checked.

    `batches` is what `stage_2_sampler` takes besides.

    Returns:
        `(feed, validation_data)`: an `engine.batches.Feed`, whose labels have
        yet to be checked, and a pair in memory or `None`.
    """
    x_labeled, y_labeled = as_labeled(x_labeled, y_labeled)
    x_unlabeled = as_unlabeled(x_unlabeled)
    x_labeled = _in_floats_of(x_unlabeled, x_labeled)
    validation_data = as_validation(validation_data, x_labeled)
    sampler = stage_2_sampler(x_labeled, x_unlabeled, **batches)
    feed = Feed(sampler, x_unlabeled, x_labeled, y_labeled=y_labeled)
    return feed, validation_data


def stage_2_sampler(
    x_labeled,
    x_unlabeled,
    labeled_per_batch,
    unlabeled_per_batch,
    images_per_epoch,
    seed,
):
    """The `BatchSampler` of X_L and X_U, of which both are checked."""
    check_examples("x_labeled", x_labeled, check=check_array)
    if labeled_per_batch is None:
        labeled_per_batch = min(LABELED_PER_BATCH, num_examples(x_labeled))
    # The sampler knows it by another name.
    check_count("unlabeled_per_batch", unlabeled_per_batch, least=1)
    like = ("x_labeled", x_labeled)
    if isinstance(x_unlabeled, Stream):
        shapes = [part.shape for part in keras.tree.flatten(x_unlabeled.first)]
        single = [part.shape[1:] for part in keras.tree.flatten(x_labeled)]
        if shapes == single:
            raise _not_batched(x_unlabeled.name)
        check_examples("x_unlabeled", x_unlabeled.first, like)
        size = images_per_epoch = _epoch_of(x_unlabeled, images_per_epoch)
    else:
        check_examples("x_unlabeled", x_unlabeled, like)
        size = num_examples(x_unlabeled)
    return BatchSampler(
        size,
        unlabeled_per_batch,
        num_examples(x_labeled),
        labeled_per_batch,
        seed,
        images_per_epoch,
        getattr(x_unlabeled, "in_random_order", False),
    )


def _epoch_of(stream, images_per_epoch):
    """Images of a stream in an epoch."""
    if images_per_epoch is not None:
        return check_count("images_per_epoch", images_per_epoch, least=1)
    if stream.per_pass is None:
        raise ValueError(
            "x_unlabeled does not say how many batches it has. Received: "
            "images_per_epoch=None. Say how many examples make an epoch, "
            "or give a tf.data.Dataset its length with "
            "tf.data.experimental.assert_cardinality."
        )
    return stream.per_pass


def _not_batched(name):
    return ValueError(
        f"{name} must give batches of examples. Received: single examples. "
        "Call its batch, e.g. .batch(32)."
    )


def check_examples(name, x, like=None, check=check_images):
    """Raises unless examples of one or several inputs can be batches.

    Args:
        name: Name of the argument, for the message.
        x: Arrays, files or image sources, as `as_unlabeled` gives them.
        like: `(name, x)` of others, of the same shapes and dtypes.
        check: The check of each input: `check_array` if it must be in memory.
    """
    parts = keras.tree.flatten(x)
    names = keras.tree.flatten(_each(lambda its_name, _: its_name, name, x))
    others = [None] * len(parts)
    if like is not None:
        try:
            keras.tree.assert_same_structure(x, like[1])
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{name} and {like[0]} must have the same inputs. Received: "
                f"{', '.join(names)}"
            ) from error
        others = [(like[0], other) for other in keras.tree.flatten(like[1])]
    # One of several inputs may be a number for each example.
    least = 2 if parts and parts[0] is x else 1
    for its_name, part, other in zip(names, parts, others, strict=True):
        check(its_name, part, other, least_dimensions=least)
    if len({len(part) for part in parts}) != 1:
        raise ValueError(
            f"{name} must have as many examples in each input. Received: "
            f"{', '.join(str(len(part)) for part in parts)}"
        )


def prepared(model, network_of, x_labeled, validation_data):
    """What is trained of a model, once it is seen to fit the data.

    Args:
        model: A `keras.Model`. It is built for X_L, if it is not yet.
        network_of: Function that returns what is trained of a built model.
        x_labeled: X_L.
        validation_data: As `as_validation` gives it.

    Returns:
        `(network, num_classes, validation_data)`: the model from images to
        logits, n, and the pair with checked labels, or `None`.
    """
    ensure_built(model, x_labeled)
    network = network_of(model)
    n = num_classes(network, "x_labeled", x_labeled)
    if validation_data is not None:
        x, y = validation_data
        like = ("x_labeled", x_labeled)
        check_examples("validation_data[0]", x, like, check_array)
        y = check_labels("validation_data[1]", y, num_examples(x), n)
        validation_data = x, y
    return network, n, validation_data


def num_classes(model, name, x):
    """n of the logits `(batch, n)` that the model gives for such images."""
    for tensor, part in _inputs(model, name, x) if has_graph(model) else ():
        dtype = keras.backend.standardize_dtype(tensor.dtype)
        if "int" in dtype and not np.can_cast(part.dtype, dtype):
            raise ValueError(
                f"The model takes inputs of dtype {dtype}, and Keras would "
                f"cut off what does not fit. Received: {name} of dtype "
                f"{part.dtype}. Give the examples as they are stored."
            )
    shape = getattr(model(take(x, np.arange(1))), "shape", None)
    if shape is None or len(shape) != 2 or shape[-1] < 2:
        raise ValueError(
            "The model must give one row of logits (n of at least 2) for each "
            f"example. Received: model={model.name!r}, whose output for one "
            f"example has the shape {shape}"
        )
    warn_if_unscaled(model, x)
    return shape[-1]


def _inputs(model, name, x):
    """The inputs of a model, each with what it gets of the examples."""
    inputs, found = model.inputs, keras.tree.flatten(x)
    if len(inputs) != len(found):
        raise ValueError(
            f"The model has {len(inputs)} inputs, and {len(found)} are "
            f"given. Received: model={model.name!r}. Give {name} as a dict or "
            "tuple with one array for each input."
        )
    if isinstance(x, dict) and all(tensor.name in x for tensor in inputs):
        found = [x[tensor.name] for tensor in inputs]
    return zip(inputs, found, strict=True)


# Layers that leave values as large as they are, and those whose product with
# the weights is as large as their inputs.
_KEEPING = (
    layers.InputLayer,
    layers.Flatten,
    layers.Reshape,
    layers.Dropout,
    layers.ZeroPadding2D,
    layers.MaxPooling2D,
    layers.AveragePooling2D,
)
_WEIGHING = (layers.Dense, layers.Conv1D, layers.Conv2D)


def warn_if_unscaled(model, x):
    """Warns if the first weights of a model get large integers as they are.

    So too with pixels in floats, as `keras.utils.image_dataset_from_directory`
    gives them. Nothing is said where any other layer than those that keep
    values as they are comes before the first dense or convolutional one.
    """
    # Features in floats may be of any scale; images (m, h, w, c) are not.
    is_one = hasattr(x, "dtype") and has_graph(model)
    if not is_one or np.dtype(x.dtype).kind == "f" and len(x.shape) != 4:
        return
    others = (o for o in _operations(model) if not isinstance(o, _KEEPING))
    first = next(others, None)
    values = take(x, np.arange(min(len(x), 100))).astype("float64")
    large = np.sqrt(np.mean(values**2)) > LARGEST_ROOT_MEAN_SQUARE
    if large and isinstance(first, _WEIGHING):
        warn(
            f"The weights of the layer {first.name!r} get the examples as they "
            f"are stored, numbers up to {values.max():g}, with which training "
            "seldom succeeds. Put keras.layers.Rescaling(1 / 255), or for "
            "features an adapted keras.layers.Normalization, in front of it."
        )


def _operations(model):
    """The operations of a model in order, those of nested models in place."""
    for operation in uncompiled(model).operations:
        if isinstance(operation, keras.Model) and has_graph(operation):
            yield from _operations(operation)
        else:
            yield operation
