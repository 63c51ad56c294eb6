"""The paper's equations in float64 NumPy, with N and V in full; gradients."""

import keras
import numpy as np

COEFFICIENTS = {"affinity": 3.0, "balance": 1.0, "frobenius": 1e-6}


def affinity(B):
    """`sum_{i≠j} N_ij / ((n - 1) * sum_i N_ii)` with `N = BᵀB`."""
    B = np.asarray(B, "float64")
    return _spread(B.T @ B)


def balance(B, balance_of="diagonal", class_prior=1.0):
    """`sum_{i≠j} V_ij / ((n - 1) * sum_i V_ii)` with `V = vᵀv`, or `v / p`."""
    B = np.asarray(B, "float64")
    sums = B.sum(axis=1, keepdims=True)
    v = {
        "diagonal": np.diag(B.T @ B),
        "column sums": B.sum(axis=0),
        "row shares": (B / np.where(sums > 0, sums, 1)).sum(axis=0),
    }[balance_of]
    u = v / np.asarray(class_prior)
    return _spread(np.outer(u, u))


def _spread(matrix):
    n = len(matrix)
    on = np.eye(n, dtype=bool)
    total = matrix[on].sum()
    return matrix[~on].sum() / ((n - 1) * total) if total else 0.0


def loss(
    Z, affinity=3.0, balance=1.0, frobenius=1e-6, frobenius_of="B",
    balance_of="diagonal", class_prior=1.0,
):  # fmt: skip
    """`c_α α(B) + c_β (1 - β(B)) + c_F ‖B‖²_F` with `B = max(0, Z)`."""
    Z = np.asarray(Z, "float64")
    B = np.maximum(Z, 0)
    F = {"B": B, "Z": Z}[frobenius_of]
    alpha = globals()["affinity"](B)
    beta = globals()["balance"](B, balance_of, class_prior)
    return affinity * alpha + balance * (1 - beta) + frobenius * np.sum(F**2)


def softmax(Z):
    """The probabilities of each row of logits."""
    Z = np.asarray(Z, "float64")
    e = np.exp(Z - Z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def log_loss(Z, y):
    """The mean cross-entropy of logits and the indices of their classes."""
    return -np.mean(np.log(softmax(Z)[np.arange(len(y)), y]))


def differences(function, x, step=1e-6):
    """The gradient of a function of an array by central differences."""
    x = np.array(x, "float64")
    gradient = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        ends = []
        for sign in (1, -1):
            moved = x.copy()
            moved[i] += sign * step
            ends.append(function(moved))
        gradient[i] = (ends[0] - ends[1]) / (2 * step)
    return gradient


def gradient(function, x):
    """The gradient of a function of a tensor by the backend's autodiff."""
    x = keras.ops.convert_to_tensor(x)
    if keras.backend.backend() == "jax":
        import jax

        return np.asarray(jax.grad(function)(x))
    if keras.backend.backend() == "torch":
        import torch

        x = x.detach().requires_grad_(True)
        return torch.autograd.grad(function(x), x)[0].numpy(force=True)
    import tensorflow as tf

    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return np.asarray(tape.gradient(y, x))


def logits(m, n, seed=0, dtype="float32", scale=1.0):
    """Logits of both signs, none so near 0 that a difference would cross."""
    Z = np.random.default_rng(seed).normal(size=(m, n))
    return (scale * (Z + 0.01 * np.sign(Z))).astype(dtype)
