"""Affinity, balance and U against the paper's equations."""

import math
from functools import partial

import keras
import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from keras import ops
from tracing import sizes_of_tensors

from gar_keras import GraphActivityRegularizer, affinity, balance
from gar_keras.engine import autodiff
from gar_keras.regularizers import KERAS_DIVIDES_BY_BATCH_SIZE

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

SHAPES = [(1, 2), (1, 5), (7, 3), (2, 40), (128, 10)]
EVERY_TERM = dict(affinity=1.5, balance=0.5, frobenius=0.25)


def value(function, x):
    """Of a function, or of the loss of a regularizer."""
    function = getattr(function, "loss", function)
    return float(ops.convert_to_numpy(function(x)))


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
def test_gradient_is_finite(B, alpha, beta):
    for Z in (B, -B, B - (B == 0)):
        gradient = oracle.gradient(GraphActivityRegularizer().loss, Z)
        assert np.isfinite(gradient).all()


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


@formula
@pytest.mark.parametrize("shape", SHAPES)
def test_loss_is_that_of_the_formula(shape, formula):
    Z = oracle.logits(*shape)
    options = {**EVERY_TERM, **formula(shape[1])}
    assert value(GraphActivityRegularizer(**options), Z) == pytest.approx(
        oracle.loss(Z, **options), rel=1e-5
    )


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
    "three axes": (np.ones((2, 3, 4)), SHAPE + r"\(2, 3, 4\)"),
    "complex": (FULL + 1j, NOT_REAL),
    "complex tensor": (
        ops.convert_to_tensor((FULL + 1j).astype("complex64")), NOT_REAL,
    ),
    "text": (FULL.astype(str), NOT_REAL),
    "objects": (FULL.astype(object), NOT_REAL),
    "dates": (FULL.astype("datetime64[s]"), NOT_REAL),
    "lengths": ([[1.0, 2.0], [3.0]], NOT_REAL),
    "None": (None, NOT_REAL),
    "masked": (np.ma.masked_equal(FULL, 3.0), "1 masked of 4"),
}  # fmt: skip


@pytest.mark.parametrize("x, message", REFUSED.values(), ids=REFUSED)
@each_function
def test_anything_but_a_matrix_of_real_numbers_is_refused(function, x, message):
    with pytest.raises(ValueError, match=message):
        function(x)


@each_function
def test_an_array_in_which_nothing_is_masked_is_taken(function):
    held = np.ma.masked_equal(FULL, 7.0)
    np.testing.assert_array_equal(function(held), function(FULL))


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
@pytest.mark.parametrize("shape", [(1, 2), (6, 4), (3, 12)])
@pytest.mark.parametrize(
    "terms",
    [{"affinity": 1.5}, {"balance": 0.5}, {"frobenius": 0.25}, EVERY_TERM],
    ids="+".join,
)
def test_gradient_is_that_of_the_formula(terms, shape, formula):
    options = {**dict.fromkeys(EVERY_TERM, 0), **terms, **formula(shape[1])}
    Z = oracle.logits(*shape)
    expected = oracle.differences(lambda z: oracle.loss(z, **options), Z)
    received = oracle.gradient(GraphActivityRegularizer(**options).loss, Z)
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


@pytest.mark.slow
@pytest.mark.parametrize("m, n", [(64, 32), (64, 8), (8, 64)])
def test_nothing_is_larger_than_the_logits(m, n):
    Z = ops.convert_to_tensor(oracle.logits(m, n))
    loss = GraphActivityRegularizer(**EVERY_TERM).loss
    sizes = sizes_of_tensors(lambda x: autodiff.gradient(loss, x), Z)
    assert m * n in sizes
    assert None not in sizes
    assert max(sizes) <= m * n


def test_whether_keras_divides_is_known():
    constant = keras.layers.Dense(
        2, activity_regularizer=lambda x: 1.0 + 0 * x[0, 0]
    )
    constant(np.ones((8, 2)))
    measured = float(constant.losses[0])
    assert measured == pytest.approx(
        1 / 8 if KERAS_DIVIDES_BY_BATCH_SIZE else 1
    )
