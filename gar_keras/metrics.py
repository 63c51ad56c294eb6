"""Metrics for labels that some examples lack."""

from typing import Any

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="gar_keras")
class SparseCategoricalAccuracy(keras.metrics.SparseCategoricalAccuracy):
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

    def update_state(self, y_true, y_pred, sample_weight=None):
        y_true = ops.convert_to_tensor(y_true)
        y_pred = ops.convert_to_tensor(y_pred)
        if len(y_true.shape) == len(y_pred.shape) and y_true.shape[-1] == 1:
            y_true = ops.squeeze(y_true, axis=-1)
        labelled = ops.cast(
            ops.not_equal(y_true, ops.cast(self.ignore_class, y_true.dtype)),
            self.dtype,
        )
        if sample_weight is not None:
            weights = ops.cast(sample_weight, self.dtype)
            rank = len(labelled.shape)
            if len(weights.shape) > rank:
                weights = ops.squeeze(weights, axis=-1)
            while len(weights.shape) < rank:
                weights = ops.expand_dims(weights, axis=-1)
            labelled = labelled * weights
        return super().update_state(y_true, y_pred, sample_weight=labelled)

    def get_config(self):
        return {**super().get_config(), "ignore_class": self.ignore_class}
