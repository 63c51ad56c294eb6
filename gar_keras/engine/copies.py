"""Copies of a user's model: the same layers, with weights of their own."""

import contextlib
import random
import tempfile
import threading
import types

import keras

from gar_keras.engine.graphs import has_graph, uncompiled
from gar_keras.engine.keras_internals import (
    flatten_layers,
    unsafe_deserialization,
)

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


def copy_model(model):
    """A model of the same layers, weights and state.

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
    return copy


def copy_with_new_weights(model):
    """A model of the same layers, of which what is trained begins anew.

    What is not trained keeps its values: adapted layers such as
    `Normalization`, frozen ones, and the weights under a LoRA adapter. Only the
    statistics of a `BatchNormalization`, which training gathers, begin anew.
    """
    copy, pairs = _with_new_weights(model)
    gathered = set()
    for old, new in pairs:
        if not old.trainable_weights:
            _copy_state(old, new)
        elif isinstance(old, keras.layers.BatchNormalization):
            gathered |= {id(weight) for weight in old.weights}
    for its, mine in zip(model.weights, copy.weights, strict=True):
        if not its.trainable and id(its) not in gathered:
            mine.assign(keras.ops.convert_to_numpy(its))
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
        if len(copy.weights) != len(model.weights):
            raise ValueError("its weights are not those of its config.")
    except Exception as e:
        reason = next(iter(str(e).splitlines()), type(e).__name__)
        raise ValueError(
            f"Keras cannot copy the model {model.name!r}: {reason} Give a "
            "model whose layers have a get_config, or, to GARClassifier, a "
            "function that makes it."
        ) from e
    return copy, pairs[1:]


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
