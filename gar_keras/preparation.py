"""Checks of what a training is given, and the callbacks of every training."""

import keras
import numpy as np

from gar_keras.callbacks import ErrorRate
from gar_keras.callbacks import StopOnNaN
from gar_keras.engine.batches import BatchSampler
from gar_keras.models import has_graph
from gar_keras.scaling import warn_if_unscaled
from gar_keras.utils.validation import check_array
from gar_keras.utils.validation import check_count
from gar_keras.utils.validation import check_count_or_auto
from gar_keras.utils.validation import check_images
from gar_keras.utils.validation import check_labels
from gar_keras.utils.validation import is_source

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
    check_images("x_unlabeled", x_unlabeled, like=("x_labeled", x_labeled))
    return BatchSampler(
        len(x_unlabeled),
        unlabeled_per_batch,
        len(x_labeled),
        labeled_per_batch,
        seed,
        images_per_epoch,
    )


def num_classes(model, name, x):
    """n of the logits `(batch, n)` that the model gives for such images."""
    for tensor in model.inputs if has_graph(model) else ():
        dtype = keras.backend.standardize_dtype(tensor.dtype)
        if "int" in dtype and not np.can_cast(x.dtype, dtype):
            raise ValueError(
                f"The model takes images of dtype {dtype}, and Keras would "
                f"cut off what does not fit. Received: {name} of dtype "
                f"{x.dtype}. Give the images as they are stored."
            )
    image = x.take([0]) if is_source(x) else x[:1]
    shape = getattr(model(image), "shape", None)
    if shape is None or len(shape) != 2 or shape[-1] < 2:
        raise ValueError(
            "The model must give one row of logits (n of at least 2) for each "
            f"image. Received: model={model.name!r}, whose output for one "
            f"image has the shape {shape}"
        )
    warn_if_unscaled(model, x)
    return shape[-1]


def standard_callbacks(validation_data, num_classes, like):
    """The callbacks that every training runs with."""
    if validation_data is None:
        return [StopOnNaN()]
    if not isinstance(validation_data, tuple | list) or (
        len(validation_data) != 2
    ):
        raise ValueError(
            "validation_data must be a pair (x, y) of images and class "
            f"indices. Received: {type(validation_data).__name__}"
        )
    x, y = validation_data
    check_array("validation_data[0]", x, like)
    y = check_labels("validation_data[1]", y, len(x), num_classes)
    return [StopOnNaN(), ErrorRate(val_error=(x, y))]
