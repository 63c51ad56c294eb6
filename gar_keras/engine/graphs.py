"""Keras models as graphs of layers, where Keras knows their graph."""

import inspect

import keras
import numpy as np
from keras import layers

from gar_keras.utils.validation import received

# SpatialDropout is a Dropout too.
DROPOUT_LAYERS = (layers.Dropout, layers.GaussianDropout, layers.AlphaDropout)


def check_model(model):
    """Raises unless `model` is a Keras model."""
    if not isinstance(model, keras.Model):
        raise ValueError(
            "model must be a keras.Model from examples to logits. Received: "
            f"{received('model', model)}. Make one, e.g. gar_keras.cnn6()."
        )


def check_own_fit(model, names=("fit", "predict", "predict_step")):
    """Raises if one of these of a model's class is not that of Keras."""
    own = [
        name
        for name in names
        if not getattr(type(model), name).__module__.startswith("keras.")
    ]
    if own:
        raise ValueError(
            f"The class {type(model).__name__} has its own "
            f"{' and '.join(own)}, which may take other examples than its call "
            "does. Give both stages what its call takes, and a model without "
            "them: keras.Model(model.input, model.output)."
        )


def tells_training(model):
    """Whether `fit` tells the layers of a model that they are trained.

    Keras does so where the model's call has the argument.
    """
    return "training" in inspect.signature(model.call).parameters


def has_graph(model):
    """Whether Keras knows the layers of the model and how they connect.

    A model whose class has a `call` of its own may do more than its graph.
    """
    is_built = hasattr(model, "inputs") and hasattr(model, "outputs")
    return is_built and model.call.__module__.startswith("keras.")


def inputs_of(model):
    """The inputs in the form that the model takes them in when it is called."""
    return model.input if _is_functional(model) else model.inputs[0]


def output_of(model):
    """The output in the form that the model gives it in."""
    return model.output if _is_functional(model) else model.outputs[0]


def _is_functional(model):
    return has_graph(model) and not isinstance(model, keras.Sequential)


def named_inputs(model, name, x):
    """Of examples in a dict, the inputs that a model names, and no others.

    Keras would give the values of a dict in the order of their keys to a model
    that was made with one, whatever the keys are.
    """
    if not isinstance(x, dict) or not has_graph(model):
        return x
    wanted = inputs_of(model)
    if not isinstance(wanted, dict):
        wanted = [tensor.name for tensor in keras.tree.flatten(wanted)]
    if not set(wanted) <= set(x):
        raise ValueError(
            "A dict must have a key for each input of the model: "
            f"{', '.join(map(repr, wanted))}. Received: {name} with "
            f"{', '.join(map(repr, x))}"
        )
    return {key: x[key] for key in wanted}


def zeros_for(model):
    """An example of zeros; raises unless its inputs have shapes of numbers."""
    return keras.tree.map_structure(
        lambda tensor: np.zeros((1, *tensor.shape[1:]), tensor.dtype),
        inputs_of(model),
    )


def takes_float64(model):
    """Whether a model has an input that float64 numbers go into as they are."""
    dtypes = [model.input_dtype]
    if has_graph(model):
        dtypes = [tensor.dtype for tensor in model.inputs]
    return "float64" in map(keras.backend.standardize_dtype, dtypes)


def uncompiled(model):
    """A Functional model of the same graph.

    Keras clones a compiled model with its losses and optimizer, and fails if
    it does not know them by name.
    """
    return keras.Model(inputs_of(model), output_of(model), name=model.name)


def ensure_built(model, x):
    """Builds a Sequential model that does not know its input yet.

    Until then it has no graph to take Dropout or GAR out of. And Keras would
    build it for batches of just the size that it is called with first.
    """
    is_array = hasattr(x, "shape")
    if isinstance(model, keras.Sequential) and not model.built and is_array:
        model.build((None, *x.shape[1:]))
