"""Keras callbacks for training with GAR."""

import contextlib
import math

import keras
import numpy as np

from gar_keras.engine import backend
from gar_keras.engine.data import some_of
from gar_keras.engine.fit import predict
from gar_keras.engine.graphs import has_graph
from gar_keras.engine.keras_internals import is_lost, operation_behind
from gar_keras.layers import regularization_layers
from gar_keras.metrics import (
    checked_logits,
    counts_of_classes,
    error_of,
    log_loss,
)
from gar_keras.regularizers import (
    PROBABILITIES,
    activation_of,
    expected_balance,
)
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


class _SyncSteps(keras.callbacks.Callback):
    """Gives a model in training its weights after each step, on JAX.

    Within an epoch `fit` has them, and syncs those of the model of a callback:
    that of a `ModelCheckpoint` is another one with the same weights.
    """

    def on_train_batch_end(self, batch, logs=None):
        if backend.name() == "jax":
            self.model.jax_state_sync()


@contextlib.contextmanager
def checkpoints_of(model, callbacks):
    """Has each `ModelCheckpoint` write this model, not the one in training.

    Gives the callbacks for `fit`.
    """
    checkpoints = [
        callback
        for callback in callbacks
        if isinstance(callback, keras.callbacks.ModelCheckpoint)
    ]
    for checkpoint in checkpoints:
        checkpoint.set_model(model)
        # `fit` would give it the other.
        checkpoint.set_model = lambda _: None
    if any(checkpoint.save_freq != "epoch" for checkpoint in checkpoints):
        callbacks = [_SyncSteps(), *callbacks]
    try:
        yield callbacks
    finally:
        for checkpoint in checkpoints:
            del checkpoint.set_model


class ErrorRate(keras.callbacks.Callback):
    """Measures the error of the model at the end of each epoch.

    The error is that of `gar_keras.error_rate`. It appears in the logs under
    the name given, for the callbacks that follow and in the history. With each
    name that ends in `_error` come the accuracy, `1 - error`, and the mean
    cross-entropy of the labels, by the names that Keras has for them:
    `val_accuracy` and `val_loss` with `val_error`.

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
        for name, (x, y) in self.sets.items():
            logits, y = checked_logits(self.model, x, y)
            error = logs[name] = error_of(logits, y)
            if name.endswith("_error"):
                of = name.removesuffix("_error")
                logs[f"{of}_accuracy"] = 1 - error
                logs[f"{of}_loss"] = log_loss(logits, y)

    def measure(self, model):
        """The errors of a model by name, each a float from 0 to 1."""
        return {
            name: error_of(*checked_logits(model, x, y))
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


def _warn_of_error(before, after, when, which_weights=""):
    warn(
        "Stage 2 makes the model worse: the validation error was "
        f"{_percent(before)} before, and is {_percent(after)} {when}."
        f"{which_weights} Check that the unlabelled examples are of the same "
        "classes and scaled as the labelled ones, pretrain longer or on more "
        "labels, or lower the learning rate. If classes are imbalanced, give "
        "their shares as class_prior."
    )


class WarnOfError(keras.callbacks.Callback):
    """Warns, at the end of training, of a validation error that has risen.

    The error `e'` of the weights that it ends with counts as above `e` of the
    start only by more than chance gives: `2 * sqrt((e (1 - e) + e' (1 - e')) /
    m)`, two standard errors of the difference.

    Args:
        start: Validation error of the weights that training begins with, from
            0 to 1.
        network: The model whose predictions count.
        x, y: The m validation examples, and their class indices.
    """

    STANDARD_ERRORS = 2

    def __init__(self, start, network, x, y):
        super().__init__()
        self.start = start
        self.network = network
        self.x = x
        self.y = y

    def on_train_end(self, logs=None):
        # A callback may have restored the weights of another epoch.
        logits, y = checked_logits(self.network, self.x, self.y)
        error = error_of(logits, y)
        variance = self.start * (1 - self.start) + error * (1 - error)
        chance = self.STANDARD_ERRORS * math.sqrt(variance / len(y))
        if error - self.start > chance:
            _warn_of_error(self.start, error, "at its end")


class BestWeights(keras.callbacks.Callback):
    """Keeps the weights of the epoch with the least validation error.

    Of several such epochs the last one counts: the error on few examples often
    stays the same for many epochs in which the model grows better. At the end
    of training the model gets these weights. Where an exception ends it, Keras
    tells no callback: `gar_keras.regularize` calls `restore` then. It needs an
    `ErrorRate` in front of it.

    Args:
        start: Validation error of the weights that training begins with, which
            are kept, with a warning, if every epoch has a greater one.
        network: The model whose weights are kept.
        start_weights: Those that training begins with.
    """

    weights = None

    def __init__(self, start, network, start_weights):
        super().__init__()
        self.start = start
        self.network = network
        self.start_weights = start_weights

    def on_train_begin(self, logs=None):
        self.best, self.weights = self.start, self.start_weights
        self._least = math.inf

    def on_epoch_end(self, epoch, logs=None):
        self._least = min(self._least, logs["val_error"])
        if logs["val_error"] <= self.best:
            self.best = logs["val_error"]
            self.weights = self.network.get_weights()

    def on_train_end(self, logs=None):
        if self._least == math.inf:
            # Without an epoch there is none to choose, and what a
            # BackupAndRestore has loaded stays.
            self.weights = None
            return
        if self.restore() and self.start < self._least:
            _warn_of_error(
                self.start,
                self._least,
                "at best",
                " Every epoch has a greater error than the weights that "
                "training began with: the model has these.",
            )

    def restore(self):
        """Gives the model the best weights so far. `False` if it has none."""
        if self.weights is None:
            return False
        self.network.set_weights(self.weights)
        # The weights belong to this training, not to the next one.
        self.weights = None
        return True


def end_last(callbacks):
    """A callback that ends others, which do not where they stand themselves."""
    ends = [callback.on_train_end for callback in callbacks]

    def on_train_end(logs):
        for end in ends:
            end(logs)

    for callback in callbacks:
        callback.on_train_end = lambda logs=None: None
    return keras.callbacks.LambdaCallback(on_train_end=on_train_end)


class LastEpoch(keras.callbacks.Callback):
    """Keeps all values of a model in training as they are between epochs.

    A step on JAX takes them out of the model, and gives none back where it is
    interrupted: then `restore` puts in those from before the epoch. On other
    backends it does nothing.
    """

    _kept = ()

    def on_train_begin(self, logs=None):
        self._keep()

    def on_epoch_end(self, epoch, logs=None):
        self._keep()

    def _keep(self):
        if backend.name() == "jax":
            model = self.model
            variables = [
                *model.variables,
                *model.metrics_variables,
                *model.optimizer.variables,
            ]
            # Copies: the next step takes the memory of the arrays.
            self._kept = [
                (v, np.array(keras.ops.convert_to_numpy(v))) for v in variables
            ]

    def restore(self):
        if any(is_lost(variable) for variable, _ in self._kept):
            for variable, value in self._kept:
                variable.assign(value)


@contextlib.contextmanager
def ending_with(network, stage_2, start, callbacks):
    """Has a training, whatever ends it, leave a network with the right weights.

    Those of the model that was evaluated; where an exception ends the training,
    Ctrl-C among them, of whose end Keras does not tell the callbacks, the best
    ones that a `BestWeights` has. Where there are none, those of the `start`
    after a loss that is not finite, or if no step was done.
    """
    evaluated = stage_2.evaluated
    first_step = int(keras.ops.convert_to_numpy(stage_2.step))
    try:
        yield
    except BaseException as e:
        for callback in callbacks:
            if isinstance(callback, LastEpoch):
                callback.restore()
        keepers = [c for c in callbacks if isinstance(c, BestWeights)]
        restored = [keeper.restore() for keeper in keepers]
        steps = int(keras.ops.convert_to_numpy(stage_2.step)) - first_step
        is_void = isinstance(e, FloatingPointError) or not steps
        if is_void and not any(restored):
            evaluated.set_weights(start)
        network.set_weights(evaluated.get_weights())
        raise
    if evaluated is not network:
        network.set_weights(evaluated.get_weights())


# Examples whose classes are looked at before and after a training.
LOOKED_AT = 10_000


class CheckShares(keras.callbacks.Callback):
    """Checks, at the end of training, how often each class is predicted.

    Of up to 10,000 unlabelled examples, without a label. It gives one warning
    at most, for the first of these that is so:

    - a class is lost, to which the network gave some at the start, and gives
      none at the end;
    - the share of the rare classes together, to which the network gave less
      than an even share at the start, is more than `largest_change` times as
      large at the end, or as small, each class counted once more, and further
      from that of the class prior;
    - a class has more than twice the share that is expected of it, or less
      than half, and the difference is more than chance.

    In the first two cases the network gets its weights of the start back.

    Args:
        network: The model whose predictions count.
        x: The unlabelled examples.
        class_prior: The shares expected, `(n,)`. `None` for equal ones.
        restores: Whether it looks for the first two cases.
        start_weights: The weights that `network` gets back.
        largest_change: Factor, or `None` to look at lost classes alone.
        class_names: As of `gar_keras.regularize`.
    """

    FACTOR = 2
    # Examples that a rare class may well have more, or less, by chance.
    FEW = 10

    def __init__(
        self,
        network,
        x,
        class_prior=None,
        restores=True,
        start_weights=None,
        largest_change=None,
        class_names=None,
    ):
        super().__init__()
        self.network = network
        self.x = some_of(x, LOOKED_AT)
        self.class_prior = class_prior
        self.restores = restores
        self.start_weights = start_weights
        self.largest_change = largest_change or math.inf
        self.class_names = class_names

    def on_train_begin(self, logs=None):
        if not self.restores:
            return
        now = self.network.get_weights()
        # Not those of now, in a training that goes on.
        self.network.set_weights(self.start_weights)
        try:
            self._before = counts_of_classes(predict(self.network, self.x))
        finally:
            self.network.set_weights(now)

    def on_train_end(self, logs=None):
        after = counts_of_classes(predict(self.network, self.x))
        shares = self.class_prior
        if shares is None:
            shares = np.full(len(after), 1 / len(after))
        if self.restores:
            text = self._reason_to_restore(after, shares)
            if text is not None:
                self.network.set_weights(self.start_weights)
                warn(text)
                return
        m = after.sum()
        expected = m * np.array(shares)
        difference = abs(after - expected)
        too_often = after > self.FACTOR * expected
        too_rarely = after < expected / self.FACTOR
        off = (too_often | too_rarely) & (difference > self.FEW)
        if not off.any():
            return
        worst = int(np.argmax(off * difference))
        warn(
            "After stage 2, shares of the classes among the predictions are "
            "not those expected, by more than a factor of two. Received: "
            f"{_in_words(np.flatnonzero(off), self.class_names)}, with "
            f"{_percent(after[worst] / m)} of the unlabelled examples for "
            f"{_in_words([worst], self.class_names)} in place of "
            f"{_percent(expected[worst] / m)}, as class_prior has it (by "
            "default the pretrained network's shares, or equal ones). If you "
            "know other shares, give them as class_prior; else label more "
            "examples of these classes, or try another method."
        )

    def _reason_to_restore(self, after, expected):
        """What is wrong with the numbers at the end, or `None`."""
        lost = np.flatnonzero((self._before > 0) & (after == 0))
        if len(lost):
            return (
                "Stage 2 has lost classes, and the model has the weights that "
                "it began with. Received: no example of "
                f"{_in_words(lost, self.class_names)} any more. Label more "
                "examples of these, or try another method."
            )
        before, after = self._before + 1, after + 1
        rare = before < before.mean()
        # Where all classes have an even share, none is rare.
        if not rare.any():
            return None
        before, after, expected = (
            np.sum(shares[rare]) / np.sum(shares)
            for shares in (before, after, np.array(expected))
        )
        departs = _factor(after, expected) > _factor(before, expected)
        if _factor(after, before) <= self.largest_change or not departs:
            return None
        return (
            "Stage 2 has changed the share of the rare classes, and the model "
            "has the weights that it began with. Received: "
            f"{_percent(after)} of the unlabelled examples in place of "
            f"{_percent(before)}, more than a factor of {self.largest_change} "
            "apart: where they are rare, that mostly raises the error. If the "
            "pretrained network is often wrong, its shares tell little: "
            "pretrain longer. Else give the shares as class_prior, label more "
            "examples of these classes, or give validation_data, by which the "
            "best epoch is kept."
        )


def _factor(one, other):
    """By how much the larger of two shares is larger."""
    return max(one / other, other / one)


def _percent(share):
    return f"{100 * share:.2f} %"


def _in_words(classes, names=None, most=10):
    """Classes, by index or name, in words.

    >>> _in_words([2]), _in_words([2, 4, 7], most=1)
    ('class 2', 'classes 2 and 2 more')
    """
    listed = [str(i if names is None else names[i]) for i in classes]
    more = f" and {len(listed) - most} more" if listed[most:] else ""
    word = "classes" if len(listed) > 1 else "class"
    return f"{word} {', '.join(listed[:most])}{more}"


class StopOnNaN(keras.callbacks.Callback):
    """Stops training with an error when a number is NaN or infinite.

    It looks at the loss after each call of steps, and at the weights before the
    first epoch and after each: the kernels of a ReLU can turn NaN into 0.

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


CROSS_ENTROPIES = (
    keras.losses.CategoricalCrossentropy,
    keras.losses.SparseCategoricalCrossentropy,
)


class GARAfter(keras.callbacks.Callback):
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
        GARWarning: if training ends before GAR has begun, if the loss of the
            first epoch is 0, so that nothing is trained, or if the model is
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
        self._gar_layers = regularization_layers(self.model)
        if not self._gar_layers:
            raise ValueError(
                "The model has no GraphActivityRegularization layer. Received: "
                f"model={self.model.name!r}. Put one behind its logits, e.g. "
                "with gar_keras.attach."
            )
        # Of several outputs, one can be without GAR.
        losses = map(keras.losses.get, keras.tree.flatten(self.model.loss))
        entropies = [loss for loss in losses if _is_cross_entropy(loss)]
        needs_logits = not _gives_probabilities(self.model)
        if entropies and not any(
            _fits_gar(loss, needs_logits) for loss in entropies
        ):
            received = ", ".join(repr(_name_of(loss)) for loss in entropies)
            warn(
                "GAR needs logits, and examples without a label have -1, but "
                "the loss takes probabilities, or counts each label. Received: "
                f"loss={received}. Compile the model with "
                "keras.losses.SparseCategoricalCrossentropy(from_logits=True, "
                "ignore_class=-1)."
            )

    def on_epoch_begin(self, epoch, logs=None):
        self._done = epoch + 1
        for layer in self._gar_layers:
            if epoch == 0:
                layer.reset_shares()
            if epoch < self.epochs:
                off = dict.fromkeys(layer.coefficients, 0.0)
                layer.set_coefficients(**off)
            else:
                layer.set_coefficients(**layer.made_with)

    def on_epoch_end(self, epoch, logs=None):
        loss = (logs or {}).get("loss")
        if epoch == 0 and self.epochs and loss == 0:
            warn(
                "Nothing is trained before GAR begins: the loss of epoch 1 is "
                f"0. Received: GARAfter(epochs={self.epochs}). Compile the "
                "model with a cross-entropy and give fit labels (in a "
                "train_step of your own, update the metric 'loss'), or take "
                "epochs=0."
            )

    def on_train_end(self, logs=None):
        # A fit that ended before leaves no layer behind that does nothing.
        for layer in self._gar_layers:
            layer.set_coefficients(**layer.made_with)
        if 0 < self._done <= self.epochs:
            warn(
                f"GAR never began: training ended after epoch {self._done}. "
                f"Received: GARAfter(epochs={self.epochs}), which leaves the "
                "first epochs to the labels. Train for more epochs than that, "
                "or lower its epochs."
            )


def _is_cross_entropy(loss):
    """Whether a loss, a function or a `Loss`, is one of classes."""
    if isinstance(loss, keras.losses.Loss):
        return isinstance(loss, CROSS_ENTROPIES)
    return _name_of(loss).endswith("categorical_crossentropy")


def _name_of(loss):
    """What a loss is called, a function or a `Loss`."""
    if isinstance(loss, keras.losses.Loss):
        return loss.name
    return str(getattr(loss, "__name__", loss))


def _fits_gar(loss, needs_logits):
    """Whether a cross-entropy takes what it needs, and no label of -1."""
    if not isinstance(loss, keras.losses.Loss):
        # Keras' defaults: probabilities, and a sparse one counts each label.
        return not needs_logits and not _name_of(loss).startswith("sparse")
    options = loss.get_config()
    counts_all = options.get("ignore_class", -1) is None
    takes_logits = options.get("from_logits", False)
    return (takes_logits or not needs_logits) and not counts_all


def _gives_probabilities(model):
    """Whether all outputs of a model are known to be probabilities."""
    if not has_graph(model):
        return False
    ends = map(operation_behind, model.outputs)
    return all(activation_of(end) in PROBABILITIES for end in ends)


def warn_of_idle(received):
    """Warns of logits with which the loss of GAR has no gradient."""
    warn(
        "GAR does nothing: no logit is above 0, and its loss is of rectified "
        f"logits. Received: {received}. End the model in a Dense layer without "
        "activation, or add a constant to its logits."
    )


class WarnOnCollapse(keras.callbacks.Callback):
    """Warns when stage 2 loses classes, or its batches are too small.

    It looks at what a `GraphActivityRegularization` measures in each epoch, and
    needs no label. It says nothing of layers whose coefficients are all 0, nor
    of epochs in which the learning rate warms up. Put it in front of a callback
    that evaluates the model, which would count in the same metrics.

    *GAR does nothing.* No logit of an epoch was above 0, and the loss of
    rectified logits has no gradient.

    *Classes are missing.* A warning names the classes that are not in use at
    the end of an epoch, if they are more than in any epoch before; see
    `gar_keras.metrics.ClassesInUse`. No class is named before 50 examples
    should have been its own in an epoch.

    *The batches are too small.* Many classes are missing from a batch, and the
    balance gives their outputs images of others. A warning comes once, where
    `gar_keras.expected_balance` is below 3/4 (about three images to a class),
    and the balance of an epoch is above it by more than a quarter of what is
    left to 1. It advises `10 * mean(1 / p)` images.

    Args:
        batch_size: Images in a batch, the labelled ones among them. `None`
            where that is not known: no batches are found too small.
        class_names: As of `gar_keras.regularize`.
        earlier: Logs of the epochs that are done already, a dict each, when
            training goes on. What was warned of then is warned of again, but
            for classes, of which it is not known which ones were lost.

    Example:

    >>> callbacks = [WarnOnCollapse(batch_size=128)]    # of a `fit`
    """

    LEAST_EXPECTED_BALANCE = 0.75

    def __init__(self, batch_size=None, class_names=None, earlier=()):
        super().__init__()
        self.batch_size = batch_size
        self.class_names = class_names
        self.earlier = earlier

    def on_train_begin(self, logs=None):
        self._layers = regularization_layers(self.model)
        if not self._layers:
            warn(
                "WarnOnCollapse watches nothing: the model has no "
                "GraphActivityRegularization layer. Received: "
                f"model={self.model.name!r}. Put one behind its logits, e.g. "
                "with gar_keras.attach, and fit what attach gives."
            )
        names = [layer.metric_name("balance") for layer in self._layers]
        if len({*names}) < len(names):
            warn(
                "Several GAR layers go by the same names in the logs, which "
                f"show the last of them. Received: {', '.join(names)}. Give "
                "each layer a name, GraphActivityRegularization(name=...)."
            )
        self._is_told_idle = [False] * len(self._layers)
        # The most classes missing so far, of each layer.
        self._most_missing = [0] * len(self._layers)
        self._batches_are_small = False
        warmup_steps, done = self._steps()
        for epoch, row in enumerate(self.earlier):
            missing = [
                layer.num_classes - row.get(layer.usage.name, layer.num_classes)
                for layer in self._layers
            ]
            by_then = done * (epoch + 1) // len(self.earlier)
            if not warmup_steps or by_then > warmup_steps:
                self._most_missing = np.maximum(self._most_missing, missing)
                self._check_batches(epoch, row)

    def on_epoch_begin(self, epoch, logs=None):
        self._unused = None

    def on_test_begin(self, logs=None):
        # Validation, which counts in the same metric, comes before the end of
        # the epoch.
        if self._unused is None:
            self._unused = [layer.usage.unused() for layer in self._layers]

    def on_epoch_end(self, epoch, logs=None):
        self.on_test_begin()
        self._check_logits(epoch, logs or {})
        warmup_steps, done = self._steps()
        if warmup_steps and done <= warmup_steps:
            return
        for i, layer in enumerate(self._layers):
            unused = self._unused[i]
            is_on = any(layer.coefficients.values())
            if is_on and len(unused) > self._most_missing[i]:
                self._most_missing[i] = len(unused)
                is_plain = layer.metric_name("balance") == "balance"
                where = "" if is_plain else f" in the layer {layer.name!r}"
                prior = ""
                if layer.class_prior is None:
                    prior = (
                        " If classes are imbalanced, give their shares as "
                        "class_prior to the GAR layer."
                    )
                warn(
                    f"Stage 2 is without {_in_words(unused, self.class_names)}"
                    f"{where}: at the end of epoch {epoch + 1} hardly any "
                    "example is classified so. One that is lost rarely comes "
                    "back: start again from the pretrained model, with a lower "
                    "learning rate, or with the labels in the loss "
                    "(method='safe-gar'). One that the pretrained model did "
                    "not know is not learned: pretrain longer, or on more "
                    f"labels of it.{prior}"
                )
        self._check_batches(epoch, logs or {})

    def _steps(self):
        """Steps in which the learning rate rises, and those that are done."""
        optimizer = getattr(self.model, "optimizer", None)
        # In float16 it is inside a LossScaleOptimizer.
        optimizer = getattr(optimizer, "inner_optimizer", optimizer)
        warmup_steps = getattr(optimizer, "warmup_steps", 0)
        if not warmup_steps:
            return 0, 0
        # Those of accumulated gradients count once together.
        at_once = optimizer.gradient_accumulation_steps or 1
        done = int(keras.ops.convert_to_numpy(optimizer.iterations))
        return warmup_steps, done * at_once

    def _check_logits(self, epoch, logs):
        """Warns, once, of a layer whose rectified logits were all 0."""
        for i, layer in enumerate(self._layers):
            balance_name = layer.metric_name("balance")
            affinity = logs.get(layer.metric_name("affinity"), 0.0)
            balance = logs.get(balance_name, math.nan)
            # Without any logit a running balance is that of the prior.
            idle_balance = 1.0 if layer.balance_memory else 0.0
            is_on = any(layer.coefficients.values())
            # Of one class alone both are 0 as well.
            used = layer.num_classes - len(self._unused[i])
            is_idle = (
                is_on
                and used > 1
                and affinity == 0.0
                and abs(balance - idle_balance) < 1e-6
            )
            if is_idle and not self._is_told_idle[i]:
                self._is_told_idle[i] = True
                warn_of_idle(
                    f"affinity=0 and {balance_name}={idle_balance:g} in epoch "
                    f"{epoch + 1}"
                )

    def _check_batches(self, epoch, logs):
        """Warns, once, if the balance is above what such batches can have."""
        m = self.batch_size
        if self._batches_are_small or m is None:
            return
        for layer in self._layers:
            balance = logs.get(layer.metric_name("balance"))
            n, p = layer.num_classes, layer.class_prior
            # The mean says little if most batches are without a class.
            lacks_class = p is not None and m * min(p) < 1
            # A running balance is of more than one batch.
            if balance is None or lacks_class or layer.balance_memory:
                continue
            right = expected_balance(m, n, p)
            is_above = balance > right + (1 - right) / 4
            if right >= self.LEAST_EXPECTED_BALANCE or not is_above:
                continue
            self._batches_are_small = True
            enough = round(10 * np.mean(1 / np.array(p or [1 / n])))
            warn(
                f"The batches are too small: after epoch {epoch + 1} the "
                f"{layer.metric_name('balance')} is {balance:.3f}, but {m} "
                f"rightly classified examples of {n} classes have about "
                f"{right:.3f}. Examples are being spread over classes that "
                f"their batch does not have. Take batches of {enough} examples "
                "or more, or method='safe-gar', whose balance is over several "
                "batches."
            )
            return


class WarnOfOrder(keras.callbacks.Callback):
    """Warns if the batches of a data set hold few of the classes each.

    Those of sorted examples do. A warning comes once, where all classes are in
    use, but the balance is below half of `gar_keras.expected_balance` in two
    epochs in a row. Of a layer with a class prior or with a running balance
    nothing is said.

    Args:
        batch_size: Images in a batch, the labelled ones among them.
    """

    def __init__(self, batch_size):
        super().__init__()
        self.batch_size = batch_size

    def on_train_begin(self, logs=None):
        # A class prior that is not quite right makes the balance low as well.
        self._layers = [
            layer
            for layer in regularization_layers(self.model)
            if layer.class_prior is None and not layer.balance_memory
        ]
        self._epochs_low = [0] * len(self._layers)
        self._is_told = False

    def on_epoch_end(self, epoch, logs=None):
        logs = logs or {}
        for i, layer in enumerate(self._layers):
            n, name = layer.num_classes, layer.metric_name("balance")
            balance, used = logs.get(name), logs.get(layer.usage.name)
            is_on = layer.coefficients.get("balance", 0) > 0
            right = expected_balance(self.batch_size, n)
            # Without any positive logit the balance is 0.
            if is_on and used == n and 0 < balance < right / 2:
                self._epochs_low[i] += 1
            else:
                self._epochs_low[i] = 0
            if self._epochs_low[i] == 2 and not self._is_told:
                self._is_told = True
                warn(
                    "Either the batches hold few of the classes each, or these "
                    f"are imbalanced: in epoch {epoch + 1} the {name} is "
                    f"{balance:.3f}, but {self.batch_size} examples of {n} "
                    f"equal classes have about {right:.3f}. GAR gives examples "
                    "to classes that they are not of. Shuffle single examples "
                    "before they are batched, or give the shares of the "
                    "classes as class_prior."
                )
