"""Keras callbacks for training with GAR."""

import math
import time

import keras
import numpy as np


class ErrorRate(keras.callbacks.Callback):
    """Measures the error of the model at the end of each epoch.

    The error is the share of images whose largest logit is not that of their
    label. It appears in the logs under the name given, for the callbacks that
    follow and in the history.

    Args:
        **sets: Images and class indices by name, e.g.
            `val_error=(x_val, y_val)`.
        batch_size: Images evaluated at a time.

    Example:

    >>> callback = ErrorRate(val_error=(np.ones((4, 2)), np.zeros(4, int)))
    """

    def __init__(self, *, batch_size=500, **sets):
        super().__init__()
        self.batch_size = batch_size
        self.sets = sets
        self.seconds = 0.0

    def on_epoch_end(self, epoch, logs=None):
        errors = self.measure(self.model)
        if logs is not None:
            logs.update(errors)

    def measure(self, model):
        """The errors of a model by name, each a float from 0 to 1."""
        start = time.perf_counter()
        errors = {
            name: error_rate(model, x, y, self.batch_size)
            for name, (x, y) in self.sets.items()
        }
        self.seconds += time.perf_counter() - start
        return errors


def error_rate(model, x, y, batch_size=500):
    """Share of images whose largest logit is not that of their label.

    Args:
        model: A model from images to logits.
        x: Images `(m, ...)`.
        y: Class indices `(m,)`.
        batch_size: Images evaluated at a time.

    Returns:
        A float from 0 to 1.

    Raises:
        FloatingPointError: if a logit is NaN or infinite.
    """
    logits = model.predict(x, batch_size=batch_size, verbose=0)
    if not np.isfinite(logits).all():
        raise FloatingPointError(
            "The model gives logits that are NaN or infinite. Lower the "
            "learning rate, or check the images."
        )
    return float(np.mean(np.argmax(logits, axis=-1) != y))


class BestWeights(keras.callbacks.Callback):
    """Keeps the weights of the epoch with the least validation error.

    Of several such epochs the first one counts. At the end of training the
    model gets these weights.

    Args:
        monitor: Name of the value in the logs, the less the better.
    """

    def __init__(self, monitor="val_error"):
        super().__init__()
        self.monitor = monitor
        self.best = math.inf
        self.best_epoch = None
        self.weights = None

    def on_epoch_end(self, epoch, logs=None):
        if logs[self.monitor] < self.best:
            self.best = logs[self.monitor]
            self.best_epoch = epoch + 1
            self.weights = self.model.get_weights()

    def on_train_end(self, logs=None):
        if self.weights is not None:
            self.model.set_weights(self.weights)


class StopOnNaN(keras.callbacks.Callback):
    """Stops training with an error as soon as the loss is NaN or infinite.

    Raises:
        FloatingPointError: names the term that is at fault.
    """

    TERMS = ("affinity", "balance")

    def on_train_batch_end(self, batch, logs=None):
        loss = (logs or {}).get("loss", 0.0)
        if math.isfinite(loss):
            return
        terms = {t: logs[t] for t in self.TERMS if t in logs}
        faulty = [t for t, value in terms.items() if not math.isfinite(value)]
        if not terms:
            what = "the supervised loss"
        elif len(faulty) == len(terms):
            what = f"{' and '.join(faulty)}, so the logits themselves"
        else:
            what = " and ".join(faulty) or "the Frobenius term"
        raise FloatingPointError(
            f"The loss became {loss} at step {batch + 1}. At fault: {what}. "
            "Lower the learning rate, or check the images and the weights "
            "that training started from."
        )


class CoefficientSchedule(keras.callbacks.Callback):
    """Sets the coefficients of GAR at the start of each epoch.

    Args:
        **schedules: For each coefficient to change, a function from the epoch
            (counted from 0, as in Keras) to its value.

    Raises:
        ValueError: if the model has no `GraphActivityRegularization`.

    Example: a warm-up of the affinity over five epochs.

    >>> warm_up = CoefficientSchedule(
    ...     affinity=lambda epoch: 3.0 * min(1.0, (epoch + 1) / 5)
    ... )
    """

    def __init__(self, **schedules):
        super().__init__()
        self.schedules = schedules

    def on_epoch_begin(self, epoch, logs=None):
        for layer in regularization_layers(self.model):
            layer.set_coefficients(
                **{k: float(f(epoch)) for k, f in self.schedules.items()}
            )


class TimeLimit(keras.callbacks.Callback):
    """Stops training before the epoch that would not end in time.

    Args:
        deadline: `time.monotonic()` at which training must have ended.

    Attributes:
        reached: Whether training was stopped.
    """

    def __init__(self, deadline):
        super().__init__()
        self.deadline = deadline
        self.reached = False
        self._longest = 0.0

    def on_epoch_begin(self, epoch, logs=None):
        self._start = time.monotonic()

    def on_epoch_end(self, epoch, logs=None):
        now = time.monotonic()
        self._longest = max(self._longest, now - self._start)
        if now + self._longest > self.deadline:
            self.reached = True
            self.model.stop_training = True


def regularization_layers(model):
    """The `GraphActivityRegularization` layers of a model, at any depth."""
    from gar_keras.layers import GraphActivityRegularization

    found = [
        layer
        for layer in model._flatten_layers()
        if isinstance(layer, GraphActivityRegularization)
    ]
    if not found:
        raise ValueError(
            "The model has no GraphActivityRegularization layer whose "
            f"coefficients could change. Received: model={model.name!r}. Put "
            "one behind its logits, e.g. with gar_keras.attach."
        )
    return found
