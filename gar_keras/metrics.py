"""Metrics for labels that some examples lack."""

from typing import Any

import keras
from keras import ops


class _OverLabelled:
    """For metrics of Keras over sparse labels: leaves out what has none.

    Its `update_state` calls that of the metric with weights of 0 there.
    """

    ignore_class: int | None

    def update_state(self, y_true, y_pred, sample_weight=None):
        y_true = ops.convert_to_tensor(y_true)
        y_pred = ops.convert_to_tensor(y_pred)
        if len(y_true.shape) == len(y_pred.shape) and y_true.shape[-1] == 1:
            y_true = ops.squeeze(y_true, axis=-1)
        has_label = ops.not_equal(
            y_true, ops.cast(self.ignore_class, y_true.dtype)
        )
        labelled = ops.cast(has_label, self.dtype)
        if sample_weight is not None:
            weights = ops.cast(sample_weight, self.dtype)
            rank = len(labelled.shape)
            if len(weights.shape) > rank:
                weights = ops.squeeze(weights, axis=-1)
            while len(weights.shape) < rank:
                weights = ops.expand_dims(weights, axis=-1)
            labelled = labelled * weights
        # No class may be none: its cross-entropy is NaN, whatever its weight.
        y_true = ops.where(has_label, y_true, ops.zeros_like(y_true))
        return super().update_state(y_true, y_pred, sample_weight=labelled)

    def get_config(self):
        return {**super().get_config(), "ignore_class": self.ignore_class}


@keras.saving.register_keras_serializable(package="gar_keras")
class SparseCategoricalAccuracy(
    _OverLabelled, keras.metrics.SparseCategoricalAccuracy
):
    """Accuracy over the examples that have a label.

    `sum(argmax(y_pred) == y_true) / count` over those with
    `y_true != ignore_class`: `keras.metrics.SparseCategoricalAccuracy`, which
    would count a label of -1 as an error, with the `ignore_class` of
    `keras.losses.SparseCategoricalCrossentropy`.

    Args:
        ignore_class: The label of what has none. Defaults to `-1`.
        name: Name of the metric. Defaults to `"accuracy"`, as that of
            `metrics=["accuracy"]`.
        dtype: Dtype of the metric's result, as in Keras.

    It is 0 where no example has a label.

    Example:

    >>> metric = SparseCategoricalAccuracy()
    >>> metric.update_state([0, 1, -1], [[2., 1.], [2., 1.], [1., 2.]])
    >>> float(metric.result())
    0.5

    In `compile`, for one `fit` on labelled and unlabelled examples:

    >>> from gar_keras import attach
    >>> model = attach(keras.Sequential([keras.Input((4,)),
    ...                                  keras.layers.Dense(3)]))
    >>> model.compile(
    ...     loss=keras.losses.SparseCategoricalCrossentropy(
    ...         from_logits=True, ignore_class=-1
    ...     ),
    ...     metrics=[SparseCategoricalAccuracy()],
    ... )
    """

    def __init__(
        self,
        ignore_class: int | None = -1,
        name: str = "accuracy",
        dtype: Any = None,
    ):
        super().__init__(name=name, dtype=dtype)
        self.ignore_class = ignore_class


@keras.saving.register_keras_serializable(package="gar_keras")
class SparseCategoricalCrossentropy(
    _OverLabelled, keras.metrics.SparseCategoricalCrossentropy
):
    """Mean cross-entropy over the examples that have a label.

    `sum(-log softmax(y_pred)[y_true]) / count` over those with
    `y_true != ignore_class`, in the whole epoch. Keras' metric divides by the
    number of all examples, also with an `ignore_class`. The `loss` that `fit`
    reports is another mean too: that of the batches, in which one without any
    label counts with a cross-entropy of 0; and it has the loss of GAR in it.

    Args:
        from_logits: Whether `y_pred` are logits, as GAR needs them. Defaults
            to `True`; in Keras' metric it is `False`.
        ignore_class: The label of what has none. Defaults to `-1`.
        name: Name of the metric. Defaults to `"crossentropy"`.
        dtype: Dtype of the metric's result, as in Keras.

    It is 0 where no example has a label.

    Example:

    >>> metric = SparseCategoricalCrossentropy()
    >>> metric.update_state([0, -1, -1], [[0., 0.], [9., 0.], [0., 9.]])
    >>> round(float(metric.result()), 4)
    0.6931
    """

    def __init__(
        self,
        from_logits: bool = True,
        ignore_class: int | None = -1,
        name: str = "crossentropy",
        dtype: Any = None,
    ):
        super().__init__(name=name, dtype=dtype, from_logits=from_logits)
        self.ignore_class = ignore_class

    def get_config(self):
        config = super().get_config()
        # The last one, as of all logits here.
        config.pop("axis", None)
        return config
