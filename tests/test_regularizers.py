"""Affinity, balance and U against the paper's equations, and class priors."""

import itertools
import math
from functools import partial

import keras
import numpy as np
import oracle
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from keras import ops

from gar_keras import (
    GraphActivityRegularization,
    GraphActivityRegularizer,
    affinity,
    balance,
    class_prior_of,
    expected_balance,
)

SHARES = {"balance_of": "row shares"}
# Each term, and the same by its equation.
TERMS = {
    "affinity": (affinity, oracle.affinity),
    "balance": (balance, oracle.balance),
    "row shares": (
        partial(balance, **SHARES), partial(oracle.balance, **SHARES),
    ),
}  # fmt: skip
term = pytest.mark.parametrize(("term", "equation"), TERMS.values(), ids=TERMS)

EVERY_TERM = dict(affinity=1.5, balance=0.5, frobenius=0.25)


def value(function, *arguments):
    """Of a function, or of the loss of a regularizer."""
    function = getattr(function, "loss", function)
    return float(ops.convert_to_numpy(function(*arguments)))


def zeros_except(shape, entries):
    B = np.zeros(shape, "float32")
    for place, entry in entries.items():
        B[place] = entry
    return B


def matrices():
    """B whose entries, if not 0, are within 2^13 of each other."""
    entries = st.just(0.0) | st.floats(2.0**-6, 2.0**7, width=32)
    shapes = st.tuples(st.integers(1, 6), st.integers(2, 6))
    return hnp.arrays("float32", shapes, elements=entries)


quick = settings(max_examples=40)


KNOWN = {
    # N = [[10, 14], [14, 20]] and v = [10, 20].
    "two classes": (
        np.array([[1.0, 2.0], [3.0, 4.0]], "float32"), 28 / 30, 400 / 500,
    ),
    # N = [[1, 1, 0], [1, 2, 2], [0, 2, 4]] and v = [1, 2, 4].
    "three classes": (
        np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 2.0]], "float32"), 6 / 14,
        28 / 42,
    ),
    "one-hot": (np.tile(np.eye(3, dtype="float32"), (2, 1)), 0.0, 1.0),
    "nothing active": (np.zeros((4, 3), "float32"), 0.0, 0.0),
    "one row": (np.array([[1.0, 2.0]], "float32"), 4 / 5, 8 / 17),
    "one class active": (
        zeros_except((4, 3), {(0, 1): 2.0, (3, 1): 1.0}), 0.0, 0.0,
    ),
    "one entry active": (zeros_except((4, 3), {(2, 0): 5.0}), 0.0, 0.0),
    "one row active": (
        zeros_except((3, 2), {(1, 0): 1.0, (1, 1): 1.0}), 1.0, 1.0,
    ),
}  # fmt: skip
known = pytest.mark.parametrize("B, alpha, beta", KNOWN.values(), ids=KNOWN)


@known
def test_terms_by_hand(B, alpha, beta):
    assert value(affinity, B) == pytest.approx(alpha, rel=1e-6, abs=1e-7)
    assert value(balance, B) == pytest.approx(beta, rel=1e-6, abs=1e-7)


@known
def test_loss_and_gradient_are_finite(B, alpha, beta):
    for options in ({}, FORMULAS["prior"](B.shape[1])):
        loss = GraphActivityRegularizer(**options).loss
        for Z in (B, -B, B - (B == 0)):
            assert math.isfinite(value(loss, Z))
            assert np.isfinite(oracle.gradient(loss, Z)).all()


def test_loss_by_hand():
    # B = [[1, 0], [2, 2]], N = [[5, 4], [4, 4]], v = [5, 4].
    loss = GraphActivityRegularizer(affinity=2.0, balance=0.5, frobenius=0.1)
    expected = 2 * 8 / 9 + 0.5 * (1 - 40 / 41) + 0.1 * 9
    Z = np.array([[1.0, -7.0], [2.0, 2.0]])
    assert value(loss, Z) == pytest.approx(expected, rel=1e-6)


FORMULAS = {
    "the paper's": lambda n: {},
    "frobenius of Z": lambda n: {"frobenius_of": "Z"},
    "column sums": lambda n: {"balance_of": "column sums"},
    "row shares": lambda n: {"balance_of": "row shares"},
    "prior": lambda n: {
        "class_prior": np.arange(1, n + 1) / np.arange(1, n + 1).sum()
    },
}
formula = pytest.mark.parametrize("formula", FORMULAS.values(), ids=FORMULAS)


@term
@quick
@given(B=matrices(), exponent=st.integers(-30, 30))
def test_term_is_the_papers_at_any_scale(term, equation, B, exponent):
    assert value(term, B) == pytest.approx(equation(B), rel=1e-4, abs=1e-6)
    # A power of two scales without rounding.
    assert value(term, B * 2.0**exponent) == value(term, B)


def test_nearly_one_hot_rows_keep_their_small_affinity():
    # The sum of N less its trace would be off by a hundredth here.
    B = np.random.default_rng(0).uniform(0, 1e-6, (128, 10))
    B[np.arange(128), np.arange(128) % 10] = np.linspace(0.5, 1, 128)
    B = B.astype("float32")
    expected = oracle.affinity(B)
    assert value(affinity, B) == pytest.approx(expected, rel=3e-3)


@term
@pytest.mark.parametrize("scale", [1e-30, 1e-25, 1e25, 1e30])
def test_huge_and_tiny_activations(term, equation, scale):
    B = np.maximum(oracle.logits(16, 10), 0)
    scaled = (B * scale).astype("float32")
    assert value(term, scaled) == pytest.approx(equation(B), rel=1e-4)
    # α and β do not change with scale: their gradient shrinks with it.
    np.testing.assert_allclose(
        oracle.gradient(term, scaled).astype("float64") * scale,
        oracle.differences(equation, B),
        rtol=2e-3,
        atol=1e-5,
    )


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("name", ["affinity", "balance", "frobenius"])
def test_nan_and_inf_give_no_number(name, bad):
    coefficients = {**dict.fromkeys(EVERY_TERM, 0), name: 1.0}
    Z = oracle.logits(4, 3)
    Z[3, 2] = bad
    loss = value(GraphActivityRegularizer(**coefficients), Z)
    assert not math.isfinite(loss)


each_function = pytest.mark.parametrize(
    "function", [affinity, balance, GraphActivityRegularizer().loss]
)


@pytest.mark.parametrize("term", [affinity, balance])
def test_term_of_unrectified_logits_is_refused(term):
    pandas = pytest.importorskip("pandas")
    for form in (np.array, pandas.DataFrame):
        with pytest.raises(ValueError, match=r"least entry=-3.*relu"):
            term(form([[1.0, -3.0], [2.0, 1.0]]))


FULL = np.array([[1.0, 2.0], [3.0, 4.0]])
SHAPE = r"n of at least 2.*Received: shape="
NOT_REAL = "must be an array of real numbers"
REFUSED = {
    "vector": (np.ones(3), SHAPE + r"\(3,\)"),
    "one column": (np.ones((4, 1)), SHAPE + r"\(4, 1\)"),
    "complex": (FULL + 1j, NOT_REAL),
    "complex tensor": (
        ops.convert_to_tensor((FULL + 1j).astype("complex64")), NOT_REAL,
    ),
    "text": (FULL.astype(str), NOT_REAL),
    "lengths": ([[1.0, 2.0], [3.0]], NOT_REAL),
    "None": (None, NOT_REAL),
    "masked": (np.ma.masked_equal(FULL, 3.0), "1 masked of 4"),
}  # fmt: skip


@pytest.mark.parametrize("x, message", REFUSED.values(), ids=REFUSED)
@each_function
def test_anything_but_a_matrix_of_real_numbers_is_refused(function, x, message):
    with pytest.raises(ValueError, match=message):
        function(x)


@pytest.mark.parametrize("bad", [-1e-9, math.inf, math.nan, True, "3", 1e39])
@pytest.mark.parametrize("name", [*EVERY_TERM, "frobenius_of", "balance_of"])
def test_setting_is_refused(name, bad):
    message = "one of" if name.endswith("_of") else "a finite number"
    with pytest.raises(ValueError, match=f"{name} must be {message}"):
        GraphActivityRegularizer(**{name: bad})


@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float64", "int32", "uint8"]
)
def test_computed_in_float32_whatever_the_input(dtype):
    exact = np.round(oracle.logits(64, 10, scale=9))
    if dtype == "uint8":
        exact = np.abs(exact)
    # NumPy has no bfloat16, JAX by default no float64.
    cast = ops.cast if dtype == "bfloat16" else np.asarray
    Z = cast(exact, dtype)
    loss = GraphActivityRegularizer(frobenius=0.1).loss(Z)
    assert keras.backend.standardize_dtype(loss.dtype) == "float32"
    assert float(loss) == pytest.approx(
        oracle.loss(exact, frobenius=0.1), rel=1e-5
    )


def test_frobenius_with_coefficient_0_is_not_computed():
    # 0 times this overflow would be NaN.
    Z = oracle.logits(7, 3, scale=1e25)
    assert math.isfinite(value(GraphActivityRegularizer(frobenius=0), Z))
    assert not math.isfinite(value(GraphActivityRegularizer(), Z))


@formula
@pytest.mark.parametrize("shape", [(1, 2), (6, 4), (3, 12), (32, 10)])
@pytest.mark.parametrize(
    "terms",
    [{"affinity": 1.5}, {"balance": 0.5}, {"frobenius": 0.25}, EVERY_TERM],
    ids="+".join,
)
def test_loss_and_gradient_are_those_of_the_formula(terms, shape, formula):
    options = {**dict.fromkeys(EVERY_TERM, 0), **terms, **formula(shape[1])}
    Z = oracle.logits(*shape)
    regularizer = GraphActivityRegularizer(**options)
    expected = oracle.loss(Z, **options)
    assert value(regularizer, Z) == pytest.approx(expected, rel=1e-5)
    expected = oracle.differences(lambda z: oracle.loss(z, **options), Z)
    received = oracle.gradient(regularizer.loss, Z)
    np.testing.assert_allclose(
        received, expected, rtol=1e-4, atol=1e-6 * (1 + np.abs(expected).max())
    )


@pytest.mark.parametrize("where", [(0, 0), 0, (..., 0), ...], ids=str)
def test_entry_of_minus_infinity_counts_as_0(where):
    Z, rectified = oracle.logits(6, 4), oracle.logits(6, 4)
    Z[where], rectified[where] = -np.inf, -1.0
    regularizer = GraphActivityRegularizer(**EVERY_TERM)
    assert value(regularizer, Z) == value(regularizer, rectified)
    np.testing.assert_array_equal(
        oracle.gradient(regularizer.loss, Z),
        oracle.gradient(regularizer.loss, rectified),
    )


@pytest.mark.parametrize("shape", [(2, 300_000), (300_000, 2)], ids=str)
def test_no_matrix_is_larger_than_the_logits(shape):
    # BᵀB of so many classes, or BBᵀ of so many examples, would take 360 GB.
    Z = np.ones(shape, "float32")
    loss = GraphActivityRegularizer(**EVERY_TERM).loss
    assert np.isfinite(oracle.gradient(loss, Z)).all()


# Class priors


PRIOR = (0.5, 0.25, 0.25)

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


BAD = {
    "sum": ([0.5, 0.6], r"sum to 1.*of sum 1\.1. Divide"),
    "too small": (
        [1e-31, 1 - 1e-31],
        "positive numbers, none below 1e-30.*leave out",
    ),
    "nan": ([math.nan, 1.0], "of sum nan"),
    "one": ([1.0], "n of at least 2"),
    "matrix": ([[0.5, 0.5]], "n of at least 2"),
    "text": ("uniform", "an array of n numbers"),
    "complex": (np.array([0.5, 0.5 + 1j]), "an array of n numbers"),
    "masked": (np.ma.masked_equal([0.5, 0.5], 0.5), "no masked values"),
    "lengths": ([[1], [1, 2]], "an array of n numbers"),
    "long": (np.ones((9, 9)), "of type ndarray$"),
    "by share": (
        pd.Series(["b", "b", "a", "b"]).value_counts(normalize=True),
        r"in the order of the classes.*shares of \['b', 'a'\]",
    ),
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
