"""The loss of GAR: affinity, balance and the Frobenius norm (section 3.3).

Nothing here forms an `m x m` matrix, and not even `N = BᵀB` is needed in full:
with `r = B·1` the row sums and `v = diag N` the column sums of `B²`,

    sum over all entries of N      = ‖r‖²
    sum of the diagonal of N       = sum(v)
    sum of off-diagonal V = vᵀv    = sum(v)² - ‖v‖²

so that one step costs `O(m·n)` operations and memory for `m` images and `n`
classes. All are sums over the rows of `B`: where replicas of `tf.distribute`
have the rows, they exchange these sums, and each has the loss of the batch.
"""

from typing import Literal, get_args

import keras
import numpy as np
from keras import ops
from numpy.typing import ArrayLike

from gar_keras.engine import autodiff, replicas
from gar_keras.engine.keras_internals import (
    is_evaluated,
    is_weight,
    layer_in_call,
)
from gar_keras.utils.types import ClassPrior, Tensor
from gar_keras.utils.validation import (
    as_array,
    check_choice,
    check_class_prior,
    check_count,
    check_labels,
    check_logits_shape,
    check_number,
    not_real,
)
from gar_keras.utils.warnings import warn

# The largest coefficient that a float32 weight can hold.
LARGEST_COEFFICIENT = float(np.finfo("float32").max)

# The matrix of the Frobenius norm: the paper's B, or Z as in the authors' code.
FrobeniusOf = Literal["B", "Z"]
# What v is made of: the diagonal of N, as in the paper, or the column sums of
# B, as in the authors' code until May 2017, or of B with rows of sum 1.
BalanceOf = Literal["diagonal", "column sums", "row shares"]

_major, _minor = (int(part) for part in keras.__version__.split(".")[:2])
KERAS_DIVIDES_BY_BATCH_SIZE = (_major, _minor) >= (3, 14)

# How the names of dtypes of real numbers begin.
REAL = ("bool", "int", "uint", "float", "bfloat")

# Names of the activations after which no logits are left.
PROBABILITIES = (
    *("softmax", "log_softmax", "logsoftmax"),
    *("sigmoid", "hard_sigmoid"),
)


def gar_loss(
    Z,
    coefficients,
    frobenius_of="B",
    balance_of="diagonal",
    class_prior=None,
    memory=None,
):
    """`U(B)` of a batch (paper, equation for U), and the terms of it.

    With `B = max(0, Z)`, `N = BᵀB`, `v = diag N` and `V = vᵀv`,

        α(B) = sum_{i≠j} N_ij / ((n - 1) * sum_i N_ii)
        β(B) = sum_{i≠j} V_ij / ((n - 1) * sum_i V_ii)
        U(B) = c_α α(B) + c_β (1 - β(B)) + c_F ‖B‖²_F

    Args:
        Z: Float32 logits `(m, n)`.
        coefficients: `c_α`, `c_β` and `c_F` by the names of the terms,
            `"affinity"`, `"balance"` and `"frobenius"`. A term that has none
            is not computed.
        frobenius_of, balance_of, class_prior: As of `GraphActivityRegularizer`.
        memory: For a balance over several batches, `(ρ, u)` with the shares
            `u` of the batches before: it is of `ρ u + (1 - ρ) v / sum(v)`.

    Returns:
        `(U, terms)`, a float32 scalar and a dict: α, β and `‖B‖²_F` by name,
        and as `"shares"` what the balance is of.
    """
    # Not `relu`, which TensorFlow joins to the layer in front of it, in one
    # kernel that turns NaN into 0: training would go on in silence.
    B = ops.where(Z <= 0, ops.zeros_like(Z), Z)
    # α and β do not change with the scale of B, whose squares stay in range.
    largest = replicas.largest_over_replicas(B)
    U, terms = ops.zeros((), "float32"), {}
    if "affinity" in coefficients:
        terms["affinity"] = _affinity(B / largest)
        U = U + coefficients["affinity"] * terms["affinity"]
    if "balance" in coefficients:
        terms["balance"], terms["shares"] = _balance(
            B / largest, balance_of, class_prior, memory
        )
        U = U + coefficients["balance"] * (1.0 - terms["balance"])
    if "frobenius" in coefficients:
        F = B if frobenius_of == "B" else Z
        terms["frobenius"] = replicas.sum_over_replicas(ops.sum(ops.square(F)))
        U = U + coefficients["frobenius"] * terms["frobenius"]
    return U, terms


def _affinity(B):
    """α, from sums over the rows of B that the replicas exchange."""
    r = ops.sum(B, axis=-1, keepdims=True)
    # Not ‖r‖² - sum(v): that would cancel where rows are nearly one-hot.
    sums_of_N = ops.sum(B * (r - B)), ops.sum(ops.square(B))
    off_diagonal, trace = replicas.sum_over_replicas(sums_of_N)
    return ops.divide_no_nan(off_diagonal, (B.shape[-1] - 1) * trace)


def _balance(B, balance_of, class_prior, memory=None):
    """β, and the `v` that it is of, or the shares that a memory makes of it."""
    if balance_of == "diagonal":
        B = ops.square(B)
    elif balance_of == "row shares":
        B = ops.divide_no_nan(B, ops.sum(B, axis=-1, keepdims=True))
    v = replicas.sum_over_replicas(ops.sum(B, axis=0))
    if memory is not None:
        kept, before = memory
        v = kept * before + (1 - kept) * ops.divide_no_nan(v, ops.sum(v))
    u = v
    if class_prior is not None:
        p = np.array(class_prior)
        # A common factor changes nothing: this one is exactly 1 for equal p.
        u = v * ops.cast(p.max() / p, "float32")
    # V does not change when u is scaled to sum to 1, and cannot overflow then.
    u = ops.divide_no_nan(u, ops.sum(u))
    off_diagonal, trace = ops.sum(u * (ops.sum(u) - u)), ops.sum(ops.square(u))
    return ops.divide_no_nan(off_diagonal, (u.shape[0] - 1) * trace), v


def affinity(B: Tensor) -> Tensor:
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
        ValueError: if `B` is not a matrix of real numbers of at least two
            columns, or if it has a negative or masked entry (tensors are not
            looked into).

    Example:

    >>> B = np.array([[1., 1.], [0., 2.]])      # N = [[1, 1], [1, 5]]
    >>> round(float(affinity(B)), 6)            # 2 / (1 * 6)
    0.333333
    """
    B = _matrix("B", B)
    return _affinity(B / replicas.largest_over_replicas(B))


def balance(
    B: Tensor,
    class_prior: ClassPrior = None,
    balance_of: BalanceOf = "diagonal",
) -> Tensor:
    """How evenly the output nodes are used (paper, equation for Balance).

    `balance(B) = sum_{i≠j} V_ij / ((n - 1) * sum_i V_ii)` with `V = vᵀv` and
    `v = diag(BᵀB)`. It is 1 where all entries of `v` are equal, and 0 where
    only one of them is not 0. It is 0 for `B = 0`.

    That is the paper's term, which assumes classes of equal size. With a
    `class_prior` p, `u_i = v_i / p_i` takes the place of `v_i`: the term is 1
    where `v` is proportional to p. The uniform prior gives the paper's term to
    the last bit.

    With `balance_of="column sums"`, `v_j = sum_i B_ij`, as in the authors' code
    until May 2017. Towards an output that is being emptied the diagonal pulls
    in proportion to what is left of it, the column sums with constant force.
    With `balance_of="row shares"`, `v_j = sum_i B_ij / sum_k B_ik`: each image
    counts once, whatever its logits are, where in the other two an image of
    large logits counts for several of small ones. (A row of zeros counts
    nothing.)

    Args:
        B: Rectified logits, `(m, n)`, not negative, `n` at least 2. Computed
            in float32, whatever the dtype or the dtype policy.
        class_prior: The shares of the classes, `(n,)`, positive, of sum 1; see
            `class_prior_of`. `None` for classes of equal size.
        balance_of: `"diagonal"`, `"column sums"` or `"row shares"`.

    Returns:
        A float32 scalar, from 0 to 1.

    Raises:
        ValueError: if `B` is not a matrix of real numbers of at least two
            columns, or if it has a negative or masked entry (tensors are not
            looked into); if `class_prior` is not a prior, or one of another
            number of classes; if `balance_of` is none of the three.

    Example:

    >>> B = np.array([[1., 1.], [0., 2.]])      # v = [1, 5]
    >>> round(float(balance(B)), 6)             # 2 * 5 / (1 * (1 + 25))
    0.384615
    >>> round(float(balance(B, [1 / 6, 5 / 6])), 6)     # u = [6, 6]
    1.0
    >>> round(float(balance(B, balance_of="column sums")), 6)   # v = [1, 3]
    0.6
    >>> B = np.array([[1., 1.], [0., 20.]])     # v = [1/2, 3/2]
    >>> round(float(balance(B, balance_of="row shares")), 6)
    0.6
    """
    check_choice("balance_of", balance_of, get_args(BalanceOf))
    B = _matrix("B", B)
    if class_prior is not None:
        class_prior = check_class_prior(class_prior, B.shape[-1])
    B = B / replicas.largest_over_replicas(B)
    return _balance(B, balance_of, class_prior)[0]


def expected_balance(
    batch_size: int, num_classes: int, class_prior: ClassPrior = None
) -> float:
    """The balance of a batch whose images are all right, and confidently so.

    Of m images drawn at random, `v_i` counts those of class i. The mean of
    the numerator of `balance` over the mean of its denominator is

    `(m - 1) / (m + n - 1)`

    for n classes of equal size, and `n (m - 1) / (n (m - 1) + sum_i 1 / p_i)`
    with a prior p. It is what training should come to: a balance far above it
    means that images are spread over classes which their batch does not have.
    (Not where a class has less than about one image in a batch: most batches
    are without it then, and the mean of their balance is far from this, above
    or below.)

    Args:
        batch_size: m, at least 1.
        num_classes: n, at least 2.
        class_prior: p, as in `balance`; also the shares of the classes.

    Returns:
        A float from 0 to 1.

    Raises:
        ValueError: if a number is too small, or if `class_prior` is not a prior
            of n classes.

    Example:

    >>> round(expected_balance(128, 10), 3)
    0.927
    >>> round(expected_balance(128, 100), 3)
    0.559
    """
    m = check_count("batch_size", batch_size, least=1)
    n = check_count("num_classes", num_classes, least=2)
    if class_prior is None:
        return (m - 1) / (m + n - 1)
    p = np.array(check_class_prior(class_prior, n))
    even = n * (m - 1)
    return float(even / (even + np.sum(1 / p)))


def class_prior_of(
    labels: ArrayLike, num_classes: int, smoothing: float = 0.0
) -> tuple[float, ...]:
    """Estimates the shares of the classes from labels.

    `p_i = (m_i + smoothing) / (m + smoothing * n)` where `m_i` of the `m`
    labels are of class i. The labels must have been drawn without regard to
    their class: from labels that were chosen evenly over the classes, as in
    the paper, it would always be uniform.

    Args:
        labels: Class indices `(m,)`, from 0 to `num_classes - 1`.
        num_classes: `n`, at least 2.
        smoothing: Labels that each class counts in addition, a finite number
            of at least 0. 1 is Laplace's rule.

    Returns:
        A tuple of `n` positive floats of sum 1, for `class_prior`.

    Raises:
        ValueError: if the labels are not class indices, or if a class has no
            label and `smoothing` is 0: its share would be estimated as 0,
            which is not possible for a class that there is.

    Example:

    >>> class_prior_of([0, 1, 1, 1], 2)
    (0.25, 0.75)
    >>> class_prior_of([1, 1], 2, smoothing=1)
    (0.25, 0.75)
    """
    n = check_count("num_classes", num_classes, least=2)
    array = as_array("labels", labels)
    indices = check_labels("labels", array, array.size)
    if indices.max(initial=0) >= n:
        raise ValueError(
            "num_classes must count each class that the labels have. Received: "
            f"num_classes={n}, labels up to {indices.max()}. Set it to "
            f"{indices.max() + 1}, as many outputs as the model must have."
        )
    smoothing = check_coefficient("smoothing", smoothing)
    counts = np.bincount(indices, minlength=n) + smoothing
    if not counts.all():
        raise ValueError(
            "The share of a class without any label cannot be estimated. "
            "Received: no label of class "
            f"{', '.join(map(str, np.flatnonzero(counts == 0)))}. Label an "
            "example of each class, or set smoothing, e.g. smoothing=1."
        )
    return tuple((counts / counts.sum()).tolist())


@keras.saving.register_keras_serializable(package="gar_keras")
class GraphActivityRegularizer(keras.regularizers.Regularizer):
    """Graph-based activity regularization of logits (paper, equation for U).

    Of *unrectified* logits `Z`, with `B = max(0, Z)`, `loss(Z)` is

    `U(B) = affinity * α(B) + balance * (1 - β(B)) + frobenius * ‖B‖²_F`

    where `α` is `gar_keras.affinity` and `β` is `gar_keras.balance`. The value
    belongs to the batch as a whole: it is not divided by the batch size.

    As `Dense(n, activity_regularizer=GraphActivityRegularizer())` it adds the
    same loss as the layer `GraphActivityRegularization` behind the `Dense`, in
    training alone. From 3.14 on, Keras divides what it returns by the batch
    size `m`: called, it returns `m * U` there, and `U` with an earlier Keras.

    Keras has no metrics for an activity regularizer: neither the terms nor the
    classes in use are shown in training, and
    `gar_keras.callbacks.WarnOnCollapse` cannot watch it. The layer shows them.

    Args:
        affinity: `c_α`, a float, finite and not negative. Defaults to `3.0`.
        balance: `c_β`, likewise. Defaults to `1.0`.
        frobenius: `c_F`, likewise. Defaults to `1e-6`.
        frobenius_of: `"B"` for `‖B‖²_F` as in the paper, `"Z"` for `‖Z‖²_F`
            over the unrectified logits, as in the authors' code.
        balance_of, class_prior: As of `gar_keras.balance`.

    A term whose coefficient is 0 is not computed. A `GARWarning` comes if the
    layer that it regularizes has a softmax or sigmoid activation.

    Raises:
        ValueError: if a coefficient is negative, infinite in float32, NaN or
            no number, or if `class_prior` is not a prior; when called, if the
            input is not `(m, n)` with `n` of at least 2, if `class_prior` is
            of another `n`, on several replicas of `tf.distribute`, or, on
            JAX, if its layer is called twice in a step.

    Example:

    >>> regularizer = GraphActivityRegularizer(frobenius=0.0)
    >>> Z = np.array([[1., 1.], [-3., 2.]])
    >>> round(float(regularizer.loss(Z)), 6)    # 3 * 2/6 + (1 - 10/26)
    1.615385
    >>> logits = keras.layers.Dense(10, activity_regularizer=regularizer)
    """

    def __init__(
        self,
        affinity: float = 3.0,
        balance: float = 1.0,
        frobenius: float = 1e-6,
        frobenius_of: FrobeniusOf = "B",
        class_prior: ClassPrior = None,
        balance_of: BalanceOf = "diagonal",
    ):
        self.affinity = check_coefficient("affinity", affinity)
        self.balance = check_coefficient("balance", balance)
        self.frobenius = check_coefficient("frobenius", frobenius)
        check_choice("frobenius_of", frobenius_of, get_args(FrobeniusOf))
        self.frobenius_of = frobenius_of
        check_choice("balance_of", balance_of, get_args(BalanceOf))
        self.balance_of = balance_of
        if class_prior is not None:
            class_prior = check_class_prior(class_prior)
        self.class_prior = class_prior

    def __call__(self, x):
        if is_weight(x):
            raise ValueError(
                "GAR is of what a layer gives, not of its weights. Received: "
                f"a weight of shape {tuple(x.shape)}. Give the regularizer to "
                "the layer as activity_regularizer."
            )
        if is_evaluated():
            return ops.zeros((), keras.config.floatx())
        if replicas.context() is not None:
            raise ValueError(
                "On several replicas of tf.distribute, GAR cannot be an "
                "activity_regularizer. Put a GraphActivityRegularization "
                "behind the layer instead."
            )
        layer = layer_in_call()
        if layer is not None and layer.activity_regularizer is not None:
            warn_of_probabilities(layer)
            autodiff.check_called_once(layer, x)
        loss = self.loss(x)
        if KERAS_DIVIDES_BY_BATCH_SIZE:
            loss = loss * ops.cast(ops.shape(x)[0], "float32")
        # The dtype of Keras' losses, with which it is summed up.
        return ops.cast(loss, keras.config.floatx())

    def loss(self, Z: Tensor) -> Tensor:
        """`U` of unrectified logits `(m, n)`, a float32 scalar."""
        Z = _matrix("Z", Z)
        self.check_shape(Z.shape)
        coefficients = {k: c for k, c in self.coefficients.items() if c}
        of = self.frobenius_of, self.balance_of, self.class_prior
        return gar_loss(Z, coefficients, *of)[0]

    @property
    def coefficients(self):
        """`c_α`, `c_β` and `c_F` by the name of their term."""
        names = ("affinity", "balance", "frobenius")
        return {name: getattr(self, name) for name in names}

    def check_shape(self, shape):
        """Raises unless logits of the shape fit: see `check_logits_shape`."""
        check_logits_shape(shape)
        if self.class_prior is not None:
            check_class_prior(self.class_prior, shape[-1])

    def get_config(self):
        config = {
            **self.coefficients,
            "frobenius_of": self.frobenius_of,
            "balance_of": self.balance_of,
        }
        if self.class_prior is not None:
            # A model without one loads in versions that know none.
            config["class_prior"] = list(self.class_prior)
        return config


def check_coefficient(name, value):
    """`value` as a float; raises if it is not a valid coefficient."""
    return check_number(name, value, high=LARGEST_COEFFICIENT, closed="both")


def activation_of(operation):
    """Name of the activation that a layer or an operation applies, or None."""
    name = type(operation).__name__.lower()
    if name in (*PROBABILITIES, "relu", "tanh"):
        return name
    activation = getattr(operation, "activation", None)
    if activation in (None, keras.activations.linear):
        return None
    return getattr(activation, "__name__", type(activation).__name__).lower()


def warn_of_probabilities(operation):
    """Warns if what is to be regularized are probabilities, not logits."""
    activation = activation_of(operation)
    if activation in PROBABILITIES:
        warn(
            "GAR needs the logits, before any activation, but gets "
            f"probabilities. Received: layer={operation.name!r}, "
            f"activation={activation!r}. Make that layer linear and use "
            "from_logits=True in the loss."
        )


def _matrix(name, x):
    """`x` as a float32 `(m, n)` tensor, n at least 2; raises unless real."""
    is_symbolic = isinstance(x, keras.KerasTensor | keras.Variable)
    if is_symbolic or ops.is_tensor(x):
        dtype = keras.backend.standardize_dtype(x.dtype)
    else:
        x = as_array(name, x)
        dtype = x.dtype
    # NumPy has no kind of its own for bfloat16.
    if not getattr(dtype, "name", dtype).startswith(REAL):
        raise not_real(name, dtype)
    if name == "B" and isinstance(x, np.ndarray) and np.min(x, initial=0) < 0:
        raise ValueError(
            "Affinity and balance are of rectified logits, none of them "
            f"negative. Received: least entry={np.min(x)}. Pass logits "
            "through keras.ops.relu first."
        )
    x = ops.convert_to_tensor(x)
    check_logits_shape(x.shape)
    return ops.cast(x, "float32")
