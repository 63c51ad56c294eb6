"""Replicas of `tf.distribute`, on which GAR is that of the whole batch.

Each replica computes a part of the batch: what belongs to the batch as a whole
is summed over them here. As in `keras_internals`, private names are in use.
"""

import contextlib
import functools
import itertools
import math
from typing import cast

import keras
from keras import ops
from keras.src.backend.common.global_state import get_global_attribute

from gar_keras.engine.graphs import check_model
from gar_keras.utils.types import Function


def count():
    """Replicas over which TensorFlow splits each batch; 1 elsewhere."""
    if keras.backend.backend() != "tensorflow":
        return 1
    import tensorflow as tf

    return tf.distribute.get_strategy().num_replicas_in_sync


def context():
    """The `tf.distribute.ReplicaContext` of one of several replicas.

    `None` where the caller does not compute one of them.
    """
    if keras.backend.backend() != "tensorflow":
        return None
    import tensorflow as tf

    replica = tf.distribute.get_replica_context()
    is_alone = replica is None or replica.num_replicas_in_sync == 1
    return None if is_alone else replica


def sum_over_replicas(tensors):
    """The sums of float32 tensors over the replicas, and their gradients.

    In one exchange. Where there is no other replica, `tensors` itself.
    """
    flat = keras.tree.flatten(tensors)
    replica = context()
    if not flat or replica is None:
        return tensors
    # Earlier ones count what is added on replicas more than once.
    if not hasattr(keras.Variable, "synchronization"):
        raise ValueError(
            "With several replicas of tf.distribute, GAR needs Keras 3.10 or "
            f"later. Received: Keras {keras.__version__}. Upgrade it, or use "
            "one device."
        )
    sizes = [math.prod(x.shape) for x in flat]
    joined = ops.concatenate([ops.reshape(x, (-1,)) for x in flat])
    # The replicas share the layers: where one waits, others add to the losses.
    call = get_global_attribute("current_call_ctx")
    called = call.entry_layer._flatten_layers() if call else ()
    kept = [(layer, list(layer._losses)) for layer in called]
    sums = replica.all_reduce("SUM", joined)
    for layer, losses in kept:
        layer._losses[:] = losses
    parts = [
        ops.reshape(sums[end - size : end], x.shape)
        for x, size, end in zip(
            flat, sizes, itertools.accumulate(sizes), strict=True
        )
    ]
    return keras.tree.pack_sequence_as(tensors, parts)


def largest_over_replicas(B):
    """The largest entry of a float32 B over the replicas, a constant.

    1 where no entry is positive: `B` can be divided by it.
    """
    largest = ops.stop_gradient(ops.max(B, initial=0.0))
    replica = context()
    if replica is not None:
        # TensorFlow has no exchange for it but sums.
        all_of_them = ops.arange(replica.num_replicas_in_sync)
        mine = ops.equal(all_of_them, replica.replica_id_in_sync_group)
        each = ops.where(mine, largest, ops.zeros_like(largest))
        largest = ops.stop_gradient(ops.max(sum_over_replicas(each)))
    return ops.where(largest > 0, largest, ops.ones_like(largest))


def in_scope_of_model(function: Function) -> Function:
    """A decorator: the function runs in the strategy scope of its `model`.

    To be trained on the replicas, what is made of a model has to be made there.
    """

    @functools.wraps(function)
    def scoped(*args, **kwargs):
        model = args[0] if args else kwargs.get("model")
        check_model(model)
        # Models have one on TensorFlow alone.
        its_own = getattr(model, "distribute_strategy", None)
        scope = contextlib.nullcontext()
        if its_own is not None:
            import tensorflow as tf

            if its_own is not tf.distribute.get_strategy():
                scope = its_own.scope()
        with scope:
            return function(*args, **kwargs)

    return cast(Function, scoped)


def check_fit(sampler):
    """Raises where `fit` of Keras fails on several replicas."""
    if count() > 1 and sampler.images_per_step % count():
        raise ValueError(
            "The fit of Keras 3 needs a first batch that divides evenly over "
            f"the replicas. Received: a batch of {sampler.images_per_step}, "
            f"and {count()} replicas. Take batches of another size."
        )


def check_one(what):
    """Raises if there are several replicas: `what` is for one device alone."""
    if count() > 1:
        raise ValueError(
            f"{what} trains on one device, not on several replicas. Received: "
            f"{count()} replicas. Take method='gar', or one device."
        )
