"""The paper's three graphs in numbers (sections 3.1 and 3.2, Figure 1).

`B`, the rectified logits of m examples for n classes, defines

- G*, between examples and output nodes, with edges `B`,
- G_M, between examples, with edges `M = BBᵀ`,
- G_N, between output nodes, with edges `N = BᵀB`.

The paper's claim is that three things are the same: G* is (1, m/n)-biregular,
G_M falls apart into n regular subgraphs, and N is a scaled identity. Each
function measures how near `B` is to one of them. None of their values changes
when `B` is multiplied by a number, and each is defined for `B = 0` too.

Everything is NumPy in float64: Keras is not needed to look at a finished run.
`M` as a whole, `m x m`, is never formed.
"""

import math
from dataclasses import dataclass

import numpy as np

from gar_keras.utils.optional import optional
from gar_keras.utils.validation import check_labels, check_number

# Two output nodes are at a right angle. Beyond its half, cos 45° = 0.71, no
# example can be tied to the pure examples of two output nodes at once.
THRESHOLD = 0.75

# Examples whose edges in G_M are in memory at a time.
_BLOCK = 250


@dataclass(frozen=True)
class GraphNumbers:
    """Numbers that Figure 1 shows; `graph_numbers` makes them.

    Attributes:
        examples: m.
        outputs: n.
        isolated: Examples without any edge, `B_i = 0`.
        strongest_share: `strongest_share(B)`; 1 at the paper's optimum.
        degree_deviation: `degree_deviation(B)`; 0 at the optimum.
        class_deviation: The same of the true classes: what a perfect
            classifier has on these examples.
        within_class_share: `within_class_share(B, labels)`; 1 at the optimum
            where the output nodes are the classes.
        threshold: Weight from which an edge counts in the next two.
        components: Connected components of G_M; n at the optimum.
        largest_component: Share of the examples that are in the largest of
            them; 1/n at the optimum.
        identity_distance: `identity_distance(B)`; 0 at the optimum.
        affinity: `affinity(B)`; 0 at the optimum.
        balance: `balance(B)`; 1 at the optimum.
    """

    examples: int
    outputs: int
    isolated: int
    strongest_share: float
    degree_deviation: float
    class_deviation: float
    within_class_share: float
    threshold: float
    components: int
    largest_component: float
    identity_distance: float
    affinity: float
    balance: float


def graph_numbers(B, labels, threshold=THRESHOLD):
    """Measures all three graphs.

    Args:
        B: Rectified logits `(m, n)`, not negative, n at least 2.
        labels: True class indices `(m,)`, below n.
        threshold: Weight from which an edge of G_M counts in its components;
            see `components`.

    Returns:
        A `GraphNumbers`.

    Raises:
        ValueError: if an argument is not as described.
        ImportError: if SciPy is not installed.

    Example:

    >>> labels = [0, 0, 1, 1, 2, 2]
    >>> numbers = graph_numbers(7.0 * np.eye(3)[labels], labels)
    >>> numbers.strongest_share, numbers.within_class_share
    (1.0, 1.0)
    >>> numbers.components, numbers.identity_distance
    (3, 0.0)
    """
    B = _matrix(B)
    m, n = B.shape
    labels = check_labels("labels", labels, m)
    if labels.max() >= n:
        raise ValueError(
            f"labels must lie in 0..{n - 1}, since B has {n} output nodes. "
            f"Received: largest label={labels.max()}"
        )
    count, member = components(B, threshold)
    return GraphNumbers(
        examples=m,
        outputs=n,
        isolated=int((~B.any(axis=1)).sum()),
        strongest_share=strongest_share(B),
        degree_deviation=degree_deviation(B),
        class_deviation=degree_deviation(np.eye(n)[labels]),
        within_class_share=within_class_share(B, labels),
        threshold=float(threshold),
        components=count,
        largest_component=float(np.bincount(member).max() / m),
        identity_distance=identity_distance(B),
        affinity=affinity(B),
        balance=balance(B),
    )


def strongest_share(B):
    """G*: the share of an example's weight on its strongest edge, on average.

    `mean_i max_j S_ij` with the shares `S_ij = B_ij / sum_k B_ik`.

    In the biregular graph of section 3.2 each example has one edge, and the
    value is 1. It is 1/n where each example is tied to all output nodes
    alike. An example without any edge counts as 0.

    Args:
        B: Rectified logits `(m, n)`, not negative.

    Returns:
        A float from 0 to 1.

    Example:

    >>> strongest_share([[3., 1.], [0., 2.]])       # (3/4 + 1) / 2
    0.875
    """
    return float(edge_shares(B).max(axis=1).mean())


def degree_deviation(B):
    """G*: how far the degrees of the output nodes are from m/n.

    `sqrt(mean_j (d_j / (m/n) - 1)²)` with the degrees
    `d_j = sum_i B_ij / sum_k B_ik`, in which each example has degree 1.

    In the biregular graph of section 3.2 all degrees are m/n, and the value is
    0. Where all examples have an edge it is the coefficient of variation of
    the degrees; it is `sqrt(n - 1)` where one output node has all of them, and
    1 for `B = 0`. Where the true classes differ in size, as in a random draw
    of examples, a perfect classifier is above 0 as well.

    Args:
        B: Rectified logits `(m, n)`, not negative.

    Returns:
        A float from 0 to `sqrt(n - 1)`.

    Example:

    >>> degree_deviation([[3., 1.], [0., 2.]])      # degrees 3/4, 5/4 of 1
    0.25
    """
    S = edge_shares(B)
    m, n = S.shape
    relative = S.sum(axis=0) / (m / n)
    return float(np.sqrt(np.mean((relative - 1) ** 2)))


def within_class_share(B, labels):
    """G_M: the share of the weight of its edges that lies within a class.

    `sum_{i≠j, t_i=t_j} M_ij / sum_{i≠j} M_ij` with `M = BBᵀ` and the true
    classes `t`. Self-loops do not count.

    With the sum `s` of the rows of `B`, the denominator is
    `sum_i B_i · (s - B_i)`, and the numerator the same for each class alone,
    so that the cost is `O(m·n)`. Section 3.2: G_M becomes a disconnected graph
    of n subgraphs, one for each class, and the value 1. For examples that are
    all alike it is about 1/n. It is 0 where G_M has no edges.

    Args:
        B: Rectified logits `(m, n)`, not negative.
        labels: True class indices `(m,)`.

    Returns:
        A float from 0 to 1.

    Example:

    >>> B = [[1., 1.], [2., 0.], [0., 1.]]      # M_12 = 2, M_13 = 1, M_23 = 0
    >>> round(within_class_share(B, [0, 0, 1]), 6)
    0.666667
    """
    B = unit_scale(B)
    labels = check_labels("labels", labels, len(B))
    within = sum(_edge_weight(B[labels == c]) for c in np.unique(labels))
    total = _edge_weight(B)
    return min(float(within / total), 1.0) if total else 0.0


def components(B, threshold=THRESHOLD):
    """G_M: its connected components over edges of at least a certain weight.

    The weight of an edge is `M_ij / sqrt(M_ii · M_jj)`, the cosine between two
    rows of `B`: an example's self-loop weighs 1, and so do the edges between
    examples of the same output node alone. An example without any edge, and
    so any other whose edges are too light, is a component by itself.

    At the paper's optimum there are n components (section 3.2). One doubtful
    example can join two of them, so that the count depends on how many
    examples there are; compare it between draws of the same size.

    Args:
        B: Rectified logits `(m, n)`, not negative.
        threshold: Least weight of an edge that counts, above 0 and below 1.

    Returns:
        `(count, member)`: how many components there are, and the component of
        each example, int `(m,)`, from 0 to `count - 1`.

    Raises:
        ImportError: if SciPy is not installed.

    Example:

    >>> count, member = components([[1., 0.], [9., 1.], [0., 5.], [0., 0.]])
    >>> count, member.tolist()
    (3, [0, 0, 1, 2])
    """
    check_number("threshold", threshold, high=1, closed="neither")
    sparse = optional("scipy.sparse", "Figure 1", extra="experiments")
    csgraph = optional("scipy.sparse.csgraph", "Figure 1", extra="experiments")
    U = unit_rows(B)
    count, member = len(U), np.arange(len(U))
    for start in range(0, len(U), _BLOCK):
        i, j = np.nonzero(U[start : start + _BLOCK] @ U.T >= threshold)
        # What is joined already is one node from here on.
        graph = sparse.coo_array(
            (np.ones(len(i), bool), (member[start + i], member[j])),
            shape=(count, count),
        )
        count, joined = csgraph.connected_components(graph, directed=False)
        member = joined[member]
    return count, member


def identity_distance(B):
    """G_N: the relative distance between N and a scaled identity.

    `‖N / (tr N / n) - I‖_F / ‖I‖_F` with `N = BᵀB`.

    It is 0 where `N` is a scaled identity, the aim of section 3.2,
    `sqrt(n - 1)` where one output node has all weight or all output nodes are
    alike, and 1 for `B = 0`.

    Args:
        B: Rectified logits `(m, n)`, not negative.

    Returns:
        A float from 0 to `sqrt(n - 1)`.

    Example:

    >>> identity_distance([[1., 0.], [0., 1.], [0., 1.], [0., 1.]])
    0.5
    """
    N = output_edges(B)
    n = len(N)
    scale = np.trace(N) / n
    difference = (N / scale if scale else N) - np.eye(n)
    return float(np.linalg.norm(difference) / math.sqrt(n))


def affinity(B):
    """G_N: the weight of its edges next to that of its self-loops.

    `sum_{i≠j} N_ij / ((n - 1) * sum_i N_ii)` with `N = BᵀB` (paper, equation
    for Affinity). The loss itself is `gar_keras.affinity`, in Keras.

    Args:
        B: Rectified logits `(m, n)`, not negative.

    Returns:
        A float from 0 to 1, and 0 for `B = 0`.

    Example:

    >>> round(affinity([[1., 1.], [0., 2.]]), 6)    # 2 / (1 * 6)
    0.333333
    """
    N = output_edges(B)
    n = len(N)
    trace = np.trace(N)
    edges = N[~np.eye(n, dtype=bool)].sum()
    return float(edges / ((n - 1) * trace)) if trace else 0.0


def balance(B):
    """G_N: how evenly its self-loops are weighted.

    `sum_{i≠j} V_ij / ((n - 1) * sum_i V_ii)` with `V = vᵀv` and
    `v = diag(BᵀB)` (paper, equation for Balance). The loss itself is
    `gar_keras.balance`, in Keras.

    Args:
        B: Rectified logits `(m, n)`, not negative.

    Returns:
        A float from 0 to 1, and 0 for `B = 0`.

    Example:

    >>> round(balance([[1., 1.], [0., 2.]]), 6)     # 10 / (1 * 26)
    0.384615
    """
    v = output_edges(B).diagonal()
    squares = np.sum(v**2)
    edges = np.sum(v * (v.sum() - v))
    return float(edges / ((len(v) - 1) * squares)) if squares else 0.0


def edge_shares(B):
    """The edges of G*, as shares of the weight of each example.

    Args:
        B: Rectified logits `(m, n)`, not negative.

    Returns:
        `B_ij / sum_k B_ik`, float64 `(m, n)`; 0 for examples without any edge.

    Example:

    >>> edge_shares([[3., 1.], [0., 0.]]).tolist()
    [[0.75, 0.25], [0.0, 0.0]]
    """
    B = unit_scale(B)
    return _over(B, B.sum(axis=1, keepdims=True))


def unit_rows(B):
    """`B` with rows of length 1: its `UUᵀ` is G_M with self-loops of weight 1.

    Args:
        B: Rectified logits `(m, n)`, not negative.

    Returns:
        `B_i / ‖B_i‖`, float64 `(m, n)`; 0 for examples without any edge.

    Example:

    >>> unit_rows([[3., 4.], [0., 0.]]).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    B = _matrix(B)
    # The largest entry first: the squares of tiny ones would vanish.
    B = _over(B, B.max(axis=1, keepdims=True))
    return _over(B, np.linalg.norm(B, axis=1, keepdims=True))


def output_edges(B):
    """`N = BᵀB` for `B` divided by its largest entry, so that none overflows.

    Args:
        B: Rectified logits `(m, n)`, not negative.

    Returns:
        The edges of G_N up to a common factor, float64 `(n, n)`.

    Example:

    >>> output_edges([[1., 1.], [0., 2.]]).tolist()
    [[0.25, 0.25], [0.25, 1.25]]
    """
    B = unit_scale(B)
    return B.T @ B


def unit_scale(B):
    """`B` divided by its largest entry, so that sums and squares are finite.

    What is measured here does not change with the scale of `B`.

    Args:
        B: Rectified logits `(m, n)`, not negative.

    Returns:
        `B / max(B)`, float64 `(m, n)`; `B = 0` as it is.

    Raises:
        ValueError: if `B` is not a matrix of finite numbers that are not
            negative, with n of at least 2.

    Example:

    >>> unit_scale([[1., 2.], [0., 4.]]).tolist()
    [[0.25, 0.5], [0.0, 1.0]]
    """
    B = _matrix(B)
    return _over(B, B.max())


def _edge_weight(B):
    """The sum of all off-diagonal entries of `BBᵀ`."""
    # Not ‖s‖² - ‖B‖²: that would cancel where few examples share an output.
    return np.sum(B * (B.sum(axis=0) - B))


def _over(numerator, denominator):
    """The quotient, and 0 where the denominator is 0."""
    return numerator / np.where(denominator > 0, denominator, 1.0)


def _matrix(B):
    """`B` as float64 `(m, n)`, not negative, n at least 2."""
    B = np.asarray(B)
    if B.ndim != 2 or B.shape[0] < 1 or B.shape[1] < 2:
        raise ValueError(
            "B must be a matrix (m, n) with at least one example and two "
            f"classes. Received: shape={B.shape}"
        )
    if B.dtype.kind not in "fiu":
        raise ValueError(f"B must hold real numbers. Received: dtype={B.dtype}")
    B = B.astype(np.float64)
    if not np.isfinite(B).all():
        raise ValueError(
            f"B must be finite, but {np.count_nonzero(~np.isfinite(B))} of "
            "its values are NaN or infinite. The run that made them diverged."
        )
    if B.min() < 0:
        raise ValueError(
            "B must not be negative: pass the rectified logits, max(0, Z). "
            f"Received: least value={B.min()}"
        )
    return B
