"""Where a term moves the examples of a network: behind its preprocessing.

And behind augmentation by random layers: all passes see the same images.
"""

import keras
from keras import layers, ops

from gar_keras.engine.graphs import has_graph
from gar_keras.engine.keras_internals import calls, flatten_layers
from gar_keras.layers import PerImageStandardization

# Layers that make, of the images as stored, the images that are moved.
PREPROCESSING = (
    layers.Rescaling,
    layers.Normalization,
    PerImageStandardization,
)


def is_random(model):
    """Whether a layer or a model draws random numbers, as `Dropout` does.

    Example:

    >>> is_random(layers.Dropout(0.5)), is_random(layers.Dropout(0.0))
    (True, False)
    """
    # The variables that are no weights are the states of seeds. A model itself
    # is left out: once it is compiled, it has metrics too.
    return any(
        len(layer.variables) > len(layer.weights)
        for layer in flatten_layers(model)
        if not isinstance(layer, keras.Model)
    )


def preprocessed(front, x, training):
    """Examples as the layers `front` give them, in float32."""
    # The one input may be in a dict or tuple.
    (x,) = keras.tree.flatten(x)
    x = ops.cast(x, "float32")
    for layer in front:
        x = ops.cast(layer(x, training=training), "float32")
    return x


def split(network, method):
    """The first layers of a network, and a model of what is behind.

    The layers are those of preprocessing, and random ones without weights. The
    model takes floats: integers would round the perturbed images. `method` is
    the name of what moves them, for messages.
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
        # Another branch that gets the images would miss what the layer does.
        layer = behind[0].operation if len(behind) == 1 else None
        is_layer = isinstance(layer, layers.Layer)
        augments = is_layer and not layer.weights and is_random(layer)
        if not isinstance(layer, PREPROCESSING) and not augments:
            break
        front.append(layer)
        x = behind[0].output_tensors[0]
    if "float" not in dtype and not front:
        raise ValueError(
            f"{method} moves the images a little, but the model takes {dtype}. "
            f"Received: model={network.name!r}. Begin "
            "the model with a Rescaling layer, or give it float images."
        )
    for node in behind:
        if isinstance(node.operation, layers.Embedding):
            raise ValueError(
                f"{method} moves the examples a little, but an Embedding takes "
                f"whole numbers. Received: model={network.name!r} with "
                f"{node.operation.name!r}. Take another method."
            )
    return front, keras.Model(x, logits, name="rest")
