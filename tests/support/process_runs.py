"""Trainings on one batch that several processes share, and on one device.

As a script, with an index and ports, this is one of two such processes. It
prints the loss of each step, and the weights in the end, as JSON.
"""

import json
import os
import sys

import numpy as np

WORKERS = 2
# In the order in which two processes see it: 4 rows of each batch for each.
X = np.random.default_rng(0).normal(size=(24, 5)).astype("float32")
BATCH = 8


def network():
    """The same weights on all backends."""
    import keras

    from gar_keras import GraphActivityRegularization

    layers = [keras.layers.Dense(7, "relu"), keras.layers.Dense(3)]
    regularization = GraphActivityRegularization(frobenius=1e-3)
    model = keras.Sequential([keras.Input((5,)), *layers, regularization])
    rng = np.random.default_rng(1)
    model.set_weights([rng.normal(size=w.shape) for w in model.get_weights()])
    model.compile(keras.optimizers.SGD(0.1), loss=None)
    return model


def batches(x, size):
    return [x[i : i + size] for i in range(0, len(x), size)]


def alone():
    model = network()
    losses = [
        float(model.train_on_batch(x, return_dict=True)["loss"])
        for x in batches(X, BATCH)
    ]
    return losses, [w.tolist() for w in model.get_weights()]


def on_tensorflow(index, ports):
    """A loop of one's own, as `fit` of Keras fails on several workers."""
    workers = [f"localhost:{port}" for port in ports]
    task = {"type": "worker", "index": index}
    os.environ["TF_CONFIG"] = json.dumps(
        {"cluster": {"worker": workers}, "task": task}
    )
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        model = network()

    def step(x):
        with tf.GradientTape() as tape:
            model(x, training=True)
            loss = sum(model.losses)
            share = loss / strategy.num_replicas_in_sync
        weights = model.trainable_weights
        gradients = tape.gradient(share, weights)
        model.optimizer.apply_gradients(zip(gradients, weights, strict=True))
        return loss

    run = tf.function(lambda x: strategy.run(step, args=(x,)))
    data = tf.data.Dataset.from_tensor_slices(X).batch(BATCH)
    losses = [
        float(strategy.experimental_local_results(run(x))[0])
        for x in strategy.experimental_distribute_dataset(data)
    ]
    return losses, [w.tolist() for w in model.get_weights()]


def on_jax(index, ports):
    import jax

    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    import keras

    keras.distribution.initialize(f"localhost:{ports[0]}", WORKERS, index)
    keras.distribution.set_distribution(
        keras.distribution.DataParallel(auto_shard_dataset=False)
    )
    model = network()
    size = BATCH // WORKERS
    mine = np.concatenate(
        [x[index * size : (index + 1) * size] for x in batches(X, BATCH)]
    )
    losses = []
    for x in batches(mine, size):
        losses += model.fit(x, batch_size=size, verbose=0).history["loss"]
    weights = [w.value.addressable_data(0) for w in model.weights]
    return losses, [np.asarray(w).tolist() for w in weights]


if __name__ == "__main__":
    index, *ports = map(int, sys.argv[1:])
    run = {"tensorflow": on_tensorflow, "jax": on_jax}
    print(json.dumps(run[os.environ["KERAS_BACKEND"]](index, ports)))
