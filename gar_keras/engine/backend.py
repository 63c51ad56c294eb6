"""The backend in use, and what each does in its own way."""

import importlib

import keras


def name():
    """Name of the backend in use: `"tensorflow"`, `"jax"` or `"torch"`."""
    return keras.backend.backend()


def backend_version():
    """Version of the backend's package."""
    return importlib.import_module(name()).__version__


def return_state(model):
    """Has `fit` on JAX give back the variables that it holds in an epoch."""
    if name() == "jax":
        model.jax_state_sync()


def updates_in_place(gradient):
    """Whether `apply_momentum` can take this gradient."""
    if name() != "tensorflow":
        return False
    import tensorflow as tf

    return isinstance(gradient, tf.Tensor)


def apply_momentum(variable, moment, gradient, rate, momentum, nesterov):
    """Updates a weight and its momentum in one kernel. TensorFlow only."""
    import tensorflow as tf

    if isinstance(variable, keras.Variable):
        variable = variable.value
    rate, gradient, momentum = (
        tf.cast(value, variable.dtype) for value in (rate, gradient, momentum)
    )
    tf.raw_ops.ResourceApplyKerasMomentum(
        var=variable.handle,
        accum=moment.value.handle,
        lr=rate,
        grad=gradient,
        momentum=momentum,
        use_nesterov=nesterov,
    )
