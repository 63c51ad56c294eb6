"""Whether images reach the weights of a model as they are stored."""

import keras
import numpy as np
from keras import layers

from gar_keras.models import has_graph, uncompiled
from gar_keras.utils.parts import has_parts
from gar_keras.utils.validation import is_source
from gar_keras.utils.warnings import warn

# Initial weights are made for inputs of a mean square of about 1.
LARGEST_ROOT_MEAN_SQUARE = 10.0
# Images looked at.
SAMPLE = 100

# Layers that leave values about as large as they are.
_KEEPING = (
    layers.InputLayer,
    layers.Identity,
    layers.Flatten,
    layers.Reshape,
    layers.Permute,
    layers.Dropout,
    layers.ZeroPadding1D,
    layers.ZeroPadding2D,
    layers.Cropping1D,
    layers.Cropping2D,
    layers.MaxPooling1D,
    layers.MaxPooling2D,
    layers.AveragePooling1D,
    layers.AveragePooling2D,
)
# Layers whose product with the weights is as large as their inputs.
_WEIGHING = (
    layers.Dense,
    layers.Conv1D,
    layers.Conv2D,
    layers.DepthwiseConv2D,
    layers.SeparableConv2D,
)


def warn_if_unscaled(model, x):
    """Warns if the first weights of a model get large integers as they are.

    So too with pixels in floats, as `keras.utils.image_dataset_from_directory`
    gives them. Nothing is said of a model that cannot be known to do so: one
    whose graph Keras does not know, or where any other layer comes before the
    first dense or convolutional one, e.g. an `Embedding` or a layer of one's
    own.

    Args:
        model: A `keras.Model`.
        x: Images `(m, ...)`, an array or image source.

    Warns:
        GARWarning: names the layer.

    Example:

    >>> x = np.array([[1, 0], [0, 1]], "uint8")
    >>> model = keras.Sequential([keras.Input((2,)), layers.Dense(2)])
    >>> warn_if_unscaled(model, x)
    """
    # Which of several inputs the layer gets is not looked into.
    if has_parts(x):
        return
    # Features in floats may be of any scale; images (m, h, w, c) are not.
    if np.dtype(x.dtype).kind not in ("iuf" if len(x.shape) == 4 else "iu"):
        return
    layer = _first_weighing(model)
    if layer is None:
        return
    rows = np.arange(min(len(x), SAMPLE))
    values = (x.take(rows) if is_source(x) else x[rows]).astype("float64")
    if np.sqrt(np.mean(values**2)) <= LARGEST_ROOT_MEAN_SQUARE:
        return
    warn(
        f"The weights of the layer {layer.name!r} get the examples as they are "
        f"stored, numbers up to {values.max():g}, with which training seldom "
        "succeeds. Put keras.layers.Rescaling(1 / 255), or for features an "
        "adapted keras.layers.Normalization, in front of it, or scale the "
        "examples as those that the model was trained on."
    )


def _first_weighing(model):
    """The first dense or convolutional layer, if none rescales before it."""
    for operation in _operations(model) if has_graph(model) else ():
        if isinstance(operation, _WEIGHING):
            return operation
        if not isinstance(operation, _KEEPING):
            return None
    return None


def _operations(model):
    """The operations of a model in order, those of nested models in place."""
    for operation in uncompiled(model).operations:
        if isinstance(operation, keras.Model) and has_graph(operation):
            yield from _operations(operation)
        else:
            yield operation
