"""The backend in use, and what TensorFlow alone does in its own way."""

import contextlib
import functools
import importlib
import inspect
from typing import cast

import keras

from gar_keras.utils.types import Function


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


def in_replica():
    """Whether the caller computes one of several replicas of TensorFlow."""
    return num_replicas() > 1 and _replica() is not None


def beside_replicas():
    """Whether there are several replicas, and the caller is in none of them.

    So it is where a model is called in the scope of a strategy.
    """
    return num_replicas() > 1 and _replica() is None


def replica_index():
    """The number of the replica that the caller computes, from 0."""
    return _replica().replica_id_in_sync_group


def all_reduce(x):
    """The sum of a tensor over the replicas, to each of them.

    The gradient of the sum is the sum of the gradients over the replicas.
    """
    import tensorflow as tf

    return _replica().all_reduce(tf.distribute.ReduceOp.SUM, x)


def _replica():
    import tensorflow as tf

    return tf.distribute.get_replica_context()


def in_scope_of_model(function: Function) -> Function:
    """A decorator: the function runs in the strategy scope of its `model`.

    A model that is made of another has to be made in the same scope of
    `tf.distribute` to be trained on its replicas.
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def scoped(*args, **kwargs):
        model = signature.bind(*args, **kwargs).arguments["model"]
        with _strategy_scope(model):
            return function(*args, **kwargs)

    return cast(Function, scoped)


def _strategy_scope(model):
    if name() != "tensorflow":
        return contextlib.nullcontext()
    import tensorflow as tf

    now = tf.distribute.get_strategy()
    strategy = getattr(model, "distribute_strategy", now)
    return contextlib.nullcontext() if strategy is now else strategy.scope()


def check_fit_on_replicas(rows):
    """Raises where `fit` of Keras fails on the replicas of TensorFlow.

    Args:
        rows: Examples in the first batch.
    """
    import tensorflow as tf

    strategy = tf.distribute.get_strategy()
    name, replicas = type(strategy).__name__, num_replicas()
    local = len(strategy.extended.worker_devices)
    if isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy) and (
        local < replicas
    ):
        raise ValueError(
            "The fit of Keras 3 fails on several workers of tf.distribute. "
            f"Received: {replicas} replicas, {local} of them here. Put a "
            "GraphActivityRegularization behind the logits, and train with a "
            "loop of your own."
        )
    if rows % replicas:
        raise ValueError(
            "The fit of Keras 3 needs a first batch that divides evenly over "
            f"the replicas. Received: a batch of {rows}, and a {name} of "
            f"{replicas}. Take batches of another size."
        )


def check_one_replica(what):
    """Raises if TensorFlow splits each batch over several replicas.

    Args:
        what: Name of what is for one device alone.
    """
    replicas = num_replicas()
    if replicas > 1:
        import tensorflow as tf

        strategy = tf.distribute.get_strategy()
        raise ValueError(
            f"{what} trains on one device, not on several replicas. Received: "
            f"a {type(strategy).__name__} of {replicas}. Use "
            "gar_keras.regularize, or the layer in a fit of your own."
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
