"""The numbers of the graphs against hand-made answers and plain definitions."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from reproduction.report.plots import graph_statistics
from reproduction.report.plots.graph_statistics import graph_numbers

# Six examples, three classes: 2, 2 and 2.
LABELS = np.array([0, 0, 1, 1, 2, 2])
ONE_OUTPUT = np.outer([1, 2, 3, 4, 5, 6], [0, 1, 0])
SAME = {"examples": 6, "outputs": 3}

# Half of the entries 0, as after rectification; else over eleven decades.
matrices = st.tuples(st.integers(1, 12), st.integers(3, 5)).flatmap(
    lambda shape: arrays(
        np.float64,
        shape,
        elements=st.one_of(st.just(0.0), st.floats(1e-6, 1e5)),
    )
)


NAMES = (
    "isolated", "strongest_share", "degree_deviation", "within_class_share",
    "components", "largest_component", "identity_distance", "affinity",
    "balance",
)  # fmt: skip


@pytest.mark.parametrize(
    "B, expected",
    [
        # The optimum of the paper.
        (2.5 * np.eye(3)[LABELS], (0, 1, 0, 1, 3, 1 / 3, 0, 0, 1)),
        # M is 1 everywhere: 3 * 2 of its 6 * 5 entries lie within classes.
        # N is 1 everywhere, up to scale.
        (np.ones((6, 3)), (0, 1 / 3, 0, 0.2, 1, 1, math.sqrt(2), 1, 1)),
        # 2 * (1*2 + 3*4 + 5*6) of 21² - (1 + 4 + 9 + 16 + 25 + 36).
        (ONE_OUTPUT, (0, 1, math.sqrt(2), 88 / 350, 1, 1, math.sqrt(2), 0, 0)),
        (np.zeros((6, 3), "float32"), (6, 0, 1, 0, 6, 1 / 6, 1, 0, 0)),
    ],
)
def test_known_answers(B, expected):
    expected = SAME | dict(zip(NAMES, expected, strict=True))
    assert graph_numbers(B, LABELS) == pytest.approx(expected)


def test_within_class_share_of_edges_that_cancel():
    # The only two edges, 1e-12 next to self-loops of 1: one in the class.
    B = np.array([[1, 0, 0], [1e-12, 1, 0], [0, 1e-12, 1]])
    numbers = graph_numbers(B, [0, 0, 1])
    assert numbers["within_class_share"] == pytest.approx(0.5)


def test_components_at_the_threshold():
    # Of cosines 0.8 and 0.71: half a right angle joins no two outputs.
    B = [[1.0, 0.0], [4.0, 3.0]]
    assert graph_statistics.components(B)[0] == 1
    tied = [[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]
    assert graph_statistics.components(tied)[0] == 3


@settings(max_examples=60, deadline=None)
@given(
    B=matrices, seed=st.integers(0, 99), scale=st.sampled_from([1e-3, 7.0, 1e9])
)
def test_ranges_and_neither_scale_nor_order_matters(B, seed, scale):
    labels = np.arange(len(B)) % 3
    numbers = graph_numbers(B, labels)
    for name, most in (
        ("strongest_share", 1),
        ("within_class_share", 1),
        ("affinity", 1),
        ("balance", 1),
        ("degree_deviation", math.sqrt(B.shape[1] - 1)),
        ("identity_distance", math.sqrt(B.shape[1] - 1)),
    ):
        assert 0 <= numbers[name] <= most * (1 + 1e-12)
    M = B @ B.T
    np.fill_diagonal(M, 0)
    within = M[labels[:, None] == labels].sum()
    # Sums less diagonals: a large row leaves few digits to the others.
    assert numbers["within_class_share"] == pytest.approx(
        within / M.sum() if M.any() else 0, rel=1e-6, abs=1e-12
    )
    rows = np.random.default_rng(seed).permutation(len(B))
    other = graph_numbers(scale * B[rows], labels[rows])
    for name in ("components", "largest_component"):
        # Rounding can move a cosine over the threshold.
        del numbers[name], other[name]
    assert other == pytest.approx(numbers, rel=1e-9, abs=1e-12)


def test_affinity_and_balance_are_those_of_the_loss():
    from gar_keras import regularizers

    rng = np.random.default_rng(0)
    B = np.maximum(rng.normal(size=(50, 7)), 0).astype("float32")
    numbers = graph_numbers(B, np.arange(50) % 7)
    for name in ("affinity", "balance"):
        loss = float(getattr(regularizers, name)(B))
        assert numbers[name] == pytest.approx(loss, rel=1e-5)


@pytest.mark.parametrize(
    "B, labels, message",
    [
        ([1.0, 2.0], [0, 0], r"shape \(2,\)"),
        ([[1.0, np.nan]], [0], "largest nan"),
        ([[1.0, -0.5]], [0], r"max\(0, Z\).*-0.5"),
        (np.eye(2), [0, 3], "from 0 to 1.*3"),
    ],
)
def test_bad_input(B, labels, message):
    with pytest.raises(ValueError, match=message):
        graph_numbers(B, labels)
