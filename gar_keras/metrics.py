"""Metrics: errors, accuracy where some labels are missing, classes in use."""

import weakref
from typing import Any

import keras
import numpy as np
from keras import ops

from gar_keras.engine import replicas
from gar_keras.engine.batches import num_examples
from gar_keras.engine.data import (
    as_labeled,
    check_examples,
    check_inputs,
    num_classes,
    pairs,
)
from gar_keras.engine.fit import predict
from gar_keras.engine.graphs import check_model, check_own_fit
from gar_keras.engine.keras_internals import (
    stateless_scope,
    without_autocast,
)
from gar_keras.engine.streams import is_stream
from gar_keras.utils.types import ClassPrior, Tensor
from gar_keras.utils.validation import (
    check_array,
    check_count,
    check_labels,
    check_logits,
)


def error_of(logits, y):
    return float(np.mean(np.argmax(logits, axis=-1) != y))


def log_loss(logits, y):
    """The mean of `-log softmax(logits)[y]`."""
    logits = logits.astype("float64")
    # The largest becomes 0, so that nothing overflows.
    logits -= logits.max(axis=1, keepdims=True)
    sums = np.log(np.exp(logits).sum(axis=1))
    return float(np.mean(sums - logits[np.arange(len(y)), y]))


def counts_of_classes(logits):
    """In how many rows of logits `(m, n)` each class is the largest."""
    return np.bincount(np.argmax(logits, axis=-1), minlength=logits.shape[-1])


def error_rate(
    model: keras.Model, x: Tensor, y: Tensor = None, batch_size: int = 500
) -> float:
    """Share of images whose largest logit is not that of their label.

    Args:
        model: A model from images to logits.
        x: Images `(m, ...)`, or a data set of pairs `(x, y)`, which is read
            batch by batch.
        y: Class indices `(m,)`, or one-hot rows.
        batch_size: Images evaluated at a time.

    Returns:
        A float from 0 to 1.

    Raises:
        ValueError: if the images, the labels and the logits do not fit
            together.
        FloatingPointError: if a logit is NaN or infinite.

    Example:

    >>> model = keras.Sequential([keras.Input((2,)), keras.layers.ReLU()])
    >>> x = np.array([[3., 1.], [2., 5.], [0., 1.], [4., 2.]])
    >>> error_rate(model, x, [0, 1, 1, 1])
    0.25
    """
    check_model(model)
    check_own_fit(model, ("predict", "predict_step"))
    check_count("batch_size", batch_size, least=1)
    return error_of(*checked_logits(model, x, y, batch_size))


def checked_logits(model, x, y, batch_size=500):
    """The finite logits of images, and their labels."""
    if is_stream(x) and y is None:
        found = [
            checked_logits(model, *pair, batch_size)
            for pair in pairs("x", x, model)
        ]
        return tuple(map(np.concatenate, zip(*found, strict=True)))
    x, y = as_labeled(x, y, ("x", "y"), model)
    check_examples("x", x, check=check_array)
    check_inputs(model, "x", x)
    try:
        logits = predict(model, x, batch_size)
    except Exception:
        # The call of a few examples says why, where a graph takes pages.
        num_classes(model, "x", x)
        raise
    y = check_labels("y", y, num_examples(x), check_logits(logits))
    if not np.isfinite(logits).all():
        raise FloatingPointError(
            "The model gives logits that are NaN or infinite. Lower the "
            "learning rate, or check the examples."
        )
    return logits, y


@keras.saving.register_keras_serializable(package="gar_keras")
class SparseCategoricalAccuracy(keras.metrics.SparseCategoricalAccuracy):
    """Accuracy over the examples that have a label.

    `sum(argmax(y_pred) == y_true) / count` over those with
    `y_true != ignore_class`, of `y_true` `(m,)` or `(m, 1)` and `y_pred`
    `(m, n)`. `keras.metrics.SparseCategoricalAccuracy` would count a label of
    -1 as an error.

    Args:
        ignore_class: The label of what has none. Defaults to `-1`.
        name: Name of the metric. Defaults to `"accuracy"`, as that of
            `metrics=["accuracy"]`.
        dtype: Dtype of the metric's result, as in Keras.

    Raises:
        ValueError: in `update_state`, if `y_true` is not `(m,)` or `(m, 1)`.

    It is 0 where no example has a label, and NaN if a label is neither
    `ignore_class` nor a class, from 0 to n - 1. `gar_keras.GARAfter` has an
    example of it in `compile`, for one `fit` on labelled and unlabelled
    examples.

    Example:

    >>> metric = SparseCategoricalAccuracy()
    >>> metric.update_state([0, 1, -1], [[2., 1.], [2., 1.], [1., 2.]])
    >>> float(metric.result())
    0.5
    """

    def __init__(
        self,
        ignore_class: int = -1,
        name: str = "accuracy",
        dtype: Any = None,
    ):
        super().__init__(name=name, dtype=dtype)
        self.ignore_class = ignore_class

    def update_state(self, y_true, y_pred, sample_weight=None):
        y_true = ops.convert_to_tensor(y_true)
        if ops.ndim(y_true) == 2 and y_true.shape[1] not in (1, None):
            raise ValueError(
                "y_true must be class indices, (m,) or (m, 1). Received: "
                f"shape={tuple(y_true.shape)}. Of one-hot rows take "
                "argmax(axis=1)."
            )
        # A float holds NaN, and -1, which would be 255 in uint8.
        y_true = ops.cast(ops.reshape(y_true, (-1,)), "float32")
        y_pred = ops.convert_to_tensor(y_pred)
        n = ops.cast(ops.shape(y_pred)[-1], "float32")
        is_class = (y_true >= 0) & (y_true < n) & (y_true == ops.floor(y_true))
        weights = ops.where(is_class, 1.0, np.nan)
        weights = ops.where(y_true == self.ignore_class, 0.0, weights)
        weights = ops.cast(weights, self.dtype)
        if sample_weight is not None:
            given = ops.reshape(ops.cast(sample_weight, self.dtype), (-1,))
            # The label of what has no weight may be anything.
            weights = ops.where(given == 0, 0.0, weights * given)
        return super().update_state(y_true, y_pred, sample_weight=weights)

    def get_config(self):
        return {**super().get_config(), "ignore_class": self.ignore_class}


class StepMetric(keras.metrics.Metric):
    """Base of metrics that a layer updates in its `call`.

    The result of what `update_state` has taken is `of_the_steps`. On JAX, `fit`
    drops what is assigned to a metric while the loss is differentiated. There
    the values of a step wait until Keras asks for the metrics of the step, by
    `result`.
    """

    # Values that wait, and the scope of the step that they are of.
    _waiting, _scope = (), None

    def record(self, value):
        """Takes one step's value. Called in the layer's `call`."""
        # TensorFlow lets only replicas update a metric.
        if replicas.count() > 1 and replicas.context() is None:
            return
        value = ops.stop_gradient(value)
        scope = stateless_scope()
        if keras.backend.backend() != "jax" or scope is None:
            self.update_state(value)
        elif self._scope is not None and self._scope() is scope:
            self._waiting.append(value)
        else:
            # What waits from another step, e.g. of `predict`, is not asked for.
            self._scope, self._waiting = weakref.ref(scope), [value]

    def reset_state(self):
        self._scope, self._waiting = None, ()
        super().reset_state()

    def result(self):
        if self._waiting and stateless_scope() is not None:
            for value in self._waiting:
                self.update_state(value)
            self._scope, self._waiting = None, ()
        return self.of_the_steps()


class StepMean(StepMetric, keras.metrics.Mean):
    """Mean, over the steps, of a scalar that a layer computes in `call`."""

    of_the_steps = keras.metrics.Mean.result


class ClassesInUse(StepMetric):
    """Number of classes that the latest examples are given to.

    An example is given to the class of its largest logit. A class counts as in
    use unless it gets less than `LEAST_SHARE` of the examples that should be
    its own, `p_j` of all with the shares `p` of the classes. Judged are the
    latest examples, for each class by itself: those of which `WINDOW` to
    `2 * WINDOW` should be its own (`ENOUGH` at first; with fewer the class
    counts as in use). So a batch may well be without a class, and a rare class
    only takes longer to be missed: with 128 examples in a batch, ten equal
    classes are judged by the last 8 to 16 batches, a hundred by 79 to 158.

    A class of which all shares are right, and that is recognized at all, does
    not get so few by chance: with 50 examples of its own the probability of
    none is `exp(-50)`, and `exp(-7)` if only one in seven is recognized.

    Args:
        name: Name of the metric.
        class_prior: p, as in `gar_keras.balance`. `None` for classes of equal
            size.
        dtype: Dtype of the metric's state, as in Keras.

    Example:

    >>> metric = ClassesInUse()
    >>> metric.update_state(np.eye(4)[[0, 1, 3] * 100])
    >>> float(metric.result()), metric.unused()
    (3.0, [2])
    """

    WINDOW = 100
    ENOUGH = 50
    LEAST_SHARE = 0.01

    def __init__(
        self,
        name: str = "classes_in_use",
        class_prior: ClassPrior = None,
        dtype: Any = None,
    ):
        super().__init__(name=name, dtype=dtype)
        self.class_prior = class_prior
        self._windows = None

    def build(self, num_classes):
        """Makes the state for logits of so many classes."""
        if self._windows is None:
            # (current, previous), (examples given to each class, those that
            # should be its own), classes.
            # Each replica of `tf.distribute` has the same.
            windows = self.add_variable(
                (2, 2, num_classes),
                "zeros",
                self.dtype,
                aggregation="mean",
                name="windows",
            )
            self._windows = without_autocast(windows)

    def update_state(self, Z):
        """Takes the logits `(m, n)` of a step."""
        Z = ops.convert_to_tensor(Z)
        n = Z.shape[-1]
        if self._windows is None:
            self.build(n)
        given = ops.sum(ops.one_hot(ops.argmax(Z, axis=-1), n), axis=0)
        given = replicas.sum_over_replicas(ops.cast(given, self.dtype))
        p = np.ones(n) / n if self.class_prior is None else self.class_prior
        own = ops.sum(given) * ops.cast(np.array(p), self.dtype)
        step = ops.stack([given, own])
        windows = ops.convert_to_tensor(self._windows)
        current, previous = windows[0], windows[1]
        full = current[1] >= self.WINDOW
        previous = ops.where(full, current, previous)
        current = ops.where(full, step, current + step)
        self._windows.assign(ops.stack([current, previous]))

    def of_the_steps(self):
        if self._windows is None:
            return ops.zeros((), self.dtype)
        used = ops.logical_not(self._is_unused())
        return ops.sum(ops.cast(used, self.dtype))

    def unused(self):
        """The classes not in use, a list of ints."""
        if self._windows is None:
            return []
        return np.flatnonzero(ops.convert_to_numpy(self._is_unused())).tolist()

    def _is_unused(self):
        """Whether each class is not in use, booleans `(n,)`."""
        windows = ops.convert_to_tensor(self._windows)
        both = windows[0] + windows[1]
        given, own = both[0], both[1]
        return (own >= self.ENOUGH) & (given < self.LEAST_SHARE * own)

    def get_config(self):
        return {**super().get_config(), "class_prior": self.class_prior}
