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

from collections import defaultdict

import h5py
import keras
import numpy as np
from keras import layers

from gar_keras.engine.batches import (
    LABELED_PER_BATCH,
    BatchSampler,
    BytesOf,
    TrainingData,
    concatenated,
    num_examples,
    plain_numbers,
    take,
)
from gar_keras.engine.graphs import (
    check_own_fit,
    ensure_built,
    has_graph,
    inputs_of,
    named_inputs,
    uncompiled,
)
from gar_keras.engine.keras_internals import (
    calls,
    flatten_layers,
    may_be_shuffled,
)
from gar_keras.engine.precision import warn_if_lost
from gar_keras.engine.streams import Stream, is_stream
from gar_keras.utils.validation import (
    as_array,
    check_array,
    check_columns,
    check_count,
    check_images,
    check_labels,
    check_logits,
    is_in_memory,
    is_source,
    reason_of,
    unmasked,
)
from gar_keras.utils.warnings import warn

# Initial weights are made for inputs of a mean square of about 1: no column and
# no channel may be much larger than that, nor all columns of a table much less.
LARGEST_ROOT_MEAN_SQUARE = 10.0
LARGEST_OF_COLUMN = 30.0
LEAST_OF_COLUMNS = 0.01

# How often the root mean square of some examples may be that of others; 1 / 255
# beside pixels is beyond it. Both are of examples drawn at random, or of the
# first batch of a data set.
LARGEST_RATIO_OF_SIZES = 50.0
COMPARED = 32

# Examples that a model is called with before its training, and what rounding
# may take from the sum of their probabilities, in bfloat16 as well.
LOOKED_AT = 8
SUM_OF_PROBABILITIES = 1e-2

# Examples that tell how large the numbers are that a network gets.
MEASURED = 100


# Forms


def as_labeled(x, y=None, names=("x_labeled", "y_labeled"), model=None):
    """Labelled examples in memory, and their labels or `None`.

    Of a dict they are those that the model names, if there is one.
    """
    if is_stream(x):
        if y is not None:
            raise ValueError(
                f"{names[1]} must be left out where {names[0]} is a data set "
                f"of pairs (x, y). Received: {names[0]} of type "
                f"{type(x).__name__}, and {names[1]}"
            )
        xs, ys = zip(*pairs(names[0], x, model), strict=True)
        x, y = concatenated(*xs), None if ys[0] is None else np.concatenate(ys)
    else:
        x = named_inputs(model, names[0], x)
        x = _each(_in_memory, names[0], x)
    return x, None if y is None else _indices(names[1], y, model)


def as_unlabeled(x, name="x_unlabeled", model=None):
    """Unlabelled examples: by index, or as a `Stream`."""
    if is_stream(x):
        return Stream(name, x, model)

    def by_index(name, x):
        if not isinstance(x, h5py.Dataset):
            return _in_memory(name, x)
        return BytesOf(x) if x.dtype == bool else x

    return _each(by_index, name, named_inputs(model, name, x))


def some_of(x, most):
    """So many of X_U, at most, at random.

    Of a `PyDataset` in whole batches; of a `tf.data` they are the first.
    """
    if not isinstance(x, Stream):
        m = num_examples(x)
        if m <= most and all(map(is_in_memory, keras.tree.flatten(x))):
            return x
        # Evenly spaced ones can all be of one class, where it recurs.
        rng = np.random.default_rng(0)
        return take(x, np.sort(rng.choice(m, min(m, most), replace=False)))
    held, left = [], most
    for batch, _ in x.read(x.order(0)):
        held.append(batch)
        left -= num_examples(batch)
        if left <= 0:
            break
    if not held:
        # Its first batch was looked at before.
        x.refuse_empty(1)
    return concatenated(*held)


def as_validation(data, like, model=None):
    """`validation_data` as a pair in memory, in the precision of `like`."""
    if data is None:
        return None
    names = ("validation_data[0]", "validation_data[1]")
    if is_stream(data):
        x, y = as_labeled(data, None, ("validation_data", names[1]), model)
    elif isinstance(data, tuple | list) and len(data) == 2:
        x, y = as_labeled(*data, names, model)
    else:
        raise ValueError(
            "validation_data must be a pair (x, y) of examples and class "
            "indices, or a data set of such pairs. Received: "
            f"{type(data).__name__}"
        )
    return _in_floats_of(like, x), y


def pairs(name, batches, model=None):
    """The batches `(x, y)` of a data set, whose `y` may be `None`."""
    stream = Stream(name, batches, model)
    if stream.is_endless:
        raise ValueError(
            f"{name} must have an end: it is read as a whole. Received: a "
            f"{type(batches).__name__} without one"
        )
    has_hooks = isinstance(batches, keras.utils.PyDataset)
    if has_hooks:
        batches.on_epoch_begin()
    is_empty = True
    for x, y in stream.read():
        is_empty = False
        if getattr(y, "ndim", None) == 0:
            raise ValueError(
                f"{name} must give batches of examples. Received: single "
                "examples. Call its batch, e.g. .batch(32)."
            )
        yield x, y
    if is_empty:
        raise stream.none_read()
    if has_hooks:
        batches.on_epoch_end()


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
    check_columns(name, x)
    array = unmasked(name, x)
    if not isinstance(array, np.ndarray):
        array = as_array(name, x)
        if not array.ndim:
            raise ValueError(
                f"{name} must be an array, or what numpy.asarray makes one of, "
                "or a data set of batches; several inputs a dict or tuple. "
                f"Received: {name} of type {type(x).__name__}"
            )
    if array.dtype == object:
        # pandas' nullable columns, and numbers beside booleans.
        array = as_array(name, array.tolist())
    if array.dtype == bool or is_in_memory(array):
        array = plain_numbers(array)
    return array


def _in_floats_of(like, x):
    """Examples in memory, in the precision of others where both are floats."""
    like = like.first if isinstance(like, Stream) else like

    def cast(part, other):
        kinds = {np.dtype(part.dtype).kind, np.dtype(other.dtype).kind}
        if isinstance(part, np.ndarray) and kinds == {"f"}:
            return part.astype(other.dtype, copy=False)
        return part

    try:
        return keras.tree.map_structure(cast, x, like)
    except (TypeError, ValueError):
        raise ValueError(
            "All examples must have the same inputs: an array each, or a dict "
            "or tuple of the same arrays."
        ) from None


def _indices(name, y, model):
    """Labels as class indices, where they can be read as such."""
    y = as_array(name, y)
    if y.ndim == 2 and y.shape[1] > 1:
        _check_columns(name, y, model)
        if np.isin(y, (0, 1)).all() and (y.sum(axis=1) == 1).all():
            return y.argmax(axis=1)
        raise ValueError(
            f"{name} must be class indices or one-hot rows. Received: "
            f"shape={y.shape}, of which not every row is a single 1 among 0"
        )
    whole = y.dtype.kind == "f" and np.array_equal(y, np.floor(y))
    return y.astype("int64") if whole or y.dtype == bool else y


# Checks


def _check_columns(name, one_hot, model):
    """Raises if one-hot rows have fewer columns than the logits."""
    # Those of a model that is not built are not known yet.
    if not has_graph(model) or not model.outputs or len(model.outputs) > 1:
        return
    n = model.outputs[0].shape[-1]
    if one_hot.shape[1] < n:
        raise ValueError(
            f"{name} must have a column for each output of the model, also for "
            f"a class without a label. Received: shape={one_hot.shape}, and "
            f"{n} outputs"
        )


def check_same_columns(x_labeled, validation_data, x_unlabeled=None):
    """Raises if DataFrames of examples have other columns, or another order.

    The arrays that are made of them no longer know.
    """
    x_validation = None
    if isinstance(validation_data, tuple | list) and validation_data:
        x_validation = validation_data[0]
    # By the input: of a dict its key, of a tuple its number.
    tables = defaultdict(dict)
    for whole, x in {
        "x_labeled": x_labeled,
        "x_unlabeled": x_unlabeled,
        "validation_data[0]": x_validation,
    }.items():

        def note(name, part, whole=whole):
            if hasattr(part, "columns") and hasattr(part, "dtypes"):
                which = name.removeprefix(whole)
                tables[which][name] = list(part.columns)

        _each(note, whole, x)
    for of_input in tables.values():
        (first, expected), *others = of_input.items()
        for name, columns in others:
            if columns != expected:
                raise ValueError(
                    f"{name} must have the columns of {first}, in their "
                    f"order. Received: {columns} and {expected}. Select them "
                    f"by name: {name}[{first}.columns]."
                )


def stage_2_data(
    x_labeled, y_labeled, x_unlabeled, validation_data, model=None, **batches
):
    """The `TrainingData`, its labels not yet checked, and validation data."""
    check_same_columns(x_labeled, validation_data, x_unlabeled)
    x_labeled, y_labeled = as_labeled(x_labeled, y_labeled, model=model)
    x_unlabeled = as_unlabeled(x_unlabeled, model=model)
    x_labeled = _in_floats_of(x_unlabeled, x_labeled)
    validation_data = as_validation(validation_data, x_labeled, model)
    sampler = stage_2_sampler(x_labeled, x_unlabeled, **batches)
    if isinstance(x_unlabeled, Stream) and not may_be_shuffled(
        x_unlabeled.batches
    ):
        warn(
            "The batches hold x_unlabeled in the order of its tf.data, in "
            "which no shuffle of single examples is seen: sorted by class, "
            "they would be of few classes each. Call its shuffle before its "
            "batch, unless it was shuffled before."
        )
    data = TrainingData(sampler, x_unlabeled, x_labeled, y_labeled=y_labeled)
    return data, validation_data


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
        check_examples("x_unlabeled", x_unlabeled.first, like)
        if images_per_epoch is None:
            images_per_epoch = x_unlabeled.per_pass
        if images_per_epoch is None:
            raise ValueError(
                "x_unlabeled does not say how many batches it has. Received: "
                "images_per_epoch=None. Say how many examples make an epoch, "
                "or give a tf.data.Dataset its length with "
                "tf.data.experimental.assert_cardinality."
            )
        check_count("images_per_epoch", images_per_epoch, least=1)
        size = images_per_epoch
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


def check_examples(name, x, like=None, check=check_images):
    """Raises unless each input passes the `check`, `like` that of another."""
    parts = keras.tree.flatten(x)
    names = keras.tree.flatten(_each(lambda its_name, _: its_name, name, x))
    others = [None] * len(parts)
    if like is not None:
        others = [(like[0], other) for other in keras.tree.flatten(like[1])]
    # One of several inputs may be a number for each example.
    least = 2 if parts and parts[0] is x else 1
    for its_name, part, other in zip(names, parts, others, strict=True):
        check(its_name, part, other, least_dimensions=least)
        if other is not None:
            other_name, other_part = other
            warn_if_of_other_sizes(
                its_name, sizes_of(part), other_name, sizes_of(other_part)
            )
    if len({len(part) for part in parts}) != 1:
        raise ValueError(
            f"{name} must have as many examples in each input. Received: "
            f"{', '.join(str(len(part)) for part in parts)}"
        )


def sizes_of(x):
    """The root mean square of some examples of one input, and the largest."""
    values = np.asarray(some_of(x, COMPARED)).astype("float64")
    return np.sqrt(np.mean(values**2)), abs(values).max()


def warn_if_of_other_sizes(name, sizes, other_name, other_sizes):
    """Warns if some numbers are far larger than those of other examples."""
    (size, largest), (other_size, other_largest) = sizes, other_sizes
    least, most = sorted((size, other_size))
    if most > LARGEST_RATIO_OF_SIZES * least > 0:
        warn(
            f"{name} holds numbers up to {largest:g}, and {other_name} up to "
            f"{other_largest:g}. Scale both in the same way, e.g. by 1 / 255 "
            "for pixels."
        )


def first_examples(x, most):
    """The first examples, at most so many; of a `Stream` of its first batch."""
    x = x.first if isinstance(x, Stream) else x
    return take(x, np.arange(min(num_examples(x), most)))


def prepared(model, network_of, x_labeled, validation_data):
    """`network_of(model)`, its n and the checked validation data, or `None`."""
    check_own_fit(model)
    ensure_built(model, x_labeled)
    network = network_of(model)
    n = num_classes(network, "x_labeled", x_labeled)
    if not network.trainable_weights:
        raise ValueError(
            "The model must have weights that are trained. Received: "
            f"{model.name!r}, of whose {len(model.weights)} weights none is. "
            "Set trainable = True on it, or on some of its layers."
        )
    if validation_data is not None:
        x, y = validation_data
        like = ("x_labeled", x_labeled)
        check_examples("validation_data[0]", x, like, check_array)
        y = check_labels("validation_data[1]", y, num_examples(x), n)
        validation_data = x, y
    return network, n, validation_data


def num_classes(model, name, x):
    """n of the logits `(batch, n)` that the model gives for such images."""
    check_inputs(model, name, x)
    try:
        logits = model(first_examples(x, LOOKED_AT))
    except Exception as e:
        takes = f", of {_kinds(model.inputs)}" if has_graph(model) else ""
        raise ValueError(
            f"The model {model.name!r}{takes}, fails on {name}. Received: "
            f"{_kinds(keras.tree.flatten(x))}. {reason_of(e)}"
        ) from e
    warn_if_unscaled(model, x)
    n = check_logits(logits)
    warn_if_probabilities(model, logits)
    return n


def warn_if_probabilities(model, outputs):
    """Warns if what a model gives for some examples are probabilities."""
    outputs = keras.ops.convert_to_numpy(outputs).astype("float64")
    if (outputs >= 0).all():
        given, p = "probabilities", outputs
    elif (outputs <= 0).all():
        given, p = "logarithms of probabilities", np.exp(outputs)
    else:
        return
    if (abs(p.sum(axis=1) - 1) < SUM_OF_PROBABILITIES).all():
        warn(
            f"The model {model.name!r} gives {given} (which sum to 1 for each "
            "example), but GAR needs the logits, before any activation. Take "
            "the softmax out of it, and use from_logits=True in the loss."
        )


def _kinds(parts):
    """Shape and dtype of an example, for each input."""
    return " and ".join(f"{part.shape[1:]} {part.dtype}" for part in parts)


def check_inputs(model, name, x):
    """Raises unless the examples have the inputs and the dtypes of a model.

    Warns if an input makes float32 of what float32 does not hold.
    """
    parts = keras.tree.flatten(x)
    if has_graph(model):
        if len(parts) != len(model.inputs):
            arrays = "one array" if len(parts) == 1 else f"{len(parts)} arrays"
            raise ValueError(
                f"The model takes {len(model.inputs)} inputs. Received: "
                f"{arrays} as {name}. Give a dict or a tuple of arrays; a list "
                "is a list of examples."
            )
        inputs = [(tensor.dtype, part) for tensor, part in _inputs(model, x)]
    else:
        # A subclassed model casts floats alone, if any, before its call.
        dtype = model.input_dtype if model.autocast else "float64"
        inputs = [(dtype, part) for part in parts if part.dtype.kind == "f"]
    for dtype, part in inputs:
        dtype = keras.backend.standardize_dtype(dtype)
        if "int" not in dtype:
            if dtype != "float64" and is_in_memory(part):
                warn_if_lost(name, part)
            continue
        is_held = np.can_cast(part.dtype, dtype)
        if is_in_memory(part) and part.dtype.kind in "iu" and part.size:
            limits = np.iinfo(dtype)
            is_held |= limits.min <= part.min() and part.max() <= limits.max
        if not is_held:
            raise ValueError(
                f"The model takes inputs of dtype {dtype}, and Keras would "
                f"cut off what does not fit. Received: {name} of dtype "
                f"{part.dtype}. Give integers that {dtype} holds."
            )


def _inputs(model, x):
    """The inputs of a model, each with what it gets of the examples."""
    inputs, found = model.inputs, keras.tree.flatten(x)
    # Made with a dict, a model has its inputs in the order of the keys.
    if isinstance(x, dict) and not isinstance(inputs_of(model), dict):
        found = [x[tensor.name] for tensor in inputs]
    # Where inputs and arrays differ in number, Keras says so in its call.
    return zip(inputs, found, strict=False)


# Layers whose weights are made for inputs of a usual size.
_WEIGHING = (
    *(layers.Dense, layers.Conv1D, layers.Conv2D, layers.Conv3D),
    *(layers.DepthwiseConv1D, layers.DepthwiseConv2D),
    *(layers.SeparableConv1D, layers.SeparableConv2D),
)


def warn_if_unscaled(model, x):
    """Warns if the first weights of a model get numbers of another size."""
    if not has_graph(model):
        return
    given = [part for _, part in _inputs(model, first_examples(x, MEASURED))]
    for layer, (numbers, *_) in _at_first_weights(uncompiled(model), given):
        sizes = other_sizes(numbers)
        if sizes:
            warn(
                f"The weights of the layer {layer.name!r} get {sizes}, with "
                "which training seldom succeeds. Put "
                "keras.layers.Rescaling(1 / 255), or for features an adapted "
                "keras.layers.Normalization, in front of it."
            )
            return


def _at_first_weights(graph, given):
    """The first layers of a graph that weigh, each with a list of its inputs.

    `given` are the inputs of the graph. In front of such a layer are layers
    without weights, such as augmentation, and `Normalization`.
    """
    reached = {id(tensor) for tensor in graph.inputs}
    for node in calls(graph):
        layer, inputs = node.operation, node.input_tensors
        found = [id(tensor) in reached for tensor in inputs]
        # Examples that are joined to features are still there as they were.
        enough = any if isinstance(layer, layers.Concatenate) else all
        if not enough(found):
            continue
        if not _has_weights(layer):
            reached |= {id(tensor) for tensor in node.output_tensors}
            continue
        is_model = isinstance(layer, keras.Model) and has_graph(layer)
        if not is_model and not isinstance(layer, _WEIGHING):
            continue
        probe = keras.Model(graph.inputs, inputs)
        numbers = keras.tree.flatten(probe(given, training=False))
        if is_model:
            yield from _at_first_weights(uncompiled(layer), numbers)
        else:
            yield layer, numbers


def _has_weights(layer):
    """Whether a layer, if it is one, has weights but those that scale."""
    without = keras.Model, layers.Normalization
    return isinstance(layer, keras.Layer) and any(
        part.weights
        for part in flatten_layers(layer)
        if not isinstance(part, without)
    )


def other_sizes(x):
    """What of some examples is too large or too small, in words, or `""`."""
    values = keras.ops.convert_to_numpy(keras.ops.cast(x, "float32"))
    values = values.astype("float64")
    # A channel of images or series may have a unit of its own.
    over = tuple(range(max(1, values.ndim - 1)))
    columns = np.sqrt(np.mean(values**2, axis=over))
    if (
        np.sqrt(np.mean(values**2)) > LARGEST_ROOT_MEAN_SQUARE
        or columns.max() > LARGEST_OF_COLUMN
    ):
        return f"numbers up to {abs(values).max():g}"
    if values.ndim == 2 and 0 < columns.max() < LEAST_OF_COLUMNS:
        return f"numbers of at most {abs(values).max():g}"
    return ""
