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
import inspect
import numbers
import sys

import keras
from keras import ops
import numpy as np

from gar_keras import backend
from gar_keras.checks import check_choice

FROBENIUS_OF = ("B", "Z")

# The largest coefficient that a float32 weight can hold.
LARGEST_COEFFICIENT = float(np.finfo("float32").max)


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
        ValueError: if `B` is not a matrix of at least two columns, or a NumPy
            array with a negative entry (tensors are not looked into).

    Example:

    >>> B = np.array([[1., 1.], [0., 2.]])      # N = [[1, 1], [1, 5]]
    >>> round(float(affinity(B)), 6)            # 2 / (1 * 6)
    0.333333
    """
    B = _unit_scale(_matrix(_not_negative(B)))
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
        ValueError: if `B` is not a matrix of at least two columns, or a NumPy
            array with a negative entry (tensors are not looked into).

    Example:

    >>> B = np.array([[1., 1.], [0., 2.]])      # v = [1, 5]
    >>> round(float(balance(B)), 6)             # 2 * 5 / (1 * (1 + 25))
    0.384615
    """
    B = _unit_scale(_matrix(_not_negative(B)))
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
    return _positive_part(_matrix(Z))


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
    one multiplies by it when, and only when, such a Keras waits for the value
    of a layer's activity regularizer: this one, or one that calls it.

    Args:
        affinity: `c_α`, a float, finite and not negative. Defaults to `3.0`.
        balance: `c_β`, likewise. Defaults to `1.0`.
        frobenius: `c_F`, likewise. Defaults to `1e-6`.
        frobenius_of: `"B"` for `‖B‖²_F` as in the paper, `"Z"` for `‖Z‖²_F`
            over the unrectified logits, as in the authors' code.

    A term whose coefficient is 0 is not computed.

    Raises:
        ValueError: if a coefficient is negative, infinite in float32, NaN or
            no number; when called, if the input is not `(m, n)` with `n` of
            at least 2, or under a `tf.distribute` strategy of several
            replicas.

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
        if keras_divides_by_batch_size() and _keras_waits_for(sys._getframe()):
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
        backend.check_one_replica()
        Z = _matrix(x)
        B = _positive_part(Z)
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
    if not is_number or not 0 <= value <= LARGEST_COEFFICIENT:
        raise ValueError(
            f"{name} must be a number of at least 0, finite in float32. "
            f"Received: {name}={value!r}"
        )
    return float(value)


def check_logits_shape(shape):
    """Raises unless the shape is `(m, n)` with n of at least 2."""
    if len(shape) != 2 or shape[-1] is None or shape[-1] < 2:
        raise ValueError(
            "GAR needs a matrix (batch, n) of logits with n of at least 2 "
            "classes, one row for each example. Reshape or flatten other "
            f"outputs to that form. Received: shape={tuple(shape)}"
        )


def _matrix(x):
    """`x` as a float32 `(m, n)` tensor with n of at least 2."""
    x = ops.convert_to_tensor(x)
    check_logits_shape(x.shape)
    return ops.cast(x, "float32")


def _positive_part(Z):
    """`max(0, Z)`, and NaN where Z is NaN.

    TensorFlow joins `relu` to the layer in front of it, in one kernel that
    turns NaN into 0: a model that has come to NaN would train on in silence.
    """
    return ops.where(Z <= 0, ops.zeros_like(Z), Z)


def _not_negative(B):
    if isinstance(B, np.ndarray | list | tuple):
        least = np.min(B, initial=0)
        if least < 0:
            raise ValueError(
                "Affinity and balance are of rectified logits, none of them "
                f"negative. Received: least entry={least}. Pass logits "
                "through gar_keras.rectify first."
            )
    return B


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


# The code that Keras calls a layer with, and its activity regularizer from.
_LAYER_CALL = inspect.unwrap(keras.Layer.__call__).__code__


def _keras_waits_for(frame):
    """Whether this call works for a layer's activity regularizer.

    Keras tells a regularizer neither who calls it nor for what: the callers
    are the only trace of it. The nearest layer may have called its activity
    regularizer, or its own `call`, which leads here as well.
    """
    callee = None
    while frame is not None and frame.f_code is not _LAYER_CALL:
        callee, frame = frame, frame.f_back
    if frame is None:
        return False
    regularizer = frame.f_locals["self"].activity_regularizer
    if not hasattr(regularizer, "__code__"):
        regularizer = type(regularizer).__call__
    return callee.f_code is getattr(regularizer, "__code__", None)


@functools.cache
def keras_divides_by_batch_size():
    """Whether this Keras divides activity regularizers by the batch size.

    Returns:
        `True` for Keras 3.14 and later, `False` before.
    """
    major, minor = (int(part) for part in keras.__version__.split(".")[:2])
    return (major, minor) >= (3, 14)
