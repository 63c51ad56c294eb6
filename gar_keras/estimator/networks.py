"""The networks that are chosen by the examples alone."""

import keras
import numpy as np
from keras import layers

from gar_keras.engine import hardware
from gar_keras.engine.copies import copy_model, seeded
from gar_keras.engine.data import some_of
from gar_keras.engine.precision import blocks
from gar_keras.models import POLICIES, cnn6, mlp
from gar_keras.utils.images import (
    LAYOUTS,
    channel_axis,
    side_axes,
    standardize_data_format,
)
from gar_keras.utils.warnings import warn

# Sides of an image that the 6-layer CNN is made for: two poolings need 4
# pixels, and its Dense layer outgrows the memory beyond 64.
LEAST_SIDE, MOST_SIDE = 4, 64

# A warning comes where this share of the pixels, of some images, has less than
# this part of the range.
MOST_PIXELS, LEAST_PART, LOOKED_AT = 0.98, 1 / 16, 1000

# Columns of images are taken for features of series, in units of their own,
# where less than this share of a column is one value, and by this ratio of the
# whole range to that of a column.
MOST_ALIKE, LARGEST_RATIO = 0.9, 10


def default_network(x, num_classes):
    """A network from examples as they are to float32 logits, with new weights.

    For images the 6-layer CNN of the paper, `gar_keras.cnn6`, on pixels that
    are divided by 255 if they are uint8, else by the largest in `x`, of each
    channel (and of each feature of a series `(steps, features)`) by itself
    unless all are whole numbers from 0 to 255. Where that leaves less than half
    of the range from 0 to 1, as of masks of 0 and 1 in uint8, the range in `x`
    becomes 0 to 1. For features, which come standardized, two hidden layers of
    128 and 64 ReLU units with dropout.

    Example:

    >>> default_network(np.zeros((5, 3), "float32"), 2).output_shape
    (None, 2)
    """
    if len(x.shape) == 2:
        # So small a network gains nothing by less precision.
        return mlp(x.shape[1:], num_classes, dtype="float32")
    sides = [x.shape[axis] for axis in side_axes()]
    if min(sides) < LEAST_SIDE or max(sides) > MOST_SIDE:
        data_format = standardize_data_format()
        raise ValueError(
            f"The network for images takes {LAYOUTS[data_format]}, with Keras' "
            f"image_data_format() {data_format!r}, and sides from {LEAST_SIDE} "
            f"to {MOST_SIDE} pixels. Received: shape={x.shape}. Resize the "
            "images, move their channels with np.moveaxis, or give a network "
            "of your own."
        )
    channels = x.shape[channel_axis()]
    # As square images do with their channels at the other end.
    if channels == max(sides) > min(sides):
        warn(
            f"Images of {channels} channels look as if their channels were at "
            f"the other end. Received: shape={x.shape}, with Keras' "
            f"image_data_format() {standardize_data_format()!r}. Move the "
            "channels with np.moveaxis."
        )
    return cnn6(
        x.shape[1:],
        num_classes,
        preprocessing=_rescaling(x),
        input_dtype="uint8" if x.dtype == "uint8" else "float32",
        dtype=POLICIES[hardware.fast_precision()],
    )


def of_raw_rows(network, scaler):
    """The network for features on rows that are not standardized, a copy."""
    # The copy's layers would draw from the program's generator.
    with seeded(0):
        model = copy_model(network)
    first = next(i for i in model.layers if isinstance(i, layers.Dense))
    kernel, bias = first.get_weights()
    # Not by Normalization, which divides by 1e-7 and no less.
    first.set_weights([kernel / scaler.scale_[:, None], bias])
    mean = scaler.mean_.astype("float32")
    centered = layers.Normalization(
        mean=mean, variance=np.ones_like(mean), dtype="float32"
    )
    return keras.Sequential([keras.Input(mean.shape), centered, model])


def _rescaling(x):
    """Brings images to a range from 0 to 1, series and channels each by itself.

    All of uint8 or of whole numbers from 0 to 255 have one range.
    """
    axis = _axis_of_units(x)
    over = tuple(i for i in range(x.ndim) if i != axis)
    low = x.min(over, keepdims=True)[0].astype("float64")
    high = x.max(over, keepdims=True)[0].astype("float64")
    some = some_of(x, LOOKED_AT)
    for i in range(low.size):
        part = some if axis is None else some.take([i], axis)
        _warn_of_outliers(part, low.flat[i], high.flat[i])
    largest = 255.0 if x.dtype == "uint8" else np.maximum(-low, high)
    span = high - low
    # Masks of 0 and 1 in uint8, or a range far from 0.
    is_narrow = span < largest / 2
    divisor = np.where(is_narrow, span, largest)
    scale = 1 / np.where(divisor > 0, divisor, 1.0)
    offset = np.where(is_narrow, -low * scale, 0.0)
    if axis is None:
        scale, offset = scale.item(), offset.item()
    return layers.Rescaling(scale, offset, dtype="float32")


def _axis_of_units(x):
    """The axis along which images are of several units, or `None`.

    That of the channels. Of one channel, that of the columns, as in series
    `(steps, features)`, if the range of all is more than 10 times that of one:
    of columns that vary, as the margin of pictures does not.
    """
    if x.dtype == "uint8" or all(
        block.min() >= 0 and block.max() <= 255 and not np.any(block % 1)
        for _, block in blocks(x)
    ):
        return None
    axis = channel_axis()
    if x.shape[axis] > 1:
        return axis
    axis = side_axes()[1]
    over = tuple(i for i in range(x.ndim) if i != axis)
    some = some_of(x, LOOKED_AT)
    is_usual = some == np.median(some, axis=over, keepdims=True)
    varies = np.mean(is_usual, axis=over) < MOST_ALIKE
    if not varies.any():
        return None
    low, high = x.min(over)[varies], x.max(over)[varies]
    is_one = high.max() - low.min() <= LARGEST_RATIO * (high - low).min()
    return None if is_one else axis


def _warn_of_outliers(some, low, high):
    """Warns if a few pixels make the range much larger than the others have."""
    rest = (1 - MOST_PIXELS) / 2
    first, last = np.quantile(some, [rest, 1 - rest])
    # Where most pixels are alike, the picture is in the others.
    if 0 < last - first < LEAST_PART * (high - low):
        warn(
            f"{MOST_PIXELS:.0%} of the pixels are from {first:g} to {last:g}, "
            f"in a range from {low:g} to {high:g} by which the network scales "
            "them: it hardly tells them apart. Replace the few others, such "
            "as 255 for what has no label, or give a network of your own."
        )
