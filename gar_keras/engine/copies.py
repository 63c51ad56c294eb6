"""Copies of a user's model: the same layers, with weights of their own."""

import contextlib
import copy
import random
import threading
import types

import keras
import numpy as np

from gar_keras.engine.batches import take
from gar_keras.engine.graphs import has_graph, uncompiled, zeros_for
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
    bare = uncompiled(model) if has_graph(model) else model
    is_compiled = bare.compiled
    try:
        # Keras would copy the optimizer as well.
        bare.compiled = False
        with keras.saving.custom_object_scope(_objects_of(layers)):
            copied = copy.deepcopy(bare)
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
    finally:
        bare.compiled = is_compiled
    if model.built:
        _check_outputs(model, copied, x)
    return copied


def _check_outputs(model, copied, x):
    """Raises if a copy gives something else than the model for examples."""

    def outputs(of):
        found = keras.tree.flatten(of(some, training=False))
        arrays = [np.ravel(keras.ops.convert_to_numpy(part)) for part in found]
        return np.concatenate(arrays).astype("float64")

    # An input without a shape has no zeros; and what does not fit the model is
    # told where its logits are looked at.
    try:
        some = zeros_for(model) if x is None else take(x, slice(COMPARED))
        expected, again = outputs(model), outputs(model)
    except Exception:
        return
    # Layers that always draw, such as noise, give something else each time.
    if not np.array_equal(expected, again, equal_nan=True):
        return
    allowed = TOLERANCE * abs(expected).max()
    received = outputs(copied)
    if not np.allclose(
        expected, received, rtol=0, atol=allowed, equal_nan=True
    ):
        raise ValueError(
            f"Keras cannot copy the model {model.name!r}: the copy gives other "
            "outputs for the same examples. What is in a plain attribute of a "
            "layer is not copied: make it with add_weight, or name it in "
            "get_config, or give GARClassifier a function that makes the model."
        )


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
