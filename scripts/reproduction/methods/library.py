"""What `gar_keras.regularize` takes for the terms of an experiment.

Among these are ablations of GAR: its loss with one thing changed (paper,
sections 3.2, 3.3). Each puts a claim of the paper to the test, in experiments
alone: none is an option of the layer.
"""

from dataclasses import asdict, dataclass
from typing import ClassVar

from keras import ops

from gar_keras import methods
from gar_keras.layers import GraphActivityRegularization
from gar_keras.methods import losses
from gar_keras.methods.base import Term
from gar_keras.methods.mean_teacher import copy_of
from gar_keras.regularizers import affinity, balance
from reproduction.methods import terms

# Share of the largest diagonal entry that is added to the diagonal: it keeps
# `BᵀDB` invertible where a class is lost.
RIDGE = 1e-6


def for_library(method, class_prior):
    """The terms of `gar_keras.methods`, a list, for those of an experiment.

    Args:
        method: A tuple of terms.
        class_prior: The shares that a `GAR` expects; `None` for equal ones.
    """
    made = []
    for term in method:
        settings = asdict(term)
        if not isinstance(term, terms.GAR):
            kind = getattr(methods, type(term).__name__)
            made.append(kind(**settings))
            continue
        settings["class_prior"] = class_prior
        # With this name of the layer its metrics have no prefix.
        settings["name"] = "graph_activity_regularization"
        layer = LAYERS[type(term)](**settings)
        made.append(methods.GAR(layer=layer))
        if isinstance(term, terms.FixedAdjacency):
            made.append(FixedAdjacency(term.affinity))
            if term.affinity:
                # With a coefficient of 0 the affinity is still measured.
                layer.set_coefficients(affinity=0.0)
    return made


class Unrectified(GraphActivityRegularization):
    """The loss of `B = Z`: negative logits stay.

    Two negative logits of an image have a positive product in N, a "false
    adjacency". Affinity can be negative, down to `-1 / (n - 1)`.
    """

    def measure(self, Z, training=False):
        Z = ops.cast(Z, "float32")
        balance_of = self.get_config()["balance_of"]
        unrectified = {
            "affinity": affinity(Z),
            "balance": balance(Z, self.class_prior, balance_of),
            "frobenius": ops.sum(ops.square(Z)),
        }
        measured, U = {}, 0.0
        for name, coefficient in self.coefficient_weights.items():
            term = measured[name] = unrectified[name]
            U = U + coefficient * (1.0 - term if name == "balance" else term)
        return measured | {"regularization": U}


class OfSoftmax(GraphActivityRegularization):
    """The loss of `B = softmax(Z)`: probabilities for linear activations."""

    def measure(self, Z, training=False):
        return super().measure(losses.probabilities(Z), training)


def _rectified(Z):
    """B of the paper, `max(0, Z)`, in float32."""
    Z = ops.cast(Z, "float32")
    return ops.where(Z <= 0, ops.zeros_like(Z), Z)


class Unnormalized(GraphActivityRegularization):
    """The loss with `sum_{i≠j} N_ij`, affinity without its denominator."""

    def measure(self, Z, training=False):
        measured = super().measure(Z, training)
        if "affinity" in measured:
            B = _rectified(Z)
            normalized = measured["affinity"]
            trace_N = ops.sum(ops.square(B))
            changed = normalized * (B.shape[-1] - 1) * trace_N
            coefficient = self.coefficient_weights["affinity"]
            measured["affinity"] = changed
            measured["regularization"] += coefficient * (changed - normalized)
        return measured


class Symmetric(GraphActivityRegularization):
    """The loss of `Z` and that of `-Z`, and the means of their terms.

    As in the authors' later PyTorch code: an output that is below 0 for all
    images of a batch has a gradient.
    """

    def measure(self, Z, training=False):
        both = super().measure(Z), super().measure(-Z)
        total = {name: both[0][name] + both[1][name] for name in both[0]}
        means = {name: value / 2 for name, value in total.items()}
        return means | {"regularization": total["regularization"]}


LAYERS = {
    terms.GAR: GraphActivityRegularization,
    terms.Unrectified: Unrectified,
    terms.Softmax: OfSoftmax,
    terms.Unnormalized: Unnormalized,
    terms.Symmetric: Symmetric,
    terms.FixedAdjacency: GraphActivityRegularization,
}


def distances_on_graph(B, B0):
    """Distances of an embedding on a fixed graph (paper, equation 2).

    The Laplacian eigenmap of section 3.1: of the images of a batch, with the
    adjacency `M = B0 B0ᵀ`, its degrees D and its Laplacian `L = D - M`,

    `tr(ZᵀLZ) / n` subject to the balancing constraint `ZᵀDZ = I`

    The constraint is kept exactly by `Z = B (BᵀDB)^{-1/2}`, the columns of B
    made orthonormal, which gives

    `tr((BᵀDB)^{-1} BᵀLB) / n = 1 - tr((BᵀDB)^{-1} (B0ᵀB)ᵀ(B0ᵀB)) / n`

    It is from 0 to 1, as affinity is, and like it does not change with the
    scale of B. Nothing is `m x m`.

    `B` and `B0` are rectified logits `(m, n)`.
    """
    B, B0 = _unit_scale(B), _unit_scale(B0)
    n = B.shape[-1]
    degrees = ops.matmul(B0, ops.sum(B0, axis=0)[:, None])
    BtDB = ops.matmul(ops.transpose(B), degrees * B)
    linked = ops.matmul(ops.transpose(B0), B)
    BtMB = ops.matmul(ops.transpose(linked), linked)
    largest = ops.stop_gradient(ops.max(ops.diagonal(BtDB)))
    ridge = RIDGE * ops.where(largest > 0, largest, 1.0)
    inverse_times = ops.solve(BtDB + ridge * ops.eye(n), BtMB)
    return 1.0 - ops.trace(inverse_times) / n


def _unit_scale(B):
    """`B` over its largest entry, which changes nothing above."""
    largest = ops.stop_gradient(ops.max(B, initial=0.0))
    return B / ops.where(largest > 0, largest, ops.ones_like(largest))


@dataclass(frozen=True)
class FixedAdjacency(Term):
    """Distances on the graph of stage 1, in place of GAR's affinity.

    Classical graph regularization: the adjacency of the images stays that of
    `B0`, the rectified logits of the network of stage 1.
    """

    name: ClassVar[str] = "distances"

    def build(self, stage_2):
        # Part of the saved state: a run that goes on has the same graph.
        stage_2.first = copy_of(stage_2.network, stage_2.seed)

    def loss(self, stage_2, x, y, logits):
        first = ops.stop_gradient(stage_2.first(x, training=False))
        return distances_on_graph(_rectified(logits), _rectified(first))
