"""Where a method moves the examples of a network, behind its preprocessing."""

import keras
from keras import layers, ops

from gar_keras.engine.graphs import has_graph
from gar_keras.engine.keras_internals import calls
from gar_keras.layers import PerImageStandardization, Standardization

# Layers that make, of the images as stored, the images that are moved.
PREPROCESSING = (
    layers.Rescaling,
    layers.Normalization,
    PerImageStandardization,
    Standardization,
)


def preprocessed(front, x):
    """Examples as the preprocessing layers `front` give them, in float32."""
    # The one input may be in a dict or tuple.
    (x,) = keras.tree.flatten(x)
    x = ops.cast(x, "float32")
    for layer in front:
        x = ops.cast(layer(x), "float32")
    return x


def split(network, method):
    """The preprocessing layers of a network, and a model of what is behind.

    The model takes floats: integers would round the perturbed images. `method`
    is the name of what moves them, for messages.
    """
    if not has_graph(network):
        return [], network
    if len(network.inputs) > 1:
        raise ValueError(
            f"{method} moves the one input of a model. Received: "
            f"model={network.name!r} of {len(network.inputs)} inputs. Leave it "
            "out, or take another method."
        )
    x, logits = network.inputs[0], network.outputs[0]
    dtype = keras.backend.standardize_dtype(x.dtype)
    nodes, front = calls(keras.Model(x, logits)), []
    while True:
        behind = [n for n in nodes if any(t is x for t in n.input_tensors)]
        # What else gets the images would miss them behind the layer.
        layer = behind[0].operation if len(behind) == 1 else None
        if not isinstance(layer, PREPROCESSING):
            break
        front.append(layer)
        x = behind[0].output_tensors[0]
    if "float" not in dtype and not front:
        raise ValueError(
            f"{method} moves the images a little, but the model takes {dtype}. "
            f"Received: model={network.name!r}. Begin "
            "the model with a Rescaling layer, or give it float images."
        )
    return front, keras.Model(x, logits, name="rest")
