"""The networks that are chosen by the examples alone."""

import numpy as np
from keras import layers

from gar_keras.engine import hardware
from gar_keras.models import POLICIES, cnn6, mlp

# Sides of an image that the 6-layer CNN is made for: two poolings need 4
# pixels, and its Dense layer outgrows the memory beyond 64.
LEAST_SIDE, MOST_SIDE = 4, 64


def default_network(x, num_classes):
    """A network from examples as they are to float32 logits, with new weights.

    For images the 6-layer CNN of the paper, `gar_keras.cnn6`, on pixels that
    are divided by 255 if they are uint8, else by the largest in `x`. For
    features two hidden layers of 128 and 64 ReLU units with dropout, on
    features that are brought to mean 0 and standard deviation 1 over `x`.

    Example:

    >>> default_network(np.zeros((5, 3), "float32"), 2).output_shape
    (None, 2)
    """
    if len(x.shape) == 2:
        return _mlp(x, num_classes)
    sides = x.shape[1:3]
    if min(sides) < LEAST_SIDE or max(sides) > MOST_SIDE:
        raise ValueError(
            "The network for images takes (m, height, width, channels), with "
            f"sides from {LEAST_SIDE} to {MOST_SIDE} pixels. Received: "
            f"shape={x.shape}. Resize the images, move channels that come "
            "first with np.moveaxis(x, 1, -1), or give a network of your own."
        )
    stored = "uint8" if x.dtype == "uint8" else "float32"
    largest = 255 if stored == "uint8" else float(np.abs(x).max()) or 1.0
    return cnn6(
        x.shape[1:],
        num_classes,
        preprocessing=layers.Rescaling(1 / largest, dtype="float32"),
        input_dtype=stored,
        dtype=POLICIES[hardware.fast_precision()],
    )


def _mlp(x, num_classes):
    mean, variance = x.mean(0, dtype="float64"), x.var(0, dtype="float64")
    # A constant feature becomes 0, whatever rounding leaves of its variance.
    constant = np.ptp(x, axis=0) == 0
    scaling = layers.Normalization(
        mean=np.where(constant, x[0], mean).astype("float32"),
        variance=np.where(constant, 1, variance).astype("float32"),
        dtype="float32",
    )
    return mlp(
        x.shape[1:],
        num_classes,
        preprocessing=scaling,
        input_dtype="float32",
        # So small a network gains nothing by less precision.
        dtype="float32",
    )
