"""The numbers of the graphs against hand-made answers and plain definitions."""

import math
import sys
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse.csgraph import connected_components

from gar_keras.report.plots import graph_statistics
from gar_keras.report.plots.graph_statistics import graph_numbers

# Six examples, three classes: 2, 2 and 2.
LABELS = np.array([0, 0, 1, 1, 2, 2])

# Half of the entries 0, as after rectification; else over eleven decades.
matrices = st.tuples(st.integers(1, 12), st.integers(2, 5)).flatmap(
    lambda shape: arrays(
        np.float64,
        shape,
        elements=st.one_of(st.just(0.0), st.floats(1e-6, 1e5)),
    )
)


def measures(B, labels):
    """All that has no whole number for a value."""
    return {
        "strongest_share": graph_statistics.strongest_share(B),
        "degree_deviation": graph_statistics.degree_deviation(B),
        "within_class_share": graph_statistics.within_class_share(B, labels),
        "identity_distance": graph_statistics.identity_distance(B),
        "affinity": graph_statistics.affinity(B),
        "balance": graph_statistics.balance(B),
    }


class TestKnownAnswers:
    def test_optimum_of_the_paper(self):
        numbers = graph_numbers(2.5 * np.eye(3)[LABELS], LABELS)
        assert asdict(numbers) == {
            "examples": 6,
            "outputs": 3,
            "isolated": 0,
            "strongest_share": 1.0,
            "degree_deviation": 0.0,
            "class_deviation": 0.0,
            "within_class_share": 1.0,
            "threshold": graph_statistics.THRESHOLD,
            "components": 3,
            "largest_component": 1 / 3,
            "identity_distance": 0.0,
            "affinity": 0.0,
            "balance": 1.0,
        }

    def test_all_edges_alike(self):
        # M is 1 everywhere: 3 * 2 of its 6 * 5 entries lie within classes.
        # N is 1 everywhere, up to scale.
        numbers = graph_numbers(np.ones((6, 3)), LABELS)
        assert numbers.strongest_share == pytest.approx(1 / 3)
        assert numbers.degree_deviation == pytest.approx(0)
        assert numbers.within_class_share == pytest.approx(6 / 30)
        assert (numbers.components, numbers.largest_component) == (1, 1.0)
        assert numbers.identity_distance == pytest.approx(math.sqrt(2))
        assert numbers.affinity == pytest.approx(1)
        assert numbers.balance == pytest.approx(1)

    def test_all_on_one_output(self):
        B = np.zeros((6, 3))
        B[:, 1] = [1, 2, 3, 4, 5, 6]
        numbers = graph_numbers(B, LABELS)
        assert numbers.strongest_share == 1
        assert numbers.degree_deviation == pytest.approx(math.sqrt(2))
        # 2 * (1*2 + 3*4 + 5*6) of 21² - (1 + 4 + 9 + 16 + 25 + 36)
        assert numbers.within_class_share == pytest.approx(88 / 350)
        assert numbers.components == 1
        assert numbers.identity_distance == pytest.approx(math.sqrt(2))
        assert (numbers.affinity, numbers.balance) == (0, 0)

    def test_no_edges(self):
        numbers = graph_numbers(np.zeros((6, 3), "float32"), LABELS)
        assert (numbers.isolated, numbers.components) == (6, 6)
        assert numbers.largest_component == 1 / 6
        assert numbers.strongest_share == 0
        assert numbers.within_class_share == 0
        assert numbers.degree_deviation == 1
        assert numbers.identity_distance == 1
        assert (numbers.affinity, numbers.balance) == (0, 0)

    def test_some_without_edges(self):
        B = np.eye(3)[LABELS]
        B[[0, 3]] = 0
        numbers = graph_numbers(B, LABELS)
        assert (numbers.isolated, numbers.components) == (2, 5)
        assert numbers.strongest_share == pytest.approx(4 / 6)
        # Degrees 1, 1, 2 of 2 each.
        assert numbers.degree_deviation == pytest.approx(math.sqrt(0.5 / 3))

    def test_perfect_classifier_of_uneven_classes(self):
        labels = [0, 0, 0, 1]
        numbers = graph_numbers(np.eye(2)[labels], labels)
        assert numbers.degree_deviation == numbers.class_deviation == 0.5

    def test_within_class_share_of_edges_that_cancel(self):
        # The only two edges, 1e-12 next to self-loops of 1: one in the class.
        B = np.array([[1, 0, 0], [1e-12, 1, 0], [0, 1e-12, 1]])
        assert graph_statistics.within_class_share(
            B, [0, 0, 1]
        ) == pytest.approx(0.5)

    def test_lone_example(self):
        numbers = graph_numbers([[1.0, 0.0]], [0])
        assert (numbers.components, numbers.within_class_share) == (1, 0)


class TestComponents:
    def test_threshold_is_inclusive_and_counts_angles(self):
        B = [[1.0, 0.0], [4.0, 3.0]]  # cosine 0.8, whatever the lengths
        assert graph_statistics.components(B, 0.8)[0] == 1
        assert graph_statistics.components(B, 0.81)[0] == 2

    def test_tied_example_joins_below_half_a_right_angle_only(self):
        B = [[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]
        assert graph_statistics.components(B, 0.7)[0] == 1
        assert graph_statistics.components(B)[0] == 3

    def test_chain_across_blocks(self, monkeypatch):
        # Each neighbour is 10 degrees on: one chain, whatever the blocks.
        angles = np.radians(np.arange(0, 91, 10))
        B = np.stack([np.cos(angles), np.sin(angles)], axis=1).clip(0)
        B = np.random.default_rng(0).permutation(B)
        monkeypatch.setattr(graph_statistics, "_BLOCK", 3)
        assert graph_statistics.components(B, 0.98)[0] == 1
        assert graph_statistics.components(B, 0.99)[0] == 10

    @settings(max_examples=60, deadline=None)
    @given(B=matrices, threshold=st.sampled_from([0.313, 0.771, 0.953]))
    def test_same_as_of_the_whole_graph(self, B, threshold):
        U = graph_statistics.unit_rows(B)
        count, member = connected_components(U @ U.T >= threshold)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(graph_statistics, "_BLOCK", 4)
            ours, our_member = graph_statistics.components(B, threshold)
        assert ours == count
        # The same partition: one pair of names for each component.
        assert len(set(zip(member, our_member, strict=True))) == count
        assert set(our_member) == set(range(count))

    @pytest.mark.parametrize("threshold", [0, 1, -0.5, math.nan, "0.5", None])
    def test_bad_threshold(self, threshold):
        with pytest.raises(
            ValueError, match="threshold must be a finite number"
        ):
            graph_statistics.components(np.eye(2), threshold)

    def test_without_scipy(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "scipy.sparse", None)
        with pytest.raises(ImportError, match=r"gar_keras\[experiments\]"):
            graph_statistics.components(np.eye(2))


class TestProperties:
    @settings(max_examples=80, deadline=None)
    @given(B=matrices)
    def test_ranges(self, B):
        m, n = B.shape
        values = measures(B, np.arange(m) % 3)
        assert all(math.isfinite(value) for value in values.values())
        near_1 = 1 + 1e-12
        assert 0 <= values["strongest_share"] <= near_1
        assert 0 <= values["degree_deviation"] <= math.sqrt(n - 1) * near_1
        assert 0 <= values["within_class_share"] <= 1
        assert 0 <= values["identity_distance"] <= math.sqrt(n - 1) * near_1
        assert 0 <= values["affinity"] <= near_1
        assert 0 <= values["balance"] <= near_1

    @settings(max_examples=40, deadline=None)
    @given(B=matrices, scale=st.sampled_from([1e-200, 1e-3, 7.0, 1e200]))
    def test_scale_of_B_does_not_matter(self, B, scale):
        labels = np.arange(len(B)) % 3
        expected = pytest.approx(measures(B, labels), rel=1e-9, abs=1e-12)
        assert measures(scale * B, labels) == expected

    @settings(max_examples=40, deadline=None)
    @given(B=matrices, seed=st.integers(0, 99))
    def test_order_does_not_matter(self, B, seed):
        rng = np.random.default_rng(seed)
        labels = np.arange(len(B)) % 3
        rows = rng.permutation(len(B))
        columns = rng.permutation(B.shape[1])
        expected = pytest.approx(measures(B, labels), rel=1e-9, abs=1e-12)
        shuffled = B[rows][:, columns]
        assert measures(shuffled, labels[rows]) == expected

    @settings(max_examples=60, deadline=None)
    @given(B=matrices)
    def test_within_class_share_by_definition(self, B):
        labels = np.arange(len(B)) % 3
        M = B @ B.T
        np.fill_diagonal(M, 0)
        within = M[labels[:, None] == labels].sum()
        expected = within / M.sum() if M.any() else 0
        received = graph_statistics.within_class_share(B, labels)
        # Sums less diagonals: a large row leaves few digits to the others.
        assert received == pytest.approx(expected, rel=1e-6, abs=1e-12)

    @settings(max_examples=40, deadline=None)
    @given(B=matrices)
    def test_identity_distance_by_definition(self, B):
        N = B.T @ B
        n = len(N)
        if not N.any():
            return
        distance = np.linalg.norm(N / (np.trace(N) / n) - np.eye(n))
        expected = distance / np.linalg.norm(np.eye(n))
        assert graph_statistics.identity_distance(B) == pytest.approx(expected)


def test_affinity_and_balance_are_those_of_the_loss():
    from gar_keras import regularizers

    rng = np.random.default_rng(0)
    B = np.maximum(rng.normal(size=(50, 7)), 0).astype("float32")
    for name in ("affinity", "balance"):
        loss = float(getattr(regularizers, name)(B))
        assert getattr(graph_statistics, name)(B) == pytest.approx(
            loss, rel=1e-5
        )


class TestBadInput:
    @pytest.mark.parametrize(
        "B, message",
        [
            (np.ones(3), r"shape=\(3,\)"),
            (np.ones((3, 1)), r"shape=\(3, 1\)"),
            (np.ones((0, 3)), r"shape=\(0, 3\)"),
            (np.ones((2, 2), complex), "dtype=complex128"),
            ([["1", "2"]], "dtype=<U1"),
            (np.array([[1.0, np.nan]]), "1 of its values are NaN"),
            (np.array([[np.inf, np.nan]]), "2 of its values are NaN"),
            (np.array([[1.0, -0.5]]), r"max\(0, Z\).*-0.5"),
        ],
    )
    def test_matrix(self, B, message):
        labels = np.zeros(len(B), int)
        with pytest.raises(ValueError, match=message):
            graph_numbers(B, labels)
        for name in measures(np.eye(2), [0, 1]):
            more = [labels] if name == "within_class_share" else []
            with pytest.raises(ValueError, match=message):
                getattr(graph_statistics, name)(B, *more)

    @pytest.mark.parametrize(
        "labels, message",
        [
            ([0, 1], "each of the 3 examples"),
            ([0.0, 1.0, 1.0], "dtype=float64"),
            ([0, 1, -1], "least label=-1"),
            ([0, 1, 3], r"0\.\.2.*largest label=3"),
        ],
    )
    def test_labels(self, labels, message):
        with pytest.raises(ValueError, match=message):
            graph_numbers(np.eye(3), labels)
