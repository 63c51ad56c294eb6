"""Copies of a user's model: the same layers, with weights of their own."""

import contextlib
import copy
import random
import threading
import types

import keras
import numpy as np

from gar_keras.engine.batches import take
from gar_keras.engine.graphs import has_graph, inputs_of, uncompiled
from gar_keras.engine.keras_internals import flatten_layers
from gar_keras.utils.validation import reason_of

# Examples that tell whether a copy is right, and the difference that its
# outputs may have, in parts of the largest.
COMPARED = 4
TOLERANCE = 1e-3

# Python's generator belongs to all threads of the program.
_drawing = threading.RLock()


@contextlib.contextmanager
def seeded(seed):
    """Within it, new Keras layers draw from `seed`, and nothing else does.

    Keras takes the seed of a new layer from Python's generator. Only one thread
    at a time is in it, and the generator is afterwards as it was.
    """
    with _drawing:
        state = random.getstate()
        random.seed(seed)
        try:
            yield
        finally:
            random.setstate(state)


def copy_model(model, x=None):
    """A model of the same layers, weights and state, as Keras pickles it.

    The copy is not compiled, and its random layers, such as `Dropout`, draw
    anew.

    Args:
        model: A Keras model.
        x: Examples for which both models must give the same; zeros if `None`.

    Raises:
        ValueError: if Keras cannot copy the model, or loses a part of it.
    """
    layers = flatten_layers(model)
    try:
        with keras.saving.custom_object_scope(_objects_of(layers)):
            copied = copy.deepcopy(
                uncompiled(model) if has_graph(model) else model
            )
        # The first layer is the model itself, of whatever class.
        for old, new in zip(
            layers[1:], flatten_layers(copied)[1:], strict=True
        ):
            # Keras takes the rank for it when it builds a layer.
            if getattr(old, "lora_enabled", False):
                new.lora_alpha = old.lora_alpha
        # Keras merges the weights of an adapter, and forgets which weights are
        # frozen. As arrays: on JAX two variables would share one.
        for old, new in zip(model.weights, copied.weights, strict=True):
            new.trainable = old.trainable
            new.assign(keras.ops.convert_to_numpy(old))
    except Exception as e:
        raise ValueError(
            f"Keras cannot copy the model {model.name!r}: {reason_of(e)} Give "
            "a model whose layers have a get_config, or, to GARClassifier, a "
            "function that makes it."
        ) from e
    some = _zeros(model) if x is None else take(x, slice(COMPARED))
    if model.built and some is not None:
        _check_outputs(model, copied, some)
    return copied


def _zeros(model):
    """An example of zeros for a model, or `None` if its shape is not known."""
    inputs = inputs_of(model) if has_graph(model) else None
    tensors = keras.tree.flatten(inputs)
    if any(
        tensor is None or None in tensor.shape[1:] or tensor.dtype == "string"
        for tensor in tensors
    ):
        return None
    return keras.tree.map_structure(
        lambda tensor: np.zeros((1, *tensor.shape[1:]), tensor.dtype), inputs
    )


def _check_outputs(model, copy, x):
    """Raises if a copy gives something else than the model for examples."""
    try:
        its, again = (_outputs(model, x) for _ in range(2))
    # What does not fit the model is told where its logits are looked at.
    except Exception:
        return
    # Layers that always draw, such as noise, give something else each time.
    if not np.array_equal(its, again, equal_nan=True):
        return
    allowed = TOLERANCE * abs(its).max()
    mine = _outputs(copy, x)
    if not np.allclose(its, mine, rtol=0, atol=allowed, equal_nan=True):
        raise ValueError(
            f"Keras cannot copy the model {model.name!r}: the copy gives other "
            f"outputs for the same examples{_of_which_layer(model)}. What is "
            "in a plain attribute of a layer is not copied: make it with "
            "add_weight, or name it in get_config, or give GARClassifier a "
            "function that makes the model."
        )


def _outputs(model, x):
    outputs = keras.tree.flatten(model(x, training=False))
    return np.concatenate(
        [np.ravel(keras.ops.convert_to_numpy(part)) for part in outputs]
    ).astype("float64")


def _of_which_layer(model):
    """The first layer with an array in a plain attribute, in words."""
    for layer in flatten_layers(model):
        for name, value in vars(layer).items():
            is_array = keras.ops.is_tensor(value) or isinstance(
                value, np.ndarray
            )
            if is_array and not type(layer).__module__.startswith("keras."):
                return f". Received: the layer {layer.name!r} with {name!r}"
    return ""


def _objects_of(layers):
    """Classes and functions of a user's own in some layers, by name."""
    found = {}
    for layer in layers:
        for value in (layer, *vars(layer).values()):
            if isinstance(value, types.FunctionType):
                found[value.__name__] = value
            elif not type(value).__module__.startswith(("builtins", "keras.")):
                found[type(value).__name__] = type(value)
    return found
