"""Gradients and losses of layers, within a step and on any backend."""

import keras
from keras import ops

from gar_keras.engine import backend
from gar_keras.engine.keras_internals import (
    AssignmentScope,
    clear_losses,
    stateless_scope,
)


def gradient(function, x):
    """The gradient of a scalar function of a tensor, also within a step.

    What the function assigns to Keras variables, such as the state of a
    dropout's seed, is assigned once, as if the function were called alone.
    """
    if backend.name() == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(x)
            y = function(x)
        return tape.gradient(y, x, unconnected_gradients="zero")
    if backend.name() == "jax":
        import jax

        # No tracer may be left in a variable.
        assigned = []
        around = stateless_scope()

        def pure(x):
            scope = AssignmentScope(around)
            with scope:
                y = function(x)
            assigned[:] = scope.assigned
            return y, [scope.get_current_value(v) for v in assigned]

        slope, values = jax.grad(pure, has_aux=True)(x)
        for variable, value in zip(assigned, values, strict=True):
            variable.assign(value)
        return slope
    import torch

    x = x.detach().requires_grad_(True)
    return torch.autograd.grad(function(x), x)[0]


def pass_memory(layer):
    """A list that belongs to a layer for the rest of a pass on JAX, or `None`.

    There each call of a layer makes Keras drop the losses that the layer added
    before, as if it were the call of another pass.
    """
    scope = stateless_scope()
    if scope is None or not scope.collect_losses:
        return None
    # Keras makes a scope for each pass.
    calls = vars(scope).setdefault("gar_calls", {})
    return calls.setdefault(layer, [])


def add_loss(layer, loss):
    """Adds a loss to a layer that may be called several times in a pass."""
    # The dtype of Keras' losses, with which it is summed up.
    loss = ops.cast(loss, keras.config.floatx())
    added = pass_memory(layer)
    if added is not None:
        added.append(loss)
        clear_losses(layer)
        loss = sum(added)
    layer.add_loss(loss)


def check_called_once(layer, x):
    """Raises if Keras would drop the loss of an earlier output of the layer."""
    seen = pass_memory(layer)
    if seen is None:
        return
    if seen and seen[0] is not x:
        raise ValueError(
            "In one step on JAX, Keras counts only one call of a layer that "
            "has GAR as its activity_regularizer. Received: "
            f"layer={layer.name!r}, called again. Put a "
            "GraphActivityRegularization behind the layer instead."
        )
    seen[:] = [x]
