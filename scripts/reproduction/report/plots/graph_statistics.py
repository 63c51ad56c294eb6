"""The paper's three graphs in numbers (sections 3.1 and 3.2, Figure 1).

`B`, the rectified logits of m examples for n classes, defines

- G*, between examples and output nodes, with edges `B`,
- G_M, between examples, with edges `M = BBᵀ`,
- G_N, between output nodes, with edges `N = BᵀB`.

The paper's claim is that three things are the same: G* is (1, m/n)-biregular,
G_M falls apart into n regular subgraphs, and N is a scaled identity. None of
the numbers changes when `B` is multiplied by one, and each is defined for
`B = 0` too. All is NumPy in float64.
"""

import numpy as np
from scipy.sparse import csgraph

from gar_keras.utils.validation import as_array, check_labels, check_real

# Two output nodes are at a right angle. Beyond its half, cos 45° = 0.71, no
# example can be tied to the pure examples of two output nodes at once.
THRESHOLD = 0.75


def graph_numbers(B, labels):
    """How near the three graphs are to the optimum of section 3.2.

    Args:
        B: Rectified logits `(m, n)`, not negative, n at least 2.
        labels: True class indices `(m,)`, below n.

    Returns:
        A dict of

        - `examples`, m, `outputs`, n, and `isolated`: those with `B_i = 0`;
        - `strongest_share`: G*, the share of an example's weight on its
          strongest edge, `mean_i max_j S_ij` with `S = edge_shares(B)`;
          optimum 1, and 1/n where each is tied to all output nodes alike;
        - `degree_deviation`: G*, `sqrt(mean_j (d_j / (m/n) - 1)²)` of the
          degrees `d_j = sum_i S_ij` of the output nodes; optimum 0, and
          `sqrt(n - 1)` where one output node has all edges;
        - `within_class_share`: G_M, the share of the weight of its edges that
          lies within a true class, without self-loops; optimum 1, and about
          1/n where all examples are alike;
        - `components` of G_M, with edges from `THRESHOLD` on, and
          `largest_component`, its share of the examples; optimum n and 1/n;
        - `identity_distance`: G_N, see there; optimum 0;
        - `affinity` and `balance`: the paper's; optimum 0 and 1.

    Raises:
        ValueError: if an argument is not as described.

    Example:

    >>> B = [[1., 1.], [2., 0.], [0., 1.]]      # M_12 = 2, M_13 = 1, M_23 = 0
    >>> round(graph_numbers(B, labels=[0, 0, 1])["within_class_share"], 6)
    0.666667
    """
    B = matrix(B)
    m, n = B.shape
    labels = check_labels("labels", labels, m, n)
    S, N = edge_shares(B), B.T @ B
    degrees = S.sum(axis=0) / (m / n)
    v, loop_free = N.diagonal(), ~np.eye(n, dtype=bool)
    count, member = components(B)

    def edge_weight(B):
        """The sum of all off-diagonal entries of `BBᵀ`, in `O(m·n)`."""
        # Not ‖s‖² - ‖B‖²: that would cancel where few examples share an output.
        return np.sum(B * (B.sum(axis=0) - B))

    within = sum(edge_weight(B[labels == c]) for c in np.unique(labels))
    return {
        "examples": m,
        "outputs": n,
        "isolated": int((~B.any(axis=1)).sum()),
        "strongest_share": float(S.max(axis=1).mean()),
        "degree_deviation": float(np.sqrt(np.mean((degrees - 1) ** 2))),
        "within_class_share": min(float(_over(within, edge_weight(B))), 1.0),
        "components": int(count),
        "largest_component": float(np.bincount(member).max() / m),
        "identity_distance": identity_distance(B),
        "affinity": float(_over(N[loop_free].sum(), (n - 1) * np.trace(N))),
        "balance": float(_over(v @ (v.sum() - v), (n - 1) * (v @ v))),
    }


def components(B):
    """G_M: how many components there are over edges of at least `THRESHOLD`,
    cosines between rows of `B`, and that of each example.

    Example:

    >>> count, member = components([[1., 0.], [9., 1.], [0., 5.], [0., 0.]])
    >>> count, member.tolist()
    (3, [0, 0, 1, 2])
    """
    U = unit_rows(B)
    return csgraph.connected_components(U @ U.T >= THRESHOLD, directed=False)


def identity_distance(B):
    """G_N: the distance of N from a scaled identity.

    `‖N / (tr N / n) - I‖_F / ‖I‖_F`: optimum 0, `sqrt(n - 1)` where one output
    node has all weight or all are alike, and 1 for `B = 0`.

    Example:

    >>> identity_distance([[1., 0.], [0., 1.], [0., 1.], [0., 1.]])
    0.5
    """
    B = matrix(B)
    N = B.T @ B
    n = len(N)
    difference = _over(N, np.trace(N) / n) - np.eye(n)
    return float(np.linalg.norm(difference) / np.sqrt(n))


def edge_shares(B):
    """The edges of G*, `B_ij / sum_k B_ik`: 0 for examples without any edge."""
    B = matrix(B)
    return _over(B, B.sum(axis=1, keepdims=True))


def unit_rows(B):
    """`B` with rows of length 1: its `UUᵀ` is G_M, with self-loops of 1."""
    B = matrix(B)
    return _over(B, np.linalg.norm(B, axis=1, keepdims=True))


def matrix(B):
    """`B` as float64, if it is a matrix and has no entry below 0."""
    B = as_array("B", B)
    check_real("B", B.dtype, "biuf")
    B = B.astype("float64")
    if B.ndim != 2 or not ((B >= 0) & (B < np.inf)).all():
        raise ValueError(
            "B must be a matrix (m, n) of rectified logits, max(0, Z), finite "
            f"and not negative. Received: shape {B.shape}, least entry "
            f"{B.min()}, largest {B.max()}"
        )
    return B


def _over(numerator, denominator):
    """The quotient, and 0 where the denominator is 0."""
    return numerator / np.where(denominator > 0, denominator, 1.0)
