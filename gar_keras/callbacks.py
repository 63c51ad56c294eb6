"""Keras callbacks for training with GAR."""

import contextlib
import math
from dataclasses import dataclass

import keras
import numpy as np

from gar_keras.engine import backend
from gar_keras.engine.data import some_of
from gar_keras.engine.fit import predict
from gar_keras.layers import regularization_layers
from gar_keras.metrics import (
    checked_logits,
    counts_of_classes,
    error_of,
    log_loss,
    lost_classes,
)
from gar_keras.regularizers import expected_balance
from gar_keras.utils.validation import check_count, received
from gar_keras.utils.warnings import warn


def list_of(callbacks):
    """Callbacks in any form that Keras takes, as a list."""
    if isinstance(callbacks, keras.callbacks.CallbackList):
        callbacks = callbacks.callbacks
    found = [] if callbacks is None else keras.tree.flatten(callbacks)
    for callback in found:
        if not isinstance(callback, keras.callbacks.Callback):
            raise ValueError(
                "callbacks must be Keras callbacks, each made of its class. "
                f"Received: {received('callback', callback)}"
            )
    return found


@contextlib.contextmanager
def checkpoints_of(model, callbacks):
    """Has each `ModelCheckpoint` write this model, not the one in training."""
    checkpoints = [
        callback
        for callback in callbacks
        if isinstance(callback, keras.callbacks.ModelCheckpoint)
    ]
    for checkpoint in checkpoints:
        checkpoint.set_model(model)
        # `fit` would give it the other.
        checkpoint.set_model = lambda _: None
    try:
        yield
    finally:
        for checkpoint in checkpoints:
            del checkpoint.set_model


class ErrorRate(keras.callbacks.Callback):
    """Measures the error of the model at the end of each epoch.

    The error is the share of images whose largest logit is not that of their
    label. It appears in the logs under the name given, for the callbacks that
    follow and in the history. With each name that ends in `_error` come the
    accuracy, `1 - error`, and the mean cross-entropy of the labels, by the
    names that Keras has for them: `val_accuracy` and `val_loss` with
    `val_error`.

    Args:
        **sets: Images and class indices by name, e.g.
            `val_error=(x_val, y_val)`.

    Example:

    >>> callback = ErrorRate(val_error=(np.ones((4, 2)), np.zeros(4, int)))
    """

    def __init__(self, **sets):
        super().__init__()
        self.sets = sets

    def on_epoch_end(self, epoch, logs=None):
        found = self._logits(self.model)
        if logs is not None:
            for name, (logits, y) in found.items():
                error = logs[name] = error_of(logits, y)
                if name.endswith("_error"):
                    of = name.removesuffix("_error")
                    logs[f"{of}_accuracy"] = 1 - error
                    logs[f"{of}_loss"] = log_loss(logits, y)

    def measure(self, model):
        """The errors of a model by name, each a float from 0 to 1."""
        found = self._logits(model)
        return {name: error_of(*logits) for name, logits in found.items()}

    def _logits(self, model):
        """Logits and labels by name."""
        return {
            name: checked_logits(model, x, y)
            for name, (x, y) in self.sets.items()
        }


def standard_callbacks(validation_data):
    """Those of every training, with the validation pair or `None`."""
    if validation_data is None:
        return [StopOnNaN()]
    return [StopOnNaN(), ErrorRate(val_error=validation_data)]


class WarnOfLoss(keras.callbacks.Callback):
    """Warns, once, of an epoch of stage 2 whose mean loss is above 10.

    The loss is the sum of the method's terms: what layers add is the user's.
    GAR's is at most 4 with the paper's coefficients and logits of usual size,
    and labels that stage 1 has learned have a cross-entropy far below 1.

    Args:
        terms: Names of the terms in the logs.
    """

    LARGEST = 10.0

    def __init__(self, terms):
        super().__init__()
        self.terms = terms
        self._has_warned = False

    def on_epoch_end(self, epoch, logs=None):
        parts = {name: logs[name] for name in self.terms if name in logs}
        loss = sum(parts.values())
        if self._has_warned or not loss > self.LARGEST:
            return
        self._has_warned = True
        largest = max(parts, key=parts.get)
        causes = {
            "supervised": "in training the network finds the labels that it "
            "is given most unlikely",
            "regularization": "the logits are so large that their Frobenius "
            "norm is most of GAR's loss",
        }
        cause = causes.get(largest, "the network is far from where it began")
        warn(
            f"The mean loss of epoch {epoch + 1} of stage 2 is {loss:.4g}, "
            f"most of it {largest}={parts[largest]:.4g}: {cause}. Check the "
            "weights that stage 2 began with and the scale of the examples, "
            "or lower the learning rate."
        )


# Of a training that keeps the best weights: what its model ends with.
BEST_ARE_KEPT = "The model ends with the weights of the least validation error."
NONE_IS_BETTER = (
    "Every epoch has a greater error on the validation data than the weights "
    "that training began with: the model has these."
)


class BestWeights(keras.callbacks.Callback):
    """Keeps the weights of the epoch with the least validation error.

    Of several such epochs the last one counts: the error on few examples often
    stays the same for many epochs in which the model grows better. At the end
    of training the model gets these weights. Where an exception ends it, Keras
    tells no callback: `gar_keras.regularize` calls `restore` then, and in a
    `fit` of your own you can. It needs an `ErrorRate` in front of it.

    Args:
        start: Validation error of the weights that training begins with, which
            are kept if every epoch has a greater one. Without it they are not.
        network: The model whose weights are kept; by default the one in
            training.
        start_weights: Those that `network` begins with, if it has others when
            training begins.
        watch: The `WarnOnCollapse` of the same training, if it has one: what
            that has warned of is not said again.
    """

    weights = None

    def __init__(
        self, start=math.inf, network=None, start_weights=None, watch=None
    ):
        super().__init__()
        self.start = start
        self.network = network
        self.start_weights = start_weights
        self.watch = watch

    def on_train_begin(self, logs=None):
        self.best, self.best_epoch, self.weights = self.start, None, None
        if self.start < math.inf:
            self.weights = self.start_weights or self._network.get_weights()

    def on_epoch_end(self, epoch, logs=None):
        if logs["val_error"] <= self.best:
            self.best = logs["val_error"]
            self.best_epoch = epoch + 1
            self.weights = self._network.get_weights()

    def on_train_end(self, logs=None):
        if not self.restore() or self.best_epoch is not None:
            return
        watch = self.watch
        if watch is None or not watch.warns_of_error(NONE_IS_BETTER):
            warn(NONE_IS_BETTER)

    def restore(self):
        """Gives the model the best weights so far. `False` if it has none."""
        if self.weights is None:
            return False
        self._network.set_weights(self.weights)
        # They belong to this training, and not to the next one.
        self.weights = None
        return True

    @property
    def _network(self):
        return self.model if self.network is None else self.network


def end_last(callbacks):
    """A callback that ends others, which do not where they stand themselves."""
    ends = [callback.on_train_end for callback in callbacks]

    def on_train_end(logs):
        for end in ends:
            end(logs)

    for callback in callbacks:
        callback.on_train_end = lambda logs=None: None
    return keras.callbacks.LambdaCallback(on_train_end=on_train_end)


@contextlib.contextmanager
def ending_with(network, evaluated, start, callbacks):
    """Has a training, whatever ends it, leave a network with the right weights.

    Those of the model that was evaluated; where an exception ends the training,
    Ctrl-C among them, of whose end Keras does not tell the callbacks, the best
    ones that a `BestWeights` has, and after a loss that is not finite those of
    the `start`.
    """
    try:
        yield
    except BaseException as e:
        keepers = [c for c in callbacks if isinstance(c, BestWeights)]
        restored = [keeper.restore() for keeper in keepers]
        if isinstance(e, FloatingPointError) and not any(restored):
            evaluated.set_weights(start)
        # A step of JAX that was interrupted has no weights to take.
        with contextlib.suppress(Exception):
            network.set_weights(evaluated.get_weights())
        raise
    if evaluated is not network:
        network.set_weights(evaluated.get_weights())


# Examples whose classes are looked at before and after a training.
LOOKED_AT = 10_000
LOST_CLASSES_ARE_RESTORED = (
    "If a class has no example at the end, the model gets the weights that it "
    "began with."
)


class WarnOfShares(keras.callbacks.Callback):
    """Warns, at the end of training, of classes predicted too often or rarely.

    Of up to 10,000 unlabelled examples a class has more than twice the share
    that is expected of it, or less than half, and the difference is more than
    chance. It needs no label.

    Args:
        network: The model whose predictions count.
        x: The unlabelled examples.
        class_prior: The shares expected, `(n,)`. `None` for equal ones.
        watch: The `WarnOnCollapse` of the same training, if it has one: what
            that has warned of is not said again.
    """

    FACTOR = 2
    # Examples that a rare class may well have more, or less, by chance.
    FEW = 10

    def __init__(self, network, x, class_prior=None, watch=None):
        super().__init__()
        self.network = network
        self.x = some_of(x, LOOKED_AT)
        self.class_prior = class_prior
        self.watch = watch or WarnOnCollapse()

    def on_train_end(self, logs=None):
        self.check(predict(self.network, self.x))

    def check(self, logits):
        """Warns of the shares of the classes in logits `(m, n)`."""
        m, n = logits.shape
        given = counts_of_classes(logits)
        expected = m * self._expected_shares(n)
        too_often = given > self.FACTOR * expected
        too_rarely = given < expected / self.FACTOR
        difference = abs(given - expected)
        off = (too_often | too_rarely) & (difference > self.FEW)
        if not off.any() or self.watch.has_named(1):
            return
        worst = int(np.argmax(off * difference))
        warn(
            "After stage 2, shares of the classes among the predictions are "
            "not those expected, by more than a factor of two. Received: "
            f"{self.watch.in_words(np.flatnonzero(off).tolist())}, with "
            f"{_percent(given[worst] / m)} of the unlabelled examples for "
            f"{self.watch.in_words([worst])} in place of "
            f"{_percent(expected[worst] / m)}, as class_prior has it (by "
            "default the pretrained network's shares, or equal ones). If you "
            "know other shares, give them as class_prior; else label more "
            "examples of these classes, or try another method."
        )

    def _expected_shares(self, n):
        if self.class_prior is None:
            return np.full(n, 1 / n)
        return np.array(self.class_prior)


class RestoreStart(WarnOfShares):
    """Takes back a training that loses a class or changes how many are rare.

    Of up to 10,000 unlabelled examples a class is lost to which the network
    gave some at the start, and gives none at the end. The rare classes are
    those to which it gave less than an even share at the start. They have
    changed if their share together is more than `largest_change` times as large
    at the end, or as small, each class counted once more, and further from that
    of the class prior.

    Args:
        network, x, class_prior, watch: As in `WarnOfShares`, which it is of a
            training that is not taken back.
        start_weights: The weights that `network` gets back. By default those
            that it has when training begins.
        largest_change: Factor, or `None` to look at lost classes alone.
    """

    def __init__(
        self,
        network,
        x,
        class_prior=None,
        watch=None,
        start_weights=None,
        largest_change=None,
    ):
        super().__init__(network, x, class_prior, watch)
        self.start_weights = start_weights
        self.largest_change = largest_change or math.inf

    def on_train_begin(self, logs=None):
        now = self.network.get_weights()
        if self.start_weights is None:
            self.start_weights = now
        # Not those of now, in a training that goes on.
        self.network.set_weights(self.start_weights)
        self.logits = predict(self.network, self.x)
        self.network.set_weights(now)

    def on_train_end(self, logs=None):
        logits = predict(self.network, self.x)
        lost = lost_classes(self.logits, logits)
        before, after, expected = self._shares_of_rare_classes(logits)
        changed = _factor(after, before) > self.largest_change
        departs = _factor(after, expected) > _factor(before, expected)
        if not lost and not (changed and departs):
            self.check(logits)
            return
        self.network.set_weights(self.start_weights)
        if not lost:
            self._warn_of_rare_classes(before, after)
        elif not self.watch.has_named(len(lost)):
            warn(
                "Stage 2 has lost classes, and the model has the weights that "
                "it began with. Received: no example of "
                f"{self.watch.in_words(lost)} any more. Label more examples of "
                "these, or try another method."
            )

    def _shares_of_rare_classes(self, logits):
        """Their share together at the start, in these logits, and expected."""
        before = counts_of_classes(self.logits) + 1
        after = counts_of_classes(logits) + 1
        expected = self._expected_shares(len(before))
        rare = before < before.mean()
        # Where all have an even share, none is.
        if not rare.any():
            return 1.0, 1.0, 1.0
        return tuple(
            shares[rare].sum() / shares.sum()
            for shares in (before, after, expected)
        )

    def _warn_of_rare_classes(self, before, after):
        warn(
            "Stage 2 has changed the share of the rare classes, and the model "
            "has the weights that it began with. Received: "
            f"{_percent(after)} of the unlabelled examples in place of "
            f"{_percent(before)}, more than a factor of {self.largest_change} "
            "apart: such a training mostly raises the error. Label more "
            "examples of these classes, give their shares as class_prior or "
            "validation_data, by which the best epoch is kept, or try "
            "another method."
        )


def _factor(one, other):
    """By how much the larger of two shares is larger."""
    return max(one / other, other / one)


def _percent(share):
    return f"{100 * share:.2f} %"


class ResetShares(keras.callbacks.Callback):
    """Has the shares of `balance_memory` begin with the prior at epoch 0."""

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 0:
            for layer in regularization_layers(self.model):
                layer.reset_shares()


class StopOnNaN(keras.callbacks.Callback):
    """Stops training with an error when a number is NaN or infinite.

    It looks at the loss after each step (on TensorFlow, after each call of
    many steps), and at the weights before the first epoch and after each: the
    kernels of a ReLU can turn NaN into 0, and hide it from the loss.

    Raises:
        FloatingPointError: names the logs or the weight that are not finite.
    """

    def on_train_begin(self, logs=None):
        self._check_weights("before training")

    def on_epoch_end(self, epoch, logs=None):
        self._check_weights(f"after epoch {epoch + 1}")

    def _check_weights(self, when):
        for weight in self.model.weights:
            if not np.isfinite(weight.numpy()).all():
                raise FloatingPointError(
                    f"The weight {weight.path} is NaN or infinite {when}. "
                    "Lower the learning rate, or check the weights that "
                    "training started from."
                )

    def on_train_batch_end(self, batch, logs=None):
        loss = (logs or {}).get("loss", 0.0)
        if math.isfinite(loss):
            return
        faulty = [k for k, value in logs.items() if not math.isfinite(value)]
        raise FloatingPointError(
            f"The loss became {loss} at step {batch + 1}. Not finite: "
            f"{', '.join(faulty)}. Lower the learning rate, or check the "
            "examples and the weights that training started from."
        )


class CoefficientSchedule(keras.callbacks.Callback):
    """Sets the coefficients of GAR at the start of each epoch.

    Args:
        **schedules: For each coefficient to change, a function from the epoch
            (counted from 0, as in Keras) to its value. The last values stay,
            also for another `fit`.

    Raises:
        ValueError: in training, if the model has no
            `GraphActivityRegularization`, if its layer has no such
            coefficient, or if a value is not valid.

    Example: a warm-up of the affinity over five epochs.

    >>> warm_up = CoefficientSchedule(
    ...     affinity=lambda epoch: 3.0 * min(1.0, (epoch + 1) / 5)
    ... )
    """

    def __init__(self, **schedules):
        super().__init__()
        self.schedules = schedules

    def on_train_begin(self, logs=None):
        self._gar_layers = _layers_to_set(self.model)

    def on_epoch_begin(self, epoch, logs=None):
        for layer in self._gar_layers:
            layer.set_coefficients(
                **{name: f(epoch) for name, f in self.schedules.items()}
            )


class GARAfter(ResetShares):
    """Trains without GAR in the first epochs, and with it from then on.

    For one `fit` on labelled and unlabelled examples: in the first epochs the
    loss is that of the labels alone, as in stage 1. The coefficients of the
    GAR layers are 0 until then, afterwards those that the layers were made
    with. The history has the affinity and the balance of all epochs. If an
    exception or Ctrl-C ends training in the first epochs, or if you save the
    model there, the coefficients are left at 0: call `set_coefficients` of
    the layer.

    Args:
        epochs: Epochs without GAR, counted from epoch 0 of `fit`, whatever
            its `initial_epoch`.

    Raises:
        ValueError: if `epochs` is not an integer of at least 0; in training, if
            the model has no `GraphActivityRegularization`.

    Warns:
        GARWarning: if training ends before GAR has begun, or if the model is
            compiled with a cross-entropy without `from_logits=True` or without
            an `ignore_class`.

    Example:

    >>> from gar_keras import SparseCategoricalAccuracy, attach
    >>> x = np.array([[1., 0.], [0., 1.], [2., 0.], [0., 2.]])
    >>> y = np.array([0, 1, -1, -1])
    >>> model = attach(keras.Sequential([keras.Input((2,)),
    ...                                  keras.layers.Dense(2)]))
    >>> model.compile(
    ...     "sgd",
    ...     keras.losses.SparseCategoricalCrossentropy(
    ...         from_logits=True, ignore_class=-1
    ...     ),
    ...     metrics=[SparseCategoricalAccuracy()],
    ... )
    >>> history = model.fit(
    ...     x, y, epochs=3, verbose=0, callbacks=[GARAfter(epochs=2)]
    ... )
    >>> [u > 0 for u in history.history["regularization"]]
    [False, False, True]
    """

    def __init__(self, epochs: int):
        super().__init__()
        self.epochs = check_count("epochs", epochs, least=0)

    def on_train_begin(self, logs=None):
        self._done = 0
        self._gar_layers = _layers_to_set(self.model)
        warn_of_loss_of_probabilities(self.model)
        warn_of_loss_of_every_label(self.model)

    def on_epoch_begin(self, epoch, logs=None):
        super().on_epoch_begin(epoch, logs)
        self._done = epoch + 1
        if epoch >= self.epochs:
            self._switch_on()
            return
        for layer in self._gar_layers:
            layer.set_coefficients(**dict.fromkeys(layer.coefficients, 0.0))

    def on_train_end(self, logs=None):
        # A fit that ended before leaves no layer behind that does nothing.
        self._switch_on()
        if 0 < self._done <= self.epochs:
            warn(
                f"GAR never began: training ended after epoch {self._done}. "
                f"Received: GARAfter(epochs={self.epochs}), which leaves the "
                "first epochs to the labels. Train for more epochs than that, "
                "or lower its epochs."
            )

    def _switch_on(self):
        for layer in self._gar_layers:
            layer.set_coefficients(**layer.made_with)


def _layers_to_set(model):
    """The GAR layers of a model, whose coefficients a callback sets."""
    layers = regularization_layers(model)
    if not layers:
        raise ValueError(
            "The model has no GraphActivityRegularization layer. Received: "
            f"model={model.name!r}. Put one behind its logits, e.g. with "
            "gar_keras.attach."
        )
    return layers


# As `compile` takes them: a name, a function or an object.
_CROSS_ENTROPIES = {
    "categorical_crossentropy": keras.losses.CategoricalCrossentropy,
    "sparse_categorical_crossentropy": (
        keras.losses.SparseCategoricalCrossentropy
    ),
}


@dataclass(frozen=True)
class Advice:
    """What can be done in a training that goes wrong, and is not done yet.

    Its words are those of the call that trains; by default of a `fit` of one's
    own.

    Args:
        rate: What to train again with, so that no class is lost.
        labels: How to have the labels used. `None` if they are.
        prior: How to give the shares of the classes. `None` if that cannot be.
        kept: Which weights the model ends with, as a sentence.
    """

    rate: str = "a lower learning rate"
    labels: str | None = None
    prior: str | None = "as class_prior to the GAR layer"
    kept: str = ""


def warn_of_loss_of_probabilities(model):
    """Warns if the cross-entropy that a model is compiled with wants them."""
    options = _cross_entropy(model)
    if options and not options["from_logits"]:
        warn(
            "The loss takes the logits that GAR needs for probabilities, and "
            f"cuts them off at 0 and 1. Received: loss={options['name']!r} "
            "with from_logits=False. Compile the model with from_logits=True."
        )


def warn_of_loss_of_every_label(model):
    """Warns if the cross-entropy of a model would count labels of -1."""
    options = _cross_entropy(model)
    if options and options.get("ignore_class", -1) is None:
        warn(
            "The loss counts each label, also -1 of examples that have none. "
            f"Received: loss={options['name']!r} with ignore_class=None. "
            "Compile the model with ignore_class=-1 in the loss."
        )


def _cross_entropy(model):
    """Config of the cross-entropy that a model is compiled with, or {}."""
    loss = getattr(model.loss, "__name__", model.loss)
    if isinstance(loss, str) and loss in _CROSS_ENTROPIES:
        loss = _CROSS_ENTROPIES[loss]()
    known = isinstance(loss, tuple(_CROSS_ENTROPIES.values()))
    return loss.get_config() if known else {}


class WarnOnCollapse(keras.callbacks.Callback):
    """Warns when stage 2 loses classes or otherwise goes wrong.

    It looks at what a `GraphActivityRegularization` and an `ErrorRate` put
    into the logs; it costs no time, and needs no label. It says nothing of
    layers whose coefficients are all 0, nor of epochs in which the learning
    rate warms up (see `gar_keras.engine.optimizers.SGD`).

    *Classes are missing.* A warning names the classes that are not in use at
    the end of an epoch, if they are more than in any epoch before: those that
    got less than 1 % of the latest examples that should be theirs (with a
    `class_prior`, according to their shares; see
    `gar_keras.metrics.ClassesInUse`). All examples of a batch count, the
    labelled ones too; no class is named before 50 examples should have been
    its own in an epoch. An `activity_regularizer` is not watched.

    *The batches are too small.* Many classes are missing from a batch, and the
    balance gives their outputs images of others. A warning comes once, where
    `gar_keras.expected_balance` is below 3/4 (about three images to a class),
    and the balance at the end of an epoch is above it by more than a quarter
    of what is left to 1. It advises `10 * mean(1 / p)` images.

    *The validation error rises.* A warning comes once, when it was above
    `error_before` in each of the last five epochs, or in all of them where
    training ends sooner. An error `e'` counts as above `e` of as many images
    only by more than chance gives: `2 * sqrt((e (1 - e) + e' (1 - e')) / m)`,
    two standard errors of the difference.

    *The loss is for probabilities.* A warning comes at the start if a model
    compiled with a cross-entropy has it without `from_logits=True`.

    Warnings are `gar_keras.GARWarning`s; `gar_keras.regularize` always issues
    them. Turn them into errors with
    `warnings.simplefilter("error", gar_keras.GARWarning)`.

    Args:
        error_before: Validation error that stage 2 starts from, from 0 to 1,
            for a model whose logs have `val_error`. `None` to look at the
            classes and the balance alone.
        earlier: Logs of the epochs that are done already, a dict each, when
            training goes on. What was warned of then is warned of again, but
            for classes, of which it is not known which ones were lost.
        batch_size: Images in a batch, the labelled ones among them. `None`
            where that is not known: no batches are found too small.
        class_names: What the warnings call the classes, in the order of the
            logits. `None` for their indices.
        num_validation: m, the images that the validation error is of.
        advice: An `Advice` in the words of the call that trains.

    Example:

    >>> from gar_keras import GraphActivityRegularization
    >>> inputs = keras.Input((4,))
    >>> outputs = GraphActivityRegularization()(keras.layers.Dense(3)(inputs))
    >>> model = keras.Model(inputs, outputs)
    >>> model.compile("sgd", loss=None)
    >>> history = model.fit(
    ...     np.eye(4), verbose=0, callbacks=[WarnOnCollapse()]
    ... )
    """

    LEAST_EXPECTED_BALANCE = 0.75
    PATIENCE = 5
    STANDARD_ERRORS = 2

    def __init__(
        self,
        error_before=None,
        earlier=(),
        batch_size=None,
        class_names=None,
        num_validation=None,
        advice=None,
    ):
        super().__init__()
        self.error_before = error_before
        self.earlier = earlier
        self.batch_size = batch_size
        self.class_names = class_names
        self.num_validation = num_validation
        self.advice = advice or Advice()
        self._most_unused = {}

    def on_train_begin(self, logs=None):
        self._watched = regularization_layers(self.model)
        if self._watched:
            warn_of_loss_of_probabilities(self.model)
        # By the name of the layer's metric.
        self._unused = {}
        self._most_unused = {}
        self._batches_are_small = False
        # Whether the error of each epoch was above that of stage 1.
        self._above = []
        self._grows_worse = False
        for epoch, row in enumerate(self.earlier):
            self.on_epoch_begin(epoch)
            self._note_earlier(row)
            self.on_epoch_end(epoch, row)

    def on_epoch_begin(self, epoch, logs=None):
        self._epoch = epoch + 1
        self._unused = {}

    def on_train_batch_end(self, batch, logs=None):
        for layer in self._watched:
            name = layer.usage.name
            self._unused[name] = []
            if (logs or {}).get(name, math.inf) < layer.num_classes:
                backend.return_state(self.model)
                if _is_on(layer):
                    self._unused[name] = layer.usage.unused()
        # Now, as other callbacks save what has been warned of at the end.
        if batch + 1 == (self.params or {}).get("steps"):
            self._name_classes()

    def on_epoch_end(self, epoch, logs=None):
        self._name_classes()
        if self._warms_up():
            return
        logs = logs or {}
        for layer in filter(_is_on, self._watched):
            self._check_batches(layer, logs.get(layer.metric_name("balance")))
        self._check_error(logs.get("val_error"))

    def on_train_end(self, logs=None):
        self.warns_of_error()

    def warns_of_error(self, kept=None):
        """Whether it has warned of the validation error, or does so now.

        To be called at the end of training, with what is `Advice.kept` then.
        """
        if self._above and len(self._above) < self.PATIENCE:
            self._warn_if_above(self._above, kept)
        return self._grows_worse

    def has_named(self, number):
        """Whether it has warned that so many classes are missing."""
        return max(self._most_unused.values(), default=0) >= number

    def in_words(self, classes):
        """Classes by their names."""
        names = self.class_names
        return _in_words([names[i] for i in classes] if names else classes)

    def _warms_up(self):
        """Whether the learning rate rises until the end of the epoch."""
        optimizer = getattr(self.model, "optimizer", None)
        # Of mixed precision in float16.
        optimizer = getattr(optimizer, "inner_optimizer", optimizer)
        steps = (self.params or {}).get("steps") or math.inf
        return self._epoch * steps <= getattr(optimizer, "warmup_steps", 0)

    def _note_earlier(self, logs):
        """Notes how many classes were missed in an earlier epoch."""
        for layer in self._watched:
            name = layer.usage.name
            if logs.get(name) is not None and not self._warms_up():
                missed = layer.num_classes - logs[name]
                before = self._most_unused.get(name, 0)
                self._most_unused[name] = max(before, missed)

    def _name_classes(self):
        """Warns of the classes not in use, if there are more than before."""
        for layer in self._watched:
            name = layer.usage.name
            unused = self._unused.get(name, [])
            before = self._most_unused.get(name, 0)
            if len(unused) > before and not self._warms_up():
                self._most_unused[name] = len(unused)
                self._warn_of_missing(layer, unused)

    def _warn_of_missing(self, layer, classes):
        words = self.in_words(classes)
        labels = self.advice.labels
        or_labels = f", or {labels}" if labels else ""
        plain = layer.metric_name("balance") == "balance"
        place = "" if plain else f" in the layer {layer.name!r}"
        warn(
            f"Stage 2 is without {words}{place}: at the end of epoch "
            f"{self._epoch} hardly any example is classified so. One that is "
            "lost rarely comes back: start again from the pretrained model, "
            f"with {self.advice.rate}{or_labels}. One that the pretrained "
            "model did not know is not learned: pretrain longer, or on more "
            "labels of it."
            f"{self._on_prior_and_weights()}"
        )

    def _on_prior_and_weights(self, kept=None):
        """The end of an advice."""
        text = ""
        has_prior = all(layer.class_prior for layer in self._watched)
        if self.advice.prior and not has_prior:
            where = self.advice.prior
            text = f" If classes are imbalanced, give their shares {where}."
        return f"{text} {kept or self.advice.kept}".rstrip()

    def _check_batches(self, layer, balance):
        m, n, p = self.batch_size, layer.num_classes, layer.class_prior
        if self._batches_are_small or m is None or balance is None:
            return
        # Of a class without an image in most batches, the mean says little.
        if p is not None and m * min(p) < 1:
            return
        right = expected_balance(m, n, p)
        above = balance > right + (1 - right) / 4
        if right < self.LEAST_EXPECTED_BALANCE and above:
            self._batches_are_small = True
            enough = round(10 * np.mean(1 / np.array(p or [1 / n])))
            labels = self.advice.labels
            or_labels = f", or start again with {labels}" if labels else ""
            warn(
                f"The batches are too small: after epoch {self._epoch} the "
                f"{layer.metric_name('balance')} is {balance:.3f}, but {m} "
                f"rightly classified examples of {n} classes have about "
                f"{right:.3f}. Examples are being spread over classes that "
                "their batch does not have. Take batches of "
                f"{enough} examples or more{or_labels}."
            )

    def _check_error(self, error):
        before, m = self.error_before, self.num_validation
        if error is None or before is None:
            return
        variance = (before * (1 - before) + error * (1 - error)) / m
        chance = self.STANDARD_ERRORS * math.sqrt(variance)
        self._error = error
        self._above.append(error - before > chance)
        if len(self._above) >= self.PATIENCE:
            self._warn_if_above(self._above[-self.PATIENCE :])

    def _warn_if_above(self, above, kept=None):
        if self._grows_worse or not all(above):
            return
        self._grows_worse = True
        warn(
            "Stage 2 makes the model worse: the validation error was "
            f"{100 * self.error_before:.2f} % before, and is "
            f"{100 * self._error:.2f} % now (epochs above in a row: "
            f"{len(above)}). Check that the unlabelled examples are of the "
            "same classes and scaled as the labelled ones, pretrain longer or "
            "on more labels, or lower the learning rate."
            f"{self._on_prior_and_weights(kept)}"
        )


def _is_on(layer):
    """Whether GAR is switched on: before, there is nothing for it to lose."""
    return any(layer.coefficients.values())


def _in_words(classes, most=10):
    """Classes, by index or name, in words.

    >>> _in_words([2]), _in_words([2, 4, 7], most=1)
    ('class 2', 'classes 2 and 2 more')
    """
    listed = ", ".join(map(str, classes[:most]))
    more = f" and {len(classes) - most} more" if classes[most:] else ""
    return f"class{'es' if len(classes) > 1 else ''} {listed}{more}"
