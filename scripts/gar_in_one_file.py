"""GAR in one file: both stages of Kilinc and Uysal (2017) on MNIST, m_L = 100.

The default, 300 and 5 epochs, takes 4 minutes on two cores: test error 15.55 %
after stage 1, 4.18 % at the end (seed 0; results/one_file). The length of the
authors' script, `--epochs 2000 200`, takes about two hours there.
"""

import argparse
import time

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

from gar_keras.datasets import load_mnist

n, m_L, b_L, b_U = 10, 100, 16, 112
c_alpha, c_beta, c_F, epsilon = 3, 1, 1e-6, 1e-7


def U(Z):
    """Section 3.3: each image of one class, and classes of one size."""
    B = ops.maximum(0, Z)  # Z: the logits of a batch.
    N = ops.matmul(ops.transpose(B), B)
    v = ops.diagonal(N)
    V = ops.outer(v, v)
    affinity = (ops.sum(N) - ops.trace(N)) / ((n - 1) * ops.trace(N) + epsilon)
    balance = (ops.sum(V) - ops.trace(V)) / ((n - 1) * ops.trace(V) + epsilon)
    return c_alpha * affinity + c_beta * (1 - balance) + c_F * ops.sum(B**2)


@tf.function
def stage_1_step(network, optimizer, x_L, t_L):
    """Labelled images, with Dropout."""
    with tf.GradientTape() as tape:
        Z = network(x_L, training=True)
        entropies = keras.losses.sparse_categorical_crossentropy(t_L, Z, True)
        loss = ops.mean(entropies)
    weights = network.trainable_variables
    optimizer.apply(tape.gradient(loss, weights), weights)
    return loss


@tf.function
def stage_2_step(network, optimizer, x_U, x_L):
    """All images, without labels and without Dropout."""
    with tf.GradientTape() as tape:
        Z = network(ops.concatenate([x_U, x_L]), training=False)
        loss = U(Z)
    weights = network.trainable_variables
    optimizer.apply(tape.gradient(loss, weights), weights)
    return loss


def optimizer_of(network):
    """That of the authors' code, begun anew in each stage."""
    rate = keras.optimizers.schedules.InverseTimeDecay(0.01, 1, decay_rate=1e-6)
    optimizer = keras.optimizers.SGD(rate, momentum=0.95, nesterov=True)
    optimizer.build(network.trainable_variables)
    return optimizer


def main(epochs, seed):
    start = time.time()
    keras.utils.set_random_seed(seed)  # NumPy's as well.
    mnist = load_mnist()
    x, t = mnist.x_train, mnist.y_train
    of_class = [np.flatnonzero(t == c) for c in range(n)]
    L = np.concatenate([np.random.choice(i, m_L // n, False) for i in of_class])

    network = keras.Sequential(
        [keras.Input((28, 28, 1)), layers.Rescaling(1 / 255)]
    )
    for filters, dropout in [(32, 0.2), (64, 0.3)]:
        network.add(
            layers.Conv2D(filters, 3, padding="same", activation="relu")
        )
        network.add(
            layers.Conv2D(filters, 3, padding="same", activation="relu")
        )
        network.add(layers.MaxPooling2D())
        network.add(layers.Dropout(dropout))
    network.add(layers.Flatten())
    network.add(layers.Dense(2048, activation="relu"))
    network.add(layers.Dropout(0.5))
    network.add(layers.Dense(n))

    def report(stage, epoch, loss):
        Z = network.predict(mnist.x_test, batch_size=500, verbose=0)
        error = np.mean(Z.argmax(axis=1) != mnist.y_test)
        seconds = time.time() - start
        print(
            f"stage {stage}, epoch {epoch}: loss {loss:.4f}, "
            f"test error {error:.2%}, {seconds:.0f} s",
            flush=True,
        )

    optimizer = optimizer_of(network)
    for epoch in range(1, epochs[0] + 1):
        loss = stage_1_step(network, optimizer, x[L], t[L])  # One batch.
        if epoch % 50 == 0 or epoch == epochs[0]:
            report(1, epoch, float(loss))

    optimizer = optimizer_of(network)
    for epoch in range(1, epochs[1] + 1):
        losses = []
        order = np.random.permutation(len(x))  # X_U is all images.
        for rows in np.split(order, range(b_U, len(x), b_U)):
            x_L = x[np.random.choice(L, b_L, False)]
            losses.append(stage_2_step(network, optimizer, x[rows], x_L))
        report(2, epoch, np.mean(losses))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--epochs",
        type=int,
        nargs=2,
        default=(300, 5),
        metavar=("STAGE_1", "STAGE_2"),
    )
    parser.add_argument("--seed", type=int, default=0)
    main(**vars(parser.parse_args()))
