"""Copies of a user's model: the same layers, with weights of their own."""

import contextlib
import random
import tempfile
import threading
import types

import keras
import numpy as np

from gar_keras.engine.batches import take
from gar_keras.engine.graphs import has_graph, inputs_of, uncompiled
from gar_keras.engine.keras_internals import (
    flatten_layers,
    unsafe_deserialization,
)
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
    """A model of the same layers, weights and state.

    Raises unless both give the same for some of the examples `x`, or, without
    any, for zeros.

    What saving keeps of a layer goes to its copy in the same way: variables by
    `save_own_variables` and `load_own_variables`, vocabularies by
    `save_assets` and `load_assets`. The copy is not compiled, and its random
    layers, such as `Dropout`, draw anew.
    """
    copy, pairs = _with_new_weights(model)
    for old, new in pairs:
        _copy_state(old, new)
    # Saving merges the weights of an adapter. As arrays: on JAX two variables
    # would share one.
    for its, mine in zip(model.weights, copy.weights, strict=True):
        mine.trainable = its.trainable
        mine.assign(keras.ops.convert_to_numpy(its))
    some = _zeros(model) if x is None else take(x, slice(COMPARED))
    if model.built and some is not None:
        _check_outputs(model, copy, some)
    return copy


def _with_new_weights(model):
    """A copy with new weights, and the pairs of their layers, old and new."""
    layers = flatten_layers(model)
    try:
        with (
            unsafe_deserialization(),
            keras.saving.custom_object_scope(_objects_of(layers)),
        ):
            copy = _of_the_same_config(model)
        # The first is the model itself, of whatever class.
        pairs = zip(layers[1:], flatten_layers(copy)[1:], strict=True)
        pairs = [(model, copy), *pairs]
        for old, new in pairs:
            if old.built and not new.built:
                new.build_from_config(old.get_build_config())
            # Keras takes the rank for it when it builds a layer.
            if getattr(old, "lora_enabled", False):
                new.lora_alpha = old.lora_alpha
        if len(copy.weights) != len(model.weights):
            raise ValueError("its weights are not those of its config.")
    except Exception as e:
        raise ValueError(
            f"Keras cannot copy the model {model.name!r}: {reason_of(e)} Give "
            "a model whose layers have a get_config, or, to GARClassifier, a "
            "function that makes it."
        ) from e
    return copy, pairs[1:]


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


def _of_the_same_config(model):
    """A model made as a saved one is, but for what was compiled into it."""
    if has_graph(model):
        return keras.models.clone_model(uncompiled(model))
    if isinstance(model, keras.Sequential):
        return keras.models.clone_model(model)
    return type(model).from_config(model.get_config())


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


def _copy_state(old, new):
    """Gives a layer what saving keeps of another one, inner layers aside."""
    store = {}
    old.save_own_variables(store)
    new.load_own_variables(
        {name: keras.ops.convert_to_numpy(x) for name, x in store.items()}
    )
    if hasattr(old, "save_assets"):
        with tempfile.TemporaryDirectory() as folder:
            old.save_assets(folder)
            new.load_assets(folder)
