"""The backend in use, and what TensorFlow alone does in its own way."""

import importlib

import keras


def name():
    """Name of the backend in use: `"tensorflow"`, `"jax"` or `"torch"`."""
    return keras.backend.backend()


def backend_version():
    """Version of the backend's package."""
    return importlib.import_module(name()).__version__


def num_replicas():
    """Replicas over which TensorFlow splits each batch; 1 elsewhere."""
    if name() != "tensorflow":
        return 1
    import tensorflow as tf

    return tf.distribute.get_strategy().num_replicas_in_sync


def check_one_replica():
    """Raises if TensorFlow splits each batch over several replicas."""
    replicas = num_replicas()
    if replicas > 1:
        import tensorflow as tf

        strategy = tf.distribute.get_strategy()
        raise ValueError(
            f"GAR cannot train on the {replicas} replicas of "
            f"{type(strategy).__name__}. Each replica would compute N = BᵀB "
            "of its own part of the batch, and the mean of their losses is "
            "not the loss of the batch. Use one device, or the JAX backend "
            "with keras.distribution.DataParallel, which computes N over the "
            "whole batch."
        )


def return_state(model):
    """Has `fit` of a model on JAX give back the variables that it holds.

    On JAX they have no value within an epoch. Training goes on with the ones
    given back.

    Args:
        model: A Keras model.
    """
    if name() == "jax":
        model.jax_state_sync()


def is_sparse(x):
    """Whether `x` is a sparse tensor of the backend."""
    if name() == "tensorflow":
        import tensorflow as tf

        return isinstance(x, tf.SparseTensor | tf.IndexedSlices)
    if name() == "jax":
        from jax.experimental import sparse

        return isinstance(x, sparse.JAXSparse)
    return getattr(x, "is_sparse", False)


def updates_in_place(gradient):
    """Whether `apply_momentum` can take this gradient."""
    if name() != "tensorflow":
        return False
    import tensorflow as tf

    return isinstance(gradient, tf.Tensor)


def apply_momentum(variable, moment, gradient, rate, momentum, nesterov):
    """Updates a weight and its momentum in one kernel. TensorFlow only.

    Args:
        variable: The weight, a Keras or TensorFlow variable.
        moment: Its momentum, a Keras variable.
        gradient: Dense gradient of the weight.
        rate: Learning rate of the step.
        momentum: Factor of the momentum.
        nesterov: Whether with Nesterov momentum.
    """
    import tensorflow as tf

    if isinstance(variable, keras.Variable):
        variable = variable.value

    def cast(value):
        return tf.cast(value, variable.dtype)

    tf.raw_ops.ResourceApplyKerasMomentum(
        var=variable.handle,
        accum=moment.value.handle,
        lr=cast(rate),
        grad=cast(gradient),
        momentum=cast(momentum),
        use_nesterov=nesterov,
    )
