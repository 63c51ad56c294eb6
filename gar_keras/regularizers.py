"""The loss of GAR: affinity, balance and the Frobenius norm (section 3.3).

Nothing here forms an `m x m` matrix, and not even `N = BᵀB` is needed in full:
with `r = B·1` the row sums and `v = diag N` the column sums of `B²`,

    sum over all entries of N      = ‖r‖²
    sum of the diagonal of N       = sum(v)
    sum of off-diagonal V = vᵀv    = sum(v)² - ‖v‖²

so that one step costs `O(m·n)` operations and memory for `m` images and `n`
classes.
"""

import functools
import math
import numbers
import sys

import keras
from keras import ops

from gar_keras.checks import check_choice

FROBENIUS_OF = ("B", "Z")


def affinity(B):
    """How much examples share output nodes (paper, equation for Affinity).

    `affinity(B) = sum_{i≠j} N_ij / ((n - 1) * sum_i N_ii)` with `N = BᵀB`.
    It is 0 where every row of `B` has at most one entry that is not 0, and 1
    where all columns of `B` are the same. It is 0 for `B = 0`.

    Args:
        B: Rectified logits, `(m, n)`, not negative, `n` at least 2. Computed
            in float32, whatever the dtype or the dtype policy.

    Returns:
        A float32 scalar, from 0 to 1.

    Raises:
        ValueError: if `B` is not a matrix of at least two columns.

    Example:

    >>> B = np.array([[1., 1.], [0., 2.]])      # N = [[1, 1], [1, 5]]
    >>> round(float(affinity(B)), 6)            # 2 / (1 * 6)
    0.333333
    """
    B = _unit_scale(_matrix(B))
    n = B.shape[-1]
    r = ops.sum(B, axis=-1, keepdims=True)
    # Not ‖r‖² - sum(v): that would cancel where rows are nearly one-hot.
    off_diagonal_N = ops.sum(B * (r - B))
    trace_N = ops.sum(ops.square(B))
    return _ratio(off_diagonal_N, (n - 1) * trace_N)


def balance(B):
    """How evenly the output nodes are used (paper, equation for Balance).

    `balance(B) = sum_{i≠j} V_ij / ((n - 1) * sum_i V_ii)` with `V = vᵀv` and
    `v = diag(BᵀB)`. It is 1 where all entries of `v` are equal, and 0 where
    only one of them is not 0. It is 0 for `B = 0`.

    Args:
        B: Rectified logits, `(m, n)`, not negative, `n` at least 2. Computed
            in float32, whatever the dtype or the dtype policy.

    Returns:
        A float32 scalar, from 0 to 1.

    Raises:
        ValueError: if `B` is not a matrix of at least two columns.

    Example:

    >>> B = np.array([[1., 1.], [0., 2.]])      # v = [1, 5]
    >>> round(float(balance(B)), 6)             # 2 * 5 / (1 * (1 + 25))
    0.384615
    """
    B = _unit_scale(_matrix(B))
    n = B.shape[-1]
    v = ops.sum(ops.square(B), axis=0)
    # V does not change when v is scaled to sum to 1, and cannot overflow then.
    v = _ratio(v, ops.sum(v))
    rest = ops.sum(v) - v
    return _ratio(ops.sum(v * rest), (n - 1) * ops.sum(ops.square(v)))


def rectify(Z):
    """B of the paper: `B = max(0, Z)` in float32.

    Args:
        Z: Logits before any activation, `(m, n)`, of any float dtype.

    Returns:
        A float32 tensor `(m, n)`.

    Example:

    >>> [float(b) for b in rectify(np.array([[-1., 2.]]))[0]]
    [0.0, 2.0]
    """
    return ops.relu(_matrix(Z))


@keras.saving.register_keras_serializable(package="gar_keras")
class GraphActivityRegularizer(keras.regularizers.Regularizer):
    """Graph-based activity regularization of logits (paper, equation for U).

    Called on *unrectified* logits `Z` it returns, with `B = max(0, Z)`,

    `U(B) = affinity * α(B) + balance * (1 - β(B)) + frobenius * ‖B‖²_F`

    where `α` is `gar_keras.affinity` and `β` is `gar_keras.balance`. The value
    belongs to the batch as a whole: it is not divided by the batch size.

    As `Dense(n, activity_regularizer=GraphActivityRegularizer())` it adds the
    same loss as the layer `GraphActivityRegularization` behind the `Dense`.
    Keras 3.14 and later divide activity regularizers by the batch size; this
    one multiplies by it when, and only when, such a Keras calls it that way.

    Args:
        affinity: `c_α`, a float, finite and not negative. Defaults to `3.0`.
        balance: `c_β`, likewise. Defaults to `1.0`.
        frobenius: `c_F`, likewise. Defaults to `1e-6`.
        frobenius_of: `"B"` for `‖B‖²_F` as in the paper, `"Z"` for `‖Z‖²_F`
            over the unrectified logits, as in the authors' code.

    A term whose coefficient is 0 is not computed.

    Raises:
        ValueError: if a coefficient is negative, infinite, NaN or no number.

    Example:

    >>> regularizer = GraphActivityRegularizer(frobenius=0.0)
    >>> Z = np.array([[1., 1.], [-3., 2.]])
    >>> round(float(regularizer(Z)), 6)     # 3 * 2/6 + (1 - 10/26)
    1.615385
    >>> logits = keras.layers.Dense(10, activity_regularizer=regularizer)
    """

    def __init__(
        self, affinity=3.0, balance=1.0, frobenius=1e-6, frobenius_of="B"
    ):
        self.affinity = check_coefficient("affinity", affinity)
        self.balance = check_coefficient("balance", balance)
        self.frobenius = check_coefficient("frobenius", frobenius)
        check_choice("frobenius_of", frobenius_of, FROBENIUS_OF)
        self.frobenius_of = frobenius_of

    def __call__(self, x):
        loss = self.combine(self.terms(x), self.coefficients())
        if _is_activity_regularizer_call(self, sys._getframe(1)):
            loss = loss * ops.cast(ops.shape(x)[0], "float32")
        return loss

    def coefficients(self):
        """`c_α`, `c_β` and `c_F` by the name of their term."""
        return {
            "affinity": self.affinity,
            "balance": self.balance,
            "frobenius": self.frobenius,
        }

    def terms(self, x):
        """The terms whose coefficient is not 0, unweighted.

        Args:
            x: Unrectified logits `(m, n)`.

        Returns:
            A dict of float32 scalars: `"affinity"` is `α(B)`, `"balance"` is
            `β(B)`, `"frobenius"` is `‖B‖²_F` (or `‖Z‖²_F`).
        """
        Z = _matrix(x)
        B = ops.relu(Z)
        terms = {}
        if self.affinity:
            terms["affinity"] = affinity(B)
        if self.balance:
            terms["balance"] = balance(B)
        if self.frobenius:
            F = B if self.frobenius_of == "B" else Z
            terms["frobenius"] = ops.sum(ops.square(F))
        return terms

    @staticmethod
    def combine(terms, coefficients):
        """`U` from terms and coefficients, given by name."""
        loss = ops.zeros((), "float32")
        for name, term in terms.items():
            penalty = 1.0 - term if name == "balance" else term
            loss = loss + coefficients[name] * penalty
        return loss

    def get_config(self):
        return {**self.coefficients(), "frobenius_of": self.frobenius_of}


def check_coefficient(name, value):
    """Returns `value` as a float, or raises if it is no valid coefficient."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or value < 0:
        raise ValueError(
            f"{name} must be a finite number of at least 0. "
            f"Received: {name}={value!r}"
        )
    return float(value)


def _matrix(x):
    """`x` as a float32 `(m, n)` tensor with n of at least 2."""
    x = ops.convert_to_tensor(x)
    if len(x.shape) != 2 or x.shape[-1] is None or x.shape[-1] < 2:
        raise ValueError(
            "GAR needs a matrix (batch, n) of logits with n of at least 2 "
            "classes, one row for each example. Reshape or flatten other "
            f"outputs to that form. Received: shape={tuple(x.shape)}"
        )
    return ops.cast(x, "float32")


def _unit_scale(B):
    """`B` divided by its largest entry, so that squares stay in range.

    Affinity and balance do not change with the scale of B, so the divisor
    takes no part in the gradient.
    """
    largest = ops.stop_gradient(ops.max(B, initial=0.0))
    return B / ops.where(largest > 0, largest, ops.ones_like(largest))


def _ratio(numerator, denominator):
    """The quotient, and 0 with gradient 0 where the denominator is 0."""
    positive = ops.not_equal(denominator, 0)
    safe = ops.where(positive, denominator, ops.ones_like(denominator))
    return ops.where(positive, numerator / safe, ops.zeros_like(numerator))


def _is_activity_regularizer_call(regularizer, caller):
    """Whether Keras calls this one for a layer and divides by the batch size.

    Keras tells a regularizer neither who calls it nor for what; the frame of
    the caller is the only trace of it.
    """
    if caller.f_code.co_name != "__call__":
        return False
    layer = caller.f_locals.get("self")
    return (
        isinstance(layer, keras.Layer)
        and getattr(layer, "activity_regularizer", None) is regularizer
        and keras_divides_by_batch_size()
    )


@functools.cache
def keras_divides_by_batch_size():
    """Whether this Keras divides activity regularizers by the batch size.

    Returns:
        `True` for Keras 3.14 and later, `False` before.
    """
    major, minor = (int(part) for part in keras.__version__.split(".")[:2])
    return (major, minor) >= (3, 14)
