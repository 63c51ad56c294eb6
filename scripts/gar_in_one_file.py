"""GAR in one file: both stages of Kilinc and Uysal (2017) on MNIST, m_L = 100.

One run (n = 1): `--epochs 300 5 --seed 0`, float32, a busy core of an AMD EPYC,
1034 s: error 13.75 % after stage 1, 4.12 % at the end; see results/one_file.
"""

import argparse
import json
import subprocess
import time
from importlib.metadata import version

import keras
import numpy as np
from keras import layers, ops

from gar_keras.datasets import load_mnist

n, m_L, b_L, b_U = 10, 100, 16, 112
c_alpha, c_beta, c_F, epsilon = 3, 1, 1e-6, 1e-7
RATE = keras.optimizers.schedules.InverseTimeDecay(0.01, 1, decay_rate=1e-6)
SGD = {"learning_rate": RATE, "momentum": 0.95, "nesterov": True}
MACHINE = "git describe --always --dirty; nproc; lscpu | grep 'Model name'"


def U(t, Z):
    """Section 3.3: each image of one class, all classes of one size; no t."""
    B = ops.maximum(0, Z)  # Z: the logits of a batch.
    N = ops.matmul(ops.transpose(B), B)
    v = ops.diagonal(N)
    V = ops.outer(v, v)
    affinity = (ops.sum(N) - ops.trace(N)) / ((n - 1) * ops.trace(N) + epsilon)
    balance = (ops.sum(V) - ops.trace(V)) / ((n - 1) * ops.trace(V) + epsilon)
    return c_alpha * affinity + c_beta * (1 - balance) + c_F * ops.sum(B**2)


def stage_1_step(model, x_L, t_L):
    model.train_on_batch(x_L, t_L)


def stage_2_step(model, x_U, x_L):
    x = np.concatenate([x_U, x_L])
    model.train_on_batch(x, np.zeros(len(x)))  # Keras wants some t for a loss.


def main(epochs, seed, record):
    start, errors = time.time(), []
    machine = subprocess.getoutput(f"cd $(dirname '{__file__}') && {MACHINE}")
    keras.utils.set_random_seed(seed)  # NumPy's as well.
    # X_L has as many images of each class; X_U is all images, X_L among them.
    mnist = load_mnist()
    x, t = mnist.x_train, mnist.y_train
    of_class = [np.flatnonzero(t == c) for c in range(n)]
    L = np.concatenate([np.random.choice(i, m_L // n, False) for i in of_class])

    conv = {"kernel_size": 3, "padding": "same", "activation": "relu"}
    network = [keras.Input((28, 28, 1)), layers.Rescaling(1 / 255)]
    for filters, dropout in [(32, 0.2), (64, 0.3)]:
        network += [layers.Conv2D(filters, **conv) for _ in range(2)]
        network += [layers.MaxPooling2D(), layers.Dropout(dropout)]
    network += [layers.Flatten(), layers.Dense(2048, activation="relu")]
    network += [layers.Dropout(0.5), layers.Dense(n)]

    model = keras.Sequential(network)
    log_loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(**SGD), log_loss)
    for _ in range(epochs[0]):
        stage_1_step(model, x[L], t[L])  # One batch, in any order.

    # The same layers, and so the same weights, without dropout.
    model = keras.Sequential([i for i in network if "dropout" not in i.name])
    model.compile(keras.optimizers.SGD(**SGD), U)
    for epoch in range(epochs[1] + 1):
        if epoch > 0:
            order = np.random.permutation(len(x))
            for rows in np.split(order, range(b_U, len(x), b_U)):
                stage_2_step(model, x[rows], x[np.random.choice(L, b_L, False)])
        logits = model.predict(mnist.x_test, batch_size=500, verbose=0)
        errors.append(np.mean(logits.argmax(axis=1) != mnist.y_test))
        seconds = round(time.time() - start)
        print(f"epoch {epoch}: test error {errors[-1]:.2%}, {seconds} s")

    if record:
        packages = "keras", "numpy", keras.backend.backend()
        run = {"epochs": epochs, "seed": seed, "floatx": keras.config.floatx()}
        run["versions"] = {name: version(name) for name in packages}
        run["revision"], *run["hardware"] = machine.splitlines()
        run |= {"seconds": seconds, "test_errors": errors}
        json.dump(run, record, indent=1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, nargs=2, default=(2000, 200))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", type=argparse.FileType("x"), metavar="FILE")
    options = parser.parse_args()
    if min(*options.epochs, options.seed) < 0:
        parser.error("Epochs and seed must be at least 0.")
    main(**vars(options))
