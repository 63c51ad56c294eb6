"""The balance term with imbalanced classes, against v_i / p_i."""

import itertools
import math

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

from gar_keras import (
    GraphActivityRegularization,
    GraphActivityRegularizer,
    balance,
    class_prior_of,
    expected_balance,
)

PRIOR = (0.5, 0.25, 0.25)

quick = settings(max_examples=40)


def value(function, *arguments):
    return float(ops.convert_to_numpy(function(*arguments)))


priors = st.lists(st.integers(1, 1000), min_size=2, max_size=8).map(
    lambda weights: np.array(weights) / np.sum(weights)
)


@quick
@given(prior=priors, exponent=st.integers(-30, 30), seed=st.integers(0, 99))
def test_any_prior_and_scale(prior, exponent, seed):
    B = np.maximum(oracle.logits(7, len(prior), seed), 0)
    received = value(balance, B, prior)
    assert received == pytest.approx(
        oracle.balance(B, class_prior=prior), rel=1e-4, abs=1e-6
    )
    # A power of two scales without rounding.
    assert value(balance, B * 2.0**exponent, prior) == received


@quick
@given(n=st.integers(2, 12), m=st.integers(1, 9), seed=st.integers(0, 99))
def test_uniform_prior_is_the_papers_term_to_the_last_bit(n, m, seed):
    B = np.maximum(oracle.logits(m, n, seed), 0)
    # Not exactly of sum 1: 10 * 0.1 is not 1.
    assert value(balance, B, np.full(n, 1 / n)) == value(balance, B)


@pytest.mark.parametrize("least", [1e-30, 1e-12])
def test_rare_class(least):
    prior = np.array([1 - least, least])
    B = np.diag(np.sqrt(prior)).astype("float32")
    assert value(balance, B, prior) == pytest.approx(1, abs=1e-5)
    gradient = oracle.gradient(
        lambda B: balance(B, prior), np.ones((3, 2), "float32")
    )
    assert np.isfinite(gradient).all()


def test_nothing_active():
    B = np.zeros((4, 3), "float32")
    assert value(balance, B, PRIOR) == 0
    regularizer = GraphActivityRegularizer(class_prior=PRIOR)
    gradient = oracle.gradient(regularizer.loss, B)
    np.testing.assert_array_equal(gradient, 0)


BAD = {
    "sum": ([0.5, 0.6], r"sum to 1.*of sum 1\.1. Divide"),
    "below zero": ([1.5, -0.5], "positive numbers.*of sum 1"),
    "zero": ([0.0, 1.0], "leave out a class"),
    "too small": ([1e-31, 1 - 1e-31], "none below 1e-30"),
    "nan": ([math.nan, 1.0], "of sum nan"),
    "one": ([1.0], "n of at least 2"),
    "matrix": ([[0.5, 0.5]], "n of at least 2"),
    "text": ("uniform", "an array of n numbers"),
    "complex": (np.array([0.5, 0.5 + 1j]), "an array of n numbers"),
    "masked": (np.ma.masked_equal([0.5, 0.5], 0.5), "no masked values"),
    "lengths": ([[1], [1, 2]], "an array of n numbers"),
    "long": (np.ones((9, 9)), "of type ndarray$"),
}


@pytest.mark.parametrize("prior, message", BAD.values(), ids=BAD)
def test_what_is_no_prior_is_refused(prior, message):
    message = f"^class_prior must[^\n]*{message}"
    for call in (
        lambda: balance(np.ones((2, 2)), prior),
        lambda: GraphActivityRegularizer(class_prior=prior),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_prior_of_another_number_of_classes_is_refused():
    message = "Received: 3 shares for 4 outputs"
    Z = np.ones((2, 4), "float32")
    for call in (
        lambda: balance(Z, PRIOR),
        # Even where the balance plays no part.
        lambda: GraphActivityRegularizer(balance=0, class_prior=PRIOR).loss(Z),
        lambda: GraphActivityRegularization(class_prior=PRIOR)(Z),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def mean_terms(m, p):
    """Means over all m labels of the numerator and denominator of balance."""
    n, off, trace = len(p), 0.0, 0.0
    for y in itertools.product(range(n), repeat=m):
        u = np.bincount(y, minlength=n) / p
        chance = np.prod(p[list(y)])
        off += chance * (u.sum() ** 2 - (u**2).sum())
        trace += chance * (n - 1) * (u**2).sum()
    return off, trace


@pytest.mark.parametrize(
    "m, p", [(1, [0.5, 0.5]), (2, [0.5, 0.5]), (4, [1 / 3] * 3),
             (5, [0.2, 0.8]), (4, [0.7, 0.2, 0.1])],
)  # fmt: skip
def test_expected_balance_is_the_ratio_of_the_means(m, p):
    p = np.array(p)
    off, trace = mean_terms(m, p)
    assert expected_balance(m, len(p), p) == pytest.approx(off / trace)
    if np.ptp(p) == 0:
        assert expected_balance(m, len(p)) == pytest.approx(off / trace)


def test_shares_by_hand():
    assert class_prior_of([2, 0, 0, 1], 3) == PRIOR
    assert class_prior_of(np.array([[2], [0], [0], [1]]), 3) == PRIOR
    # (0 + 0.5) / (2 + 3 * 0.5) and (2 + 0.5) / 3.5.
    assert class_prior_of([1, 1], 3, smoothing=0.5) == pytest.approx(
        (1 / 7, 5 / 7, 1 / 7)
    )


@quick
@given(
    labels=st.lists(st.integers(0, 4), max_size=30),
    smoothing=st.floats(0.01, 100),
)
def test_shares_are_a_prior(labels, smoothing):
    labels = np.array(labels, "int64")
    prior = class_prior_of(labels, 5, smoothing)
    assert GraphActivityRegularizer(class_prior=prior).class_prior == prior


@pytest.mark.parametrize(
    "arguments, message",
    [
        (([0, 2, 2], 4), "no label of class 1, 3.*smoothing=1"),
        ((np.ma.masked_equal([0, 0, 1], 0), 2), "labels must have no masked"),
        (([0.0, 1.0], 2), "integer class indices"),
        (([0, 1], 2, -1), "smoothing must be"),
        (([0, 1, 3], 3), "labels up to 3. Set it to 4"),
        (([0, 1, -1], 2), "-1 to 1. Leave out examples without a label"),
    ],
)
def test_bad_labels_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        class_prior_of(*arguments)
