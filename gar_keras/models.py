"""The networks of the paper's experiments, and stage 2's view of a model."""

import contextlib
import weakref
from typing import Any

import keras
from keras import layers

from gar_keras.engine.data import warn_if_probabilities
from gar_keras.engine.graphs import (
    DROPOUT_LAYERS,
    check_model,
    check_own_fit,
    has_graph,
    inputs_of,
    output_of,
    uncompiled,
    zeros_for,
)
from gar_keras.engine.keras_internals import (
    call_behind,
    calls,
    flatten_layers,
)
from gar_keras.layers import GraphActivityRegularization
from gar_keras.regularizers import (
    PROBABILITIES,
    GraphActivityRegularizer,
    activation_of,
)
from gar_keras.utils.images import (
    LAYOUTS,
    side_axes,
    standardize_data_format,
)
from gar_keras.utils.validation import check_count, check_logits, received
from gar_keras.utils.warnings import warn

# The dtype policy between the layers, for each precision.
POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16"}

# Behind pool 1, 2, 3 and behind the hidden Dense layer.
POOL_DROPOUT = (0.2, 0.3, 0.4)
DENSE_DROPOUT = 0.5
# Units and dropout of the network of features.
HIDDEN_UNITS = (128, 64)
MLP_DROPOUT = 0.5


def cnn6(
    input_shape: tuple[int, ...] = (28, 28, 1),
    num_classes: int = 10,
    *,
    preprocessing: keras.layers.Layer | None = None,
    input_dtype: str | None = None,
    dtype: Any = None,
) -> keras.Model:
    """The 6-layer CNN of the MNIST experiments (paper, section 4).

    conv 32-32, pool, conv 64-64, pool, Dense 2048, Dense n: 3x3 kernels,
    "same" padding, ReLU, and logits in float32 with no activation. Dropout is
    behind the pools and the hidden Dense layer, for stage 1:
    `without_dropout` takes it out for stage 2.

    Args:
        input_shape: `(height, width, channels)` of an image, the channels
            first if `keras.config.image_data_format()` has them so.
        num_classes: `n`.
        preprocessing: Layer that turns the images as stored into the images
            that the network sees, e.g. `keras.layers.Rescaling(1 / 255)`.
            `None` for images that are ready.
        input_dtype: Dtype of the images as stored. By default `"uint8"` with
            `preprocessing`, and `"float32"` without.
        dtype: Dtype or dtype policy of all layers but the last, e.g.
            `"mixed_bfloat16"`. Keras' global policy by default.

    Returns:
        A `keras.Model` from images to logits `(batch, n)`.

    Example:

    >>> cnn6().count_params()
    6510058
    """
    inputs = _images(input_shape, preprocessing, input_dtype)
    blocks = [(32, 32), (64, 64)]
    return _cnn("cnn6", blocks, inputs, num_classes, preprocessing, dtype)


def cnn9(
    input_shape: tuple[int, ...] = (32, 32, 3),
    num_classes: int = 10,
    filters: int = 64,
    *,
    preprocessing: keras.layers.Layer | None = None,
    input_dtype: str | None = None,
    dtype: Any = None,
) -> keras.Model:
    """The 9-layer CNN of the SVHN and NORB experiments (paper, section 4).

    conv f-f, pool, conv 2f-2f, pool, conv 4f-4f-4f, pool, Dense 2048, Dense n:
    3x3 kernels, "same" padding, ReLU, and logits in float32 with no
    activation. f is 64 for SVHN and 32 for NORB.

    Args:
        input_shape: As for `cnn6`.
        num_classes: `n`.
        filters: `f`, filters of the first block.
        preprocessing, input_dtype, dtype: As for `cnn6`.

    Returns:
        A `keras.Model` from images to logits `(batch, n)`.

    Example:

    >>> cnn9((32, 32, 2), 5, filters=32).count_params()
    4640901
    """
    f = check_count("filters", filters, least=1)
    blocks = [(f, f), (2 * f, 2 * f), (4 * f, 4 * f, 4 * f)]
    inputs = _images(input_shape, preprocessing, input_dtype)
    return _cnn("cnn9", blocks, inputs, num_classes, preprocessing, dtype)


def mlp(
    input_shape: tuple[int, ...],
    num_classes: int,
    *,
    preprocessing: keras.layers.Layer | None = None,
    input_dtype: str | None = None,
    dtype: Any = None,
) -> keras.Model:
    """Two hidden layers of 128 and 64 ReLU units with dropout, for features.

    Args:
        input_shape: Shape of an example; images are flattened.
        num_classes: `n`.
        preprocessing: As for `cnn6`, e.g. a `keras.layers.Normalization`.
        input_dtype, dtype: As for `cnn6`.

    Returns:
        A `keras.Model` from examples to logits `(batch, n)`.

    Example:

    >>> mlp((13,), 3).output_shape
    (None, 3)
    """
    inputs = _images(input_shape, preprocessing, input_dtype)
    x = preprocessing(inputs) if preprocessing else inputs
    if len(input_shape) > 1:
        x = layers.Flatten(dtype=dtype)(x)
    for units in HIDDEN_UNITS:
        x = layers.Dense(units, activation="relu", dtype=dtype)(x)
        x = layers.Dropout(MLP_DROPOUT, dtype=dtype)(x)
    logits = layers.Dense(num_classes, dtype="float32", name="logits")(x)
    return keras.Model(inputs, logits, name="mlp")


def _images(shape, preprocessing, dtype):
    stored = "uint8" if preprocessing else "float32"
    return keras.Input(shape, dtype=dtype or stored)


def _cnn(name, blocks, inputs, num_classes, preprocessing, dtype):
    check_count("num_classes", num_classes, least=2)
    shape, least = inputs.shape[1:], 2 ** len(blocks)
    sides = (
        [shape[axis - 1] for axis in side_axes()] if len(shape) == 3 else [0]
    )
    if any(side is not None and side < least for side in sides):
        data_format = standardize_data_format()
        raise ValueError(
            f"{name} takes images {LAYOUTS[data_format]} of at least {least} "
            f"pixels a side, with Keras' image_data_format() {data_format!r}. "
            f"Received: input_shape={tuple(shape)}"
        )
    x = preprocessing(inputs) if preprocessing else inputs
    for block, rate in zip(blocks, POOL_DROPOUT, strict=False):
        for filters in block:
            x = layers.Conv2D(
                filters, 3, padding="same", activation="relu", dtype=dtype
            )(x)
        x = layers.MaxPooling2D(dtype=dtype)(x)
        x = layers.Dropout(rate, dtype=dtype)(x)
    x = layers.Flatten(dtype=dtype)(x)
    x = layers.Dense(2048, activation="relu", dtype=dtype)(x)
    x = layers.Dropout(DENSE_DROPOUT, dtype=dtype)(x)
    logits = layers.Dense(num_classes, dtype="float32", name="logits")(x)
    return keras.Model(inputs, logits, name=name)


def without_dropout(model: keras.Model) -> keras.Model:
    """The same model, with the same weights, without its Dropout layers.

    The layers are shared: training the one trains the other. Stage 2 of the
    paper's experiments runs without dropout.

    Args:
        model: A Functional or Sequential model. A subclassed model with a
            `call` of its own, which Keras cannot take apart, is returned as it
            is.

    Returns:
        A model.

    Example:

    >>> model = cnn6()
    >>> plain = without_dropout(model)
    >>> plain.layers[1] is model.layers[1]
    True
    """
    check_model(model)
    return _without(model, DROPOUT_LAYERS)


# Networks by model. A new one would leave a call in each layer, for good.
_networks = weakref.WeakKeyDictionary()


def stage_2_network(model):
    """The model `without_dropout`, the same one for each training."""
    logits, network = _networks.get(model, (None, None))
    # A Sequential model that is changed has another output.
    if network is None or logits is not model.outputs[0]:
        network = without_dropout(model)
        if has_graph(model) and _has(model, DROPOUT_LAYERS):
            _networks[model] = model.outputs[0], network
    # Compiled earlier, it has the constants that layers had then.
    network.predict_function = None
    kept = []
    for layer in flatten_layers(network):
        rates = []
        if isinstance(layer, DROPOUT_LAYERS):
            rates = [layer.rate]
        elif isinstance(layer, keras.layers.Attention):
            rates = [layer.dropout]
        elif isinstance(layer, keras.layers.RNN):
            names = ("dropout", "recurrent_dropout")
            cells = getattr(layer.cell, "cells", [layer.cell])
            rates = [getattr(cell, name, 0) for cell in cells for name in names]
        if any(rates):
            kept.append(layer.name)
    if kept:
        warn(
            "Stage 2 leaves out Dropout, but not inside wrappers and layers or "
            "models with a call of their own. Received: "
            f"{', '.join(map(repr, kept))}. Put them between layers of the "
            "model, or leave them out."
        )
    return network


def detach(model: keras.Model) -> keras.Model:
    """The same model, with the same weights, without the loss of GAR.

    The opposite of `attach`, for stage 1. The layers are shared.

    Args:
        model: A Keras model.

    Returns:
        A model. `model` itself if it holds nothing of GAR.

    Raises:
        ValueError: if the regularization cannot be taken out, because it is
            inside a subclassed model or the `activity_regularizer` of a
            layer.

    Example:

    >>> is_regularized(detach(attach(cnn6())))
    False
    """
    check_model(model)
    if not is_regularized(model):
        return model
    if isinstance(model, Regularized):
        return detach(model.model)
    plain = _without(model, GraphActivityRegularization)
    plain.dtype_policy = model.dtype_policy
    if is_regularized(plain):
        raise ValueError(
            "The loss of GAR cannot be taken out of this model for stage 1. "
            f"Received: model={model.name!r}. Give the model without it: "
            "regularize attaches the loss for stage 2."
        )
    return plain


def _without(model, kinds):
    if not has_graph(model):
        return model
    if not _has(model, kinds):
        return uncompiled(model)

    def clone(layer):
        if isinstance(layer, keras.Model) and _has(layer, kinds):
            return _without(layer, kinds)
        if isinstance(layer, kinds) and isinstance(layer, DROPOUT_LAYERS):
            # The Identity casts as the layer does. It gets the name of the
            # policy: Keras saves no layer that is given the policy itself.
            dtype = layer.dtype_policy.name
            return layers.Identity(name=layer.name, dtype=dtype)
        return layer

    def call(layer, *args, **kwargs):
        # Not an Identity: its name would be taken when GAR is attached again.
        if isinstance(layer, kinds):
            return args[0] if args else kwargs["inputs"]
        return layer(*args, **kwargs)

    return keras.models.clone_model(
        uncompiled(model), clone_function=clone, call_function=call
    )


def _has(model, kinds):
    return any(isinstance(layer, kinds) for layer in flatten_layers(model))


def attach(
    model: keras.Model,
    layer: GraphActivityRegularization | None = None,
) -> keras.Model:
    """Puts the regularization behind the logits of any Keras model.

    The layers and their weights are shared with `model`.

    Args:
        model: A `keras.Model` whose output is the logits `(batch, n)`, before
            any activation.
        layer: A `GraphActivityRegularization`. One with the coefficients of
            the paper by default.

    Returns:
        A `keras.Model` from the inputs of `model` to the logits, with `layer`
        behind them. `model` itself if it holds such a layer or a
        `GraphActivityRegularizer` already and no layer is given.

    Raises:
        ValueError: if the output has an activation or is not `(batch, n)`, if
            there are several outputs, if the model is regularized already, or
            if its class has a `fit` or a `predict` of its own.

    Warns:
        GARWarning: if the class of the model has a `train_step` or a
            `compute_loss` of its own: the new model has Keras'; if it gives
            probabilities for an example of zeros.

    Example:

    >>> attach(cnn6()).layers[-1].name
    'graph_activity_regularization'
    """
    check_model(model)
    if not is_regularized(model):
        check_own_fit(model)
        warn_of_own_training(model)
    check_can_be_regularized(model, layer)
    if is_regularized(model):
        return model
    if has_graph(model):
        # An input of any length, or of text, has no zeros.
        with contextlib.suppress(Exception):
            outputs = model(zeros_for(model), training=False)
            warn_if_probabilities(model, outputs)
    if layer is None:
        layer = GraphActivityRegularization(
            name="graph_activity_regularization"
        )
    if has_graph(model):
        logits = call_behind(layer, model.outputs[0])
        attached = keras.Model(inputs_of(model), logits, name=model.name)
    else:
        attached = Regularized(model, layer, name=model.name)
    # `compile` scales the loss by this policy.
    attached.dtype_policy = model.dtype_policy
    return attached


def check_can_be_regularized(model, layer=None):
    """Raises unless GAR can be of a model's logits, by such a layer."""
    check_layer(layer)
    if not is_regularized(model):
        check_linear(model)
    elif layer is not None:
        raise ValueError(
            f"The model {model.name!r} already holds a GAR layer or "
            "regularizer. Attach a second one to a model without it, or leave "
            "layer out to train with the one it holds."
        )


def check_layer(layer):
    """Raises unless `layer` is one of GAR, or `None` for the default one."""
    if not isinstance(layer, GraphActivityRegularization | None):
        raise ValueError(
            "layer must be a GraphActivityRegularization. Received: "
            f"{received('layer', layer)}"
        )


def is_regularized(model):
    """Whether a layer of the model, at any depth, adds the loss of GAR."""
    return any(
        isinstance(layer, GraphActivityRegularization)
        or isinstance(layer.activity_regularizer, GraphActivityRegularizer)
        for layer in flatten_layers(model)
    )


@keras.saving.register_keras_serializable(package="gar_keras")
class Regularized(keras.Model):
    """A model whose graph Keras does not know, with the layer behind it."""

    def __init__(self, model, layer, **kwargs):
        # The model casts its inputs itself.
        kwargs["autocast"] = False
        super().__init__(**kwargs)
        self.model = model
        self.regularization = layer

    def call(self, inputs, training=None):
        logits = self.model(inputs, training=training)
        return self.regularization(logits, training=training)

    def get_config(self):
        return {
            "model": keras.saving.serialize_keras_object(self.model),
            "layer": keras.saving.serialize_keras_object(self.regularization),
            "name": self.name,
        }

    @classmethod
    def from_config(cls, config):
        parts = {
            key: keras.saving.deserialize_keras_object(config.pop(key))
            for key in ("model", "layer")
        }
        return cls(**parts, **config)


def plain_network(model):
    """The model without the loss of GAR, from images to logits."""
    plain = detach(model)
    check_linear(plain)
    return plain


def check_linear(model):
    """Raises if the model has several outputs or a known activation."""
    if has_graph(model) and len(model.outputs) > 1:
        raise ValueError(
            "A model must give one array, its logits. Received: "
            f"model={model.name!r}, which has {len(model.outputs)} outputs. "
            "Give a model of one, such as "
            "keras.Model(model.inputs, model.get_layer(name).output)."
        )
    if has_graph(model):
        output = output_of(model)
        # Keras unpacks a list of one output.
        check_logits(output if type(output) is dict else model.outputs[0])
    last = _last_operation(model)
    activation = activation_of(last)
    # Without a graph, the layer made last may be a hidden one all the same.
    known = has_graph(model) or activation in PROBABILITIES
    if activation is None or not known:
        return
    raise ValueError(
        "GAR needs the logits, before any activation, but the last layer has "
        f"one. Received: layer={last.name!r}, activation={activation!r}. Make "
        "that layer linear and use from_logits=True in the loss, or give "
        "keras.Model(model.inputs, model.get_layer(name_of_logits).output)."
    )


def plain_head(model):
    """The `Dense` whose weights are the scale of the logits, and no more.

    It is the last operation, called once, and trained as it is: not frozen,
    quantized, constrained or under an adapter. `None` if there is none.
    """
    layer = _last_operation(model)
    is_plain = (
        type(layer) is layers.Dense
        and len(layer.trainable_weights) == len(layer.weights)
        and activation_of(layer) is None
        and layer.kernel_constraint is None
        and layer.bias_constraint is None
        and layer.quantization_mode is None
    )
    return layer if is_plain and _count_calls(layer, model) == 1 else None


def _count_calls(layer, model):
    """How often a model calls a layer, at any depth."""
    count = 0
    for node in calls(uncompiled(model)):
        if node.operation is layer:
            count += 1
        elif isinstance(node.operation, keras.Model):
            is_known = has_graph(node.operation)
            count += _count_calls(layer, node.operation) if is_known else 0
    return count


def scaled(model, factor):
    """A model of the same layers whose logits are multiplied by a factor."""
    if factor == 1:
        return model
    scaling = layers.Rescaling(factor, dtype="float32", name="logit_factor")
    logits = call_behind(scaling, model.outputs[0])
    return keras.Model(inputs_of(model), logits, name=model.name)


def warn_of_own_training(model):
    """Warns if a model's class has a training of its own, which is left out."""
    own = [
        name
        for name in ("train_step", "compute_loss")
        if not getattr(type(model), name).__module__.startswith("keras.")
    ]
    if own:
        warn(
            f"The class {type(model).__name__} has its own "
            f"{' and '.join(own)}, which play no part: the loss is that of the "
            "method alone. Put losses of your own into layers, by add_loss."
        )


def _last_operation(model):
    """The operation, mostly a layer, that gives a model's output, or None."""
    while isinstance(model, keras.Model):
        if has_graph(model):
            model = uncompiled(model).operations[-1]
        else:
            model = model.layers[-1] if model.layers else None
    return model
