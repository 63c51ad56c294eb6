"""Checks of what a training is given, and the callbacks of every training."""

from dataclasses import dataclass
from typing import Any

import keras
import numpy as np

from gar_keras.callbacks import ErrorRate, StopOnNaN
from gar_keras.data_adapters import (
    Stream,
    as_labeled,
    as_unlabeled,
    as_validation,
    check_batched,
    check_columns,
    in_floats_of,
)
from gar_keras.engine.batches import BatchSampler, take
from gar_keras.models import ensure_built, has_graph
from gar_keras.scaling import warn_if_unscaled
from gar_keras.utils.parts import num_examples, parts
from gar_keras.utils.validation import (
    check_array,
    check_count,
    check_count_or_auto,
    check_images,
    check_labels,
)

# With `epochs="auto"`: at most those of the authors' code, and no more than
# these after the one with the least validation error.
MOST_EPOCHS = 200
PATIENCE = 10


def early_stopping(epochs, validation_data):
    """The epochs of stage 2, at most, and the callbacks that end it sooner.

    Args:
        epochs: Number of epochs, or `"auto"`.
        validation_data: What decides with `"auto"`, or `None`.

    Returns:
        `(epochs, callbacks)`, with a number of epochs.

    Raises:
        ValueError: if `epochs` is neither, or nothing could decide.

    Example:

    >>> early_stopping(50, None)
    (50, [])
    """
    if check_count_or_auto("epochs", epochs) != "auto":
        return epochs, []
    if validation_data is None:
        raise ValueError(
            "epochs='auto' ends training by the validation error. Received: "
            "validation_data=None. Give validation_data, or a number of epochs."
        )
    stop = keras.callbacks.EarlyStopping(
        "val_error", patience=PATIENCE, mode="min"
    )
    return MOST_EPOCHS, [stop]


def check_epochs(epochs, initial_epoch):
    """Raises unless training can go on from one epoch up to the other."""
    check_count("epochs", epochs, least=1)
    check_count("initial_epoch", initial_epoch, least=0, most=epochs)


@dataclass(frozen=True)
class Stage2Data:
    """What stage 2 is given, in the forms that the engine takes.

    Attributes:
        x_labeled: X_L, in memory.
        y_labeled: Labels of X_L, class indices if they can be read as such, or
            `None`.
        x_unlabeled: X_U: by index, or as a `Stream`.
        validation: `(x, y)` in memory, or `None`.
    """

    x_labeled: Any
    y_labeled: np.ndarray | None
    x_unlabeled: Any
    validation: tuple | None


def stage_2_data(x_labeled, y_labeled, x_unlabeled, validation_data):
    """`Stage2Data` of anything that `gar_keras.regularize` takes.

    Raises:
        ValueError: if one of them is nothing that it takes.
    """
    check_columns(
        ("x_labeled", x_labeled),
        x_unlabeled=x_unlabeled,
        validation_data=validation_data,
    )
    x_labeled, y_labeled = as_labeled(x_labeled, y_labeled)
    x_unlabeled = as_unlabeled(x_unlabeled)
    x_labeled = in_floats_of(x_unlabeled, x_labeled)
    validation = as_validation(validation_data, x_labeled)
    return Stage2Data(x_labeled, y_labeled, x_unlabeled, validation)


def stage_2_sampler(
    x_labeled,
    x_unlabeled,
    labeled_per_batch,
    unlabeled_per_batch,
    images_per_epoch,
    seed,
):
    """The `BatchSampler` of X_L and X_U, of which both are checked."""
    check_array("x_labeled", x_labeled)
    # The sampler knows it by another name.
    check_count("unlabeled_per_batch", unlabeled_per_batch, least=1)
    like = ("x_labeled", x_labeled)
    if isinstance(x_unlabeled, Stream):
        check_batched(x_unlabeled, x_labeled)
        check_images("x_unlabeled", x_unlabeled.first, like)
        size = images_per_epoch = _epoch_of(x_unlabeled, images_per_epoch)
    else:
        check_images("x_unlabeled", x_unlabeled, like)
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


def prepared(model, network_of, x_labeled, validation_data):
    """What is trained of a model, once it is seen to fit the data.

    Args:
        model: A `keras.Model`. It is built for X_L, if it is not yet.
        network_of: Function that returns what is trained of a built model.
        x_labeled: X_L.
        validation_data: As `data_adapters.as_validation` gives it.

    Returns:
        `(network, num_classes, callbacks)`: the model from images to logits,
        n, and the callbacks that every training runs with.
    """
    ensure_built(model, x_labeled)
    network = network_of(model)
    like = ("x_labeled", x_labeled)
    n = num_classes(network, *like)
    return network, n, standard_callbacks(validation_data, n, like)


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
    inputs = model.inputs
    if isinstance(x, dict) and all(t.name in x for t in inputs):
        found = [x[tensor.name] for tensor in inputs]
    else:
        found = parts(x)
    if len(inputs) != len(parts(x)):
        raise ValueError(
            f"The model has {len(inputs)} inputs, and {len(parts(x))} are "
            f"given. Received: model={model.name!r}. Give {name} as a dict or "
            "tuple with one array for each input."
        )
    return zip(inputs, found, strict=True)


def standard_callbacks(validation_data, num_classes, like):
    """The callbacks that every training runs with.

    Args:
        validation_data: As `data_adapters.as_validation` gives it.
        num_classes: n.
        like: `(name, x)` of the labelled images.
    """
    if validation_data is None:
        return [StopOnNaN()]
    x, y = validation_data
    check_array("validation_data[0]", x, like)
    y = check_labels("validation_data[1]", y, num_examples(x), num_classes)
    return [StopOnNaN(), ErrorRate(val_error=(x, y))]
