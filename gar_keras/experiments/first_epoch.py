"""The first epoch of stage 2, in which a class can be lost, step by step."""

import keras
import numpy as np
from keras import ops

from gar_keras.callbacks import error_rate
from gar_keras.engine import backend
from gar_keras.experiments.settings import KEPT_IMAGES
from gar_keras.layers import GraphActivityRegularization
from gar_keras.methods.base import evaluated_by
from gar_keras.optimizers import SGD
from gar_keras.regularizers import affinity, balance, rectify

# Steps after which the error is measured.
ERROR_STEPS = (0, 4, 8, 16, 24, 32, 40, 48, 64, 80, 120, 160, 240, 320, 420)

SIGNIFICANT_DIGITS = 4


def steps_kept(steps):
    """The steps that a record has: all at first, fewer later.

    Example:

    >>> len(steps_kept(536))
    113
    """
    kept = [*range(64), *range(64, 160, 4), *range(160, steps, 16)]
    return [*(i for i in kept if i < steps - 1), steps - 1]


class TracedRegularization(GraphActivityRegularization):
    """GAR that notes, at each step of training, what its logits are like.

    Args:
        steps: Steps of the training.
        num_classes: `n`.
        **kwargs: As for `GraphActivityRegularization`.
    """

    def __init__(self, steps, num_classes, **kwargs):
        # The name that a layer has by default, which its metrics bear.
        kwargs.setdefault("name", "graph_activity_regularization")
        super().__init__(**kwargs)
        # v, affinity, balance and the mean of the largest logits.
        self.rows = self.add_weight(
            name="rows",
            shape=(steps, num_classes + 3),
            initializer="zeros",
            dtype="float32",
            trainable=False,
            autocast=False,
        )
        self.step = self.add_weight(
            name="step",
            shape=(),
            initializer="zeros",
            dtype="int32",
            trainable=False,
        )

    def call(self, inputs, training=None):
        if training:
            self._note(ops.stop_gradient(ops.cast(inputs, "float32")))
        return super().call(inputs, training=training)

    def _note(self, Z):
        B = rectify(Z)
        v = ops.sum(ops.square(B), axis=0)
        top = ops.mean(ops.max(Z, axis=1))
        rest = ops.stack([affinity(B), balance(B, self.class_prior), top])
        _write(self.rows, self.step, ops.concatenate([v, rest]))
        self.step.assign(self.step + 1)


class TracedSGD(SGD):
    """SGD that notes the norm of the gradient of each step, before clipping.

    Args:
        steps: Steps of the training.
        **kwargs: As for `gar_keras.optimizers.SGD`.
    """

    def __init__(self, steps, **kwargs):
        super().__init__(**kwargs)
        self.steps = steps

    def build(self, variables):
        if not self.built:
            self.norms = self.add_variable(
                (self.steps,), dtype="float32", name="norms"
            )
        super().build(variables)

    def apply(self, grads, trainable_variables=None):
        squares = [ops.sum(ops.square(ops.cast(g, "float32"))) for g in grads]
        if trainable_variables is not None:
            self.build(trainable_variables)
        norm = ops.sqrt(sum(squares))
        _write(self.norms, self.iterations, norm)
        super().apply(grads, trainable_variables)


def _write(rows, step, row):
    at = ops.reshape(ops.cast(step, "int32"), (1, 1))
    rows.assign(ops.scatter_update(rows, at, ops.expand_dims(row, 0)))


class FirstEpoch(keras.callbacks.Callback):
    """Gathers what was noted, with the error of some test images.

    Args:
        layer: The `TracedRegularization` in training.
        network: The model from images to logits.
        x: Test images.
        y: Their labels.
        keep: Function that is given the dict for the record.
    """

    def __init__(self, layer, network, x, y, keep):
        super().__init__()
        self.layer = layer
        self.network = network
        self.x, self.y = x[:KEPT_IMAGES], y[:KEPT_IMAGES]
        self.keep = keep

    def on_train_begin(self, logs=None):
        self.errors = {}
        self._measure(0)

    def on_train_batch_end(self, batch, logs=None):
        if batch + 1 in ERROR_STEPS:
            backend.return_state(self.model)
            self._measure(batch + 1)

    def on_epoch_end(self, epoch, logs=None):
        backend.return_state(self.model)
        rows = keras.ops.convert_to_numpy(self.layer.rows)
        norms = keras.ops.convert_to_numpy(self.model.optimizer.norms)
        self._measure(len(rows))
        kept = steps_kept(len(rows))
        v, alpha, beta, top = np.split(rows[kept], [-3, -2, -1], axis=1)
        self.keep(
            {
                "step": kept,
                "v": _rounded(v),
                "affinity": _rounded(alpha.ravel()),
                "balance": _rounded(beta.ravel()),
                "top_logit": _rounded(top.ravel()),
                "gradient_norm": _rounded(norms[kept]),
                "error_step": [*self.errors],
                "test_error": [*self.errors.values()],
            }
        )

    def _measure(self, step):
        evaluated = evaluated_by(self.model, self.network)
        self.errors[step] = error_rate(evaluated, self.x, self.y)


def _rounded(values):
    """Lists of the numbers, rounded: a record is to be kept small.

    Example:

    >>> _rounded(np.array([0.123456, 12345.6]))
    [0.1235, 12350.0]
    """
    if values.ndim > 1:
        return [_rounded(row) for row in values]
    return [float(f"{x:.{SIGNIFICANT_DIGITS}g}") for x in values]
