"""Signs that GAR goes wrong in training: lost classes, and a rising error."""

import math

import keras
import numpy as np

from gar_keras.engine import backend
from gar_keras.layers import regularization_layers
from gar_keras.regularizers import expected_balance
from gar_keras.utils.validation import check_count, check_number
from gar_keras.utils.warnings import warn

# As `compile` takes them: a name, a function or an object.
_CROSS_ENTROPIES = {
    "categorical_crossentropy": keras.losses.CategoricalCrossentropy,
    "sparse_categorical_crossentropy": (
        keras.losses.SparseCategoricalCrossentropy
    ),
}


def warn_of_loss_of_probabilities(model):
    """Warns if the cross-entropy that a model is compiled with wants them."""
    options = _cross_entropy(model)
    if options and not options["from_logits"]:
        warn(
            "The loss takes the logits that GAR needs for probabilities, and "
            f"cuts them off at 0 and 1. Received: {_described(options)}. "
            "Compile the model with from_logits=True in the loss."
        )


def warn_of_loss_of_every_label(model):
    """Warns if the cross-entropy of a model would count labels of -1."""
    options = _cross_entropy(model)
    if options and options.get("ignore_class", -1) is None:
        warn(
            "The loss counts each label, also -1 of examples that have none. "
            f"Received: {_described(options)}. Compile the model with "
            "keras.losses.SparseCategoricalCrossentropy(from_logits=True, "
            "ignore_class=-1)."
        )


def _cross_entropy(model):
    """Config of the cross-entropy that a model is compiled with, or {}."""
    loss = getattr(model.loss, "__name__", model.loss)
    if isinstance(loss, str) and loss in _CROSS_ENTROPIES:
        loss = _CROSS_ENTROPIES[loss]()
    if isinstance(loss, tuple(_CROSS_ENTROPIES.values())):
        return loss.get_config()
    return {}


def _described(options):
    shown = ("from_logits", "ignore_class")
    listed = [f"{key}={options[key]}" for key in shown if key in options]
    return f"loss={options['name']!r} with {', '.join(listed)}"


class WarnOnCollapse(keras.callbacks.Callback):
    """Warns when stage 2 loses classes or otherwise goes wrong.

    It looks at what a `GraphActivityRegularization` and an `ErrorRate` put
    into the logs; it costs no time, and needs no label. It says nothing of
    layers whose coefficients are all 0, nor of epochs in which the learning
    rate warms up (see `gar_keras.optimizers.SGD`).

    *Classes are missing.* A warning names the classes that are not in use at
    the end of an epoch, if they are more than in any epoch before: those that
    got less than 1 % of the latest examples that should be theirs (with a
    `class_prior`, according to their shares; see
    `gar_keras.metrics.ClassesInUse`). All examples of a batch count, the
    labelled ones too; no class is named before 50 examples should have been
    its own in an epoch. An `activity_regularizer` is not watched.

    *The batches are too small.* With few images to a class, many classes are
    missing from a batch, and the balance term gives their outputs images of
    others. A warning comes once, where `gar_keras.expected_balance` is below
    3/4 (for classes of equal size, less than about three images to a class),
    and the balance at the end of an epoch is above it by more than a quarter
    of what is left to 1. It advises `10 * mean(1 / p)` images, which are ten
    to a class for classes of equal size.

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

    Raises:
        ValueError: if `error_before` is not from 0 to 1, if it comes without
            `num_validation`, or if a number is not an integer of at least 1.

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
    ):
        super().__init__()
        if error_before is not None:
            check_number("error_before", error_before, high=1, closed="both")
            check_count("num_validation", num_validation, least=1)
        if batch_size is not None:
            check_count("batch_size", batch_size, least=1)
        self.error_before = error_before
        self.earlier = earlier
        self.batch_size = batch_size
        self.class_names = class_names
        self.num_validation = num_validation

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
        if self._above and len(self._above) < self.PATIENCE:
            self._warn_if_above(self._above)

    def _warms_up(self):
        """Whether the learning rate rises until the end of the epoch."""
        optimizer = getattr(self.model, "optimizer", None)
        # Of mixed precision in float16.
        optimizer = getattr(optimizer, "inner_optimizer", optimizer)
        steps = (self.params or {}).get("steps") or math.inf
        return self._epoch * steps <= getattr(optimizer, "warmup_steps", 0)

    def _note_earlier(self, logs):
        """Notes how many classes were missed in an earlier epoch.

        Which ones is not known any more.
        """
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
        names = self.class_names
        words = _in_words([names[i] for i in classes] if names else classes)
        plain = layer.metric_name("balance") == "balance"
        place = "" if plain else f" in the layer {layer.name!r}"
        warn(
            f"Stage 2 is without {words}{place}: at the end of epoch "
            f"{self._epoch} hardly any example is classified so. A class that "
            "stage 2 has lost rarely comes back: start again from the "
            "pretrained model, with the default optimizer of stage 2 (clipped "
            "gradients and a warm-up), a lower learning rate, or a supervised "
            "term beside GAR (supervised=1.0). One that the pretrained model "
            "did not know either is not learned: pretrain longer, or on more "
            f"labels of it. {_prior_advice([layer])}".rstrip()
        )

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
            warn(
                f"The batches are too small: after epoch {self._epoch} the "
                f"{layer.metric_name('balance')} is {balance:.3f}, but {m} "
                f"rightly classified examples of {n} classes have about "
                f"{right:.3f}. Examples are being spread over classes that "
                f"their batch does not have. Take batches of {enough} examples "
                "or more."
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

    def _warn_if_above(self, above):
        if self._grows_worse or not all(above):
            return
        self._grows_worse = True
        warn(
            "Stage 2 makes the model worse: the validation error was "
            f"{100 * self.error_before:.2f} % before, and is "
            f"{100 * self._error:.2f} % now (epochs above in a row: "
            f"{len(above)}). Check that the unlabelled examples are of the "
            "same classes and are scaled in the same way as the labelled ones. "
            f"Pretrain longer or on more labels. {_prior_advice(self._watched)}"
            "Or lower the learning rate, or stay with the pretrained model."
        )


def _is_on(layer):
    """Whether GAR is switched on: before, there is nothing for it to lose."""
    return any(layer.coefficients.values())


def _prior_advice(layers):
    """A sentence for those whose GAR layers know no prior, or nothing."""
    if any(layer.class_prior is not None for layer in layers):
        return ""
    return (
        "If classes are imbalanced, give their shares as class_prior to "
        "the GAR layer. "
    )


def _in_words(classes, most=10):
    """Classes, by index or name, in words.

    >>> _in_words([2]), _in_words([2, 4, 7]), _in_words([2, 4, 7], most=1)
    ('class 2', 'classes 2, 4, 7', 'classes 2 and 2 more')
    """
    listed = ", ".join(map(str, classes[:most]))
    more = f" and {len(classes) - most} more" if classes[most:] else ""
    return f"class{'es' if len(classes) > 1 else ''} {listed}{more}"
