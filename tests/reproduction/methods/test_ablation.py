"""Ablations of GAR against values worked out in float64 NumPy."""

import numpy as np
import oracle
import pytest
from keras import layers
from scipy import linalg
from stacks import sequential

from gar_keras.methods.base import Stage2
from reproduction.methods.library import distances_on_graph, for_library
from reproduction.methods.terms import ABLATIONS

Z = oracle.logits(12, 4, scale=3.0)
B0 = np.maximum(oracle.logits(12, 4, seed=1), 0)
COEFFICIENTS = {"affinity": 2.0, "balance": 0.5, "frobenius": 0.01}


def ablated(name, **changes):
    """What the library takes for GAR with one thing changed."""
    term = ABLATIONS[name](**COEFFICIENTS | changes)
    return for_library([term], None)


# Their losses


def loss_of(B, normalized=True):
    """`U(B)` of any B, affinity with or without its denominator."""
    N = B.T @ B
    trace = np.trace(N)
    alpha = N.sum() - trace
    if normalized:
        alpha /= (len(N) - 1) * trace
    penalties = alpha, 1 - oracle.balance(B), trace
    return np.dot([*COEFFICIENTS.values()], penalties)


def symmetric(Z):
    return loss_of(np.maximum(Z, 0)) + loss_of(np.maximum(-Z, 0))


LOSSES = {
    "symmetric": symmetric,
    "unrectified": loss_of,
    "softmax": lambda Z: loss_of(oracle.softmax(Z)),
    "unnormalized": lambda Z: loss_of(np.maximum(Z, 0), normalized=False),
}


@pytest.mark.parametrize("name", LOSSES)
def test_the_loss_of_a_step_its_terms_and_its_gradient(name):
    method = ablated(name)
    model = method[0].network(sequential(layers.Identity()))
    stage_2 = Stage2(method, model, 4, steps=1, labeled_per_batch=0)
    loss = stage_2.compute_loss(Z, None, stage_2(Z, training=True))
    expected = LOSSES[name](Z.astype(float))
    assert float(loss) == pytest.approx(expected, rel=1e-5)
    assert {m.name for m in stage_2.metrics} == {
        "affinity", "balance", "classes_in_use", "regularization"
    }  # fmt: skip
    layer = method[0].layer
    np.testing.assert_allclose(
        oracle.gradient(lambda Z: layer.measure(Z)["regularization"], Z),
        oracle.differences(LOSSES[name], Z),
        rtol=1e-3,
        atol=1e-5 * abs(expected),
    )


@pytest.mark.parametrize("name", ABLATIONS)
def test_a_term_of_coefficient_0_is_left_out(name):
    method = ablated(name, affinity=0.0)
    assert set(method[0].layer.measure(Z)) == {
        "balance", "frobenius", "regularization"
    }  # fmt: skip


# Distances on a fixed graph


def laplacian(B0):
    M = B0 @ B0.T
    D = np.diag(M.sum(1))
    return D - M, D


def distances(B, B0):
    """`tr(ZᵀLZ) / n` with the columns of B made orthonormal to `ZᵀDZ = I`."""
    L, D = laplacian(B0)
    Z = B @ np.linalg.inv(linalg.sqrtm(B.T @ D @ B).real)
    assert Z.T @ D @ Z == pytest.approx(np.eye(B.shape[1]), abs=1e-8)
    return np.trace(Z.T @ L @ Z) / B.shape[1]


def test_distances_and_their_gradient():
    B = np.maximum(Z, 0)
    expected = distances(B.astype(float), B0.astype(float))
    assert float(distances_on_graph(B, B0)) == pytest.approx(expected, rel=1e-4)
    np.testing.assert_allclose(
        oracle.gradient(lambda B: distances_on_graph(B, B0), B),
        oracle.differences(lambda B: distances(B, B0.astype(float)), B),
        rtol=2e-3,
        atol=1e-5,
    )


@pytest.mark.parametrize("empty", [[2], [0, 1, 2, 3]])
def test_distances_are_finite_where_classes_are_lost(empty):
    B = np.maximum(Z, 0)
    B[:, empty] = 0
    value = float(distances_on_graph(B, B0))
    assert 0 <= value <= 1
    slope = oracle.gradient(lambda B: distances_on_graph(B, B0), B)
    assert np.isfinite(slope).all()


def test_the_graph_stays_that_of_stage_1():
    network = sequential(layers.Dense(3, use_bias=False), shape=(2,))
    rng = np.random.default_rng(0)
    first, now = rng.normal(size=(2, 2, 3))
    x = rng.normal(size=(8, 2)).astype("float32")
    network.set_weights([first])
    method = ablated("fixed-adjacency")
    stage_2 = Stage2(method, network, 3, 10, labeled_per_batch=1)
    network.set_weights([now])
    y = np.array([-1] * 7 + [1])
    loss = stage_2.compute_loss(x, y, stage_2(x, training=True))
    B = np.maximum(x @ now, 0)
    expected = (
        2.0 * distances(B, np.maximum(x @ first, 0))
        + 0.5 * (1 - oracle.balance(B))
        + 0.01 * (B**2).sum()
    )
    assert float(loss) == pytest.approx(expected, rel=1e-4)
    # The affinity of B is measured, and adds nothing.
    logs = {m.name: float(m.result()) for m in stage_2.metrics}
    assert logs["affinity"] == pytest.approx(oracle.affinity(B), rel=1e-5)
    assert not {id(v) for v in stage_2.first.variables} & {
        id(v) for v in stage_2.trainable_variables
    }
