"""Signs that GAR goes wrong in training: lost classes, and a rising error."""

import functools

import keras
import numpy as np

from gar_keras.engine import backend
from gar_keras.layers import regularization_layers
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
    into the logs; it costs no time, and needs no label. Of each sign it warns
    once. Layers whose coefficients are all 0 are left out.

    *Classes are lost.* A warning names the classes that are not in use at the
    end of an epoch, from the first epoch on: those that got less than 1 % of
    the latest examples that should be theirs (with a `class_prior`, according
    to their shares; see `gar_keras.metrics.ClassesInUse`). A class that got as
    few when training with GAR began is named in a warning of its own: that is
    no fault of stage 2. Each class is named once, when more are missing than
    in any epoch before. All examples of a batch count, the labelled ones too;
    no class is named before 50 examples should have been its own in an epoch.
    An `activity_regularizer` is not watched.

    *The outputs collapse.* Let k of the n outputs be used equally (`v_i` equal
    for them) and the others not at all. Of V, `k²` entries are 1 then, k of
    them on the diagonal, so that balance is

        `β = (k² - k) / ((n - 1) * k) = (k - 1) / (n - 1)`

    (paper, equation for Balance). Solved for k it gives, for any `v`, the
    number of outputs in use, `k = 1 + (n - 1) * β = (Σ v_i)² / Σ v_i²`. With
    a `class_prior`, outputs are used equally where `v_i / p_i` are equal. A
    warning comes at the end of the first epoch in which

    - the balance is below half of what right predictions would have: of
      batches of `batch_size` images, drawn with the shares of the classes and
      all classified right, the mean balance. For classes of equal size it is
      about `gar_keras.expected_balance`, which is 0.93 for 128 images of 10
      classes. Without a `batch_size` it counts as 1, and half of that is a k
      of `(n + 1) / 2`, halfway between one output and all of them; or
    - k is lower by one whole output than it was in an earlier epoch, and the
      balance is below nine tenths of what right predictions would have (of
      many classes one output is so little that k varies by more where nothing
      is lost),

    unless classes have been named by then.

    *The batches are too small.* With few images to a class, many classes are
    missing from a batch, and the balance term gives their outputs images of
    others. A warning comes where the mean balance of right predictions, as
    above, is below 3/4 (for classes of equal size, less than about three images
    to a class), and the balance at the end of an epoch is above it by more than
    a quarter of what is left to 1. It advises `10 * mean(1 / p)` images, which
    are ten to a class for classes of equal size.

    *The validation error rises.* A warning comes when it was above
    `error_before` in each of the last five epochs, or in all of them where
    training ends sooner. One bad epoch at the start need not mean harm, unless
    it is that in which a class was lost.

    *The loss is for probabilities.* A warning comes at the start if a model
    compiled with a cross-entropy has it without `from_logits=True`.

    Warnings are `gar_keras.GARWarning`s; `gar_keras.regularize` always issues
    them. Turn them into errors with
    `warnings.simplefilter("error", gar_keras.GARWarning)`.

    Args:
        error_before: Validation error that stage 2 starts from, from 0 to 1,
            for a model whose logs have `val_error`. `None` to look at the
            balance alone.
        earlier: Logs of the epochs that are done already, a dict each, when
            training goes on. What was warned of then is warned of again.
        batch_size: Images in a batch, the labelled ones among them. `None`
            where that is not known: batches count as large, and none are
            found too small.
        class_names: What the warnings call the classes, in the order of the
            logits. `None` for their indices.

    Raises:
        ValueError: if `error_before` is not from 0 to 1, or `batch_size` is
            not an integer of at least 1.

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

    # Of the balance of right predictions.
    LEAST_BALANCE = 0.5
    LEAST_AFTER_FALL = 0.9
    LEAST_EXPECTED_BALANCE = 0.75
    PATIENCE = 5

    def __init__(
        self,
        error_before=None,
        earlier=(),
        batch_size=None,
        class_names=None,
    ):
        super().__init__()
        if error_before is not None:
            check_number("error_before", error_before, high=1, closed="both")
        if batch_size is not None:
            check_count("batch_size", batch_size, least=1)
        self.error_before = error_before
        self.earlier = earlier
        self.batch_size = batch_size
        self.class_names = class_names

    def on_train_begin(self, logs=None):
        self._most_in_use = {}
        self._collapsed = False
        self._spread = False
        self._errors = []
        self._grown_worse = False
        self._watched = regularization_layers(self.model)
        if self._watched:
            warn_of_loss_of_probabilities(self.model)
        self._was_on = set()
        # By the name of the layer's metric.
        self._unused = {}
        self._unused_at_first = {}
        self._named = {}
        self._missed_earlier = {}
        for epoch, logs in enumerate(self.earlier):
            self._note_missed(logs)
            self.on_epoch_end(epoch, logs)

    def on_epoch_begin(self, epoch, logs=None):
        self._epoch = epoch + 1
        self._unused = {}

    def on_train_batch_end(self, batch, logs=None):
        for layer in self._watched:
            in_use = (logs or {}).get(layer.usage.name)
            if in_use is not None:
                self._look_at(layer, in_use < layer.num_classes)
        # Now, as other callbacks save what has been warned of at the end.
        if batch + 1 == (self.params or {}).get("steps"):
            self._name_classes()

    def on_epoch_end(self, epoch, logs=None):
        self._name_classes()
        self._was_on |= {
            layer.usage.name for layer in self._watched if _is_on(layer)
        }
        self._check_balance(epoch + 1, logs or {})
        self._check_error((logs or {}).get("val_error"))

    def on_train_end(self, logs=None):
        if len(self._errors) < self.PATIENCE:
            self._warn_if_above(self._errors)

    def _note_missed(self, logs):
        """Notes how many classes were missed, and named, in an earlier epoch.

        Which ones is not known any more.
        """
        for layer in self._watched:
            name = layer.usage.name
            if name in logs:
                missed = layer.num_classes - logs[name]
                before = self._missed_earlier.get(name, 0)
                self._missed_earlier[name] = max(before, missed)
                self._collapsed = self._collapsed or missed > 0

    def _look_at(self, layer, misses):
        """Notes which classes a layer misses, if it misses any."""
        name = layer.usage.name
        self._unused[name] = []
        if not misses:
            return
        backend.return_state(self.model)
        if not _is_on(layer):
            return
        self._unused[name] = layer.usage.unused()
        if name not in self._was_on:
            self._unused_at_first[name] = layer.usage.unused_at_first()

    def _name_classes(self):
        """Warns of the classes that are missed and were not named yet."""
        for layer in self._watched:
            name = layer.usage.name
            unused = self._unused.get(name, [])
            # By their number: which ones they were is not known of epochs
            # before a restart.
            if len(unused) <= self._missed_earlier.get(name, 0):
                continue
            self._missed_earlier[name] = len(unused)
            named = self._named.setdefault(name, set())
            at_first = self._unused_at_first.get(name, [])
            new = [i for i in unused if i not in named]
            named.update(new)
            # The names say more than the balance does.
            self._collapsed = self._collapsed or bool(new)
            self._warn_of_lost(layer, [i for i in new if i not in at_first])
            self._warn_of_missing(layer, [i for i in new if i in at_first])

    def _warn_of_lost(self, layer, classes):
        if not classes:
            return
        warn(
            f"Stage 2 has lost {self._words(classes)}{_place(layer)}: at the "
            f"end of epoch {self._epoch} hardly any example is classified so. "
            "A lost class rarely comes back: start again from the pretrained "
            "model, with the default optimizer of stage 2 (clipped gradients "
            "and a warm-up), a lower learning rate, or a supervised term "
            f"beside GAR (supervised=1.0). {_prior_advice([layer])}"
            "Check how many examples each class gets before and after."
        )

    def _warn_of_missing(self, layer, classes):
        if not classes:
            return
        warn(
            "When training with GAR began, hardly any example was classified "
            f"as {self._words(classes)}{_place(layer)}, nor is it at the end "
            f"of epoch {self._epoch}. GAR sharpens what the network knows, "
            "and teaches it nothing new. Pretrain longer, or on more labels "
            f"of what is missing. {_prior_advice([layer])}".rstrip()
        )

    def _words(self, classes):
        names = self.class_names
        return _in_words([names[i] for i in classes] if names else classes)

    def _check_balance(self, epoch, logs):
        for layer in regularization_layers(self.model):
            name = layer.metric_name("balance")
            if name not in logs or not _is_on(layer):
                continue
            n, balance = layer.num_classes, logs[name]
            self._check_batches(epoch, name, balance, layer)
            in_use = 1 + (n - 1) * balance
            most = max(in_use, self._most_in_use.get(name, in_use))
            self._most_in_use[name] = most
            right = self._right_balance(layer)
            least = self.LEAST_BALANCE
            if in_use <= most - 1:
                least = self.LEAST_AFTER_FALL
            lost = balance < least * right
            if lost and not self._collapsed:
                self._collapsed = True
                warn(
                    f"Stage 2 loses classes: after epoch {epoch} the {name} is "
                    f"{balance:.3f}, as if only {in_use:.1f} of the {n} "
                    "outputs were in use. Pretrain longer or on more labels: "
                    "GAR sharpens what the network knows, and teaches it "
                    f"nothing new. {_prior_advice([layer])}"
                    f"{self._batch_advice(layer)}Or lower the learning rate."
                )

    def _right_balance(self, layer):
        """The mean balance that right predictions would have."""
        if self.batch_size is None:
            return 1.0
        return _mean_balance(
            self.batch_size, layer.num_classes, layer.class_prior
        )

    def _batch_advice(self, layer):
        enough = _enough_examples(layer)
        if self.batch_size is not None and self.batch_size >= enough:
            return ""
        advice = (
            "Take batches that show all classes, of "
            f"{enough} examples or more. "
        )
        if self.batch_size is None:
            advice += (
                "For smaller ones give WarnOnCollapse their batch_size: right "
                "labels have a low balance in them too. "
            )
        return advice

    def _check_batches(self, epoch, name, balance, layer):
        m, n = self.batch_size, layer.num_classes
        if m is None or self._spread:
            return
        right = self._right_balance(layer)
        above = balance > right + (1 - right) / 4
        if right < self.LEAST_EXPECTED_BALANCE and above:
            self._spread = True
            warn(
                f"The batches are too small: after epoch {epoch} the {name} "
                f"is {balance:.3f}, but {m} rightly classified examples of {n} "
                f"classes have about {right:.3f}. Examples are being spread "
                "over classes that their batch does not have. Take batches of "
                f"{_enough_examples(layer)} examples or more."
            )

    def _check_error(self, error):
        if error is None or self.error_before is None:
            return
        self._errors.append(error)
        if len(self._errors) >= self.PATIENCE:
            self._warn_if_above(self._errors[-self.PATIENCE :])

    def _warn_if_above(self, errors):
        if self._grown_worse or not errors or min(errors) <= self.error_before:
            return
        self._grown_worse = True
        warn(
            "Stage 2 makes the model worse: the validation error was "
            f"{100 * self.error_before:.2f} % before, and is "
            f"{100 * errors[-1]:.2f} % now (epochs above in a row: "
            f"{len(errors)}). Check that the unlabelled examples are of the "
            "same classes and are scaled in the same way as the labelled ones. "
            "Pretrain longer or on more labels. "
            f"{_prior_advice(regularization_layers(self.model))}"
            "Or lower the learning rate, or stay with the pretrained model."
        )


def _prior_advice(layers):
    """A sentence for those whose GAR layers know no prior, or nothing."""
    if any(layer.class_prior is not None for layer in layers):
        return ""
    return (
        "If classes are imbalanced, give their shares as class_prior to "
        "the GAR layer. "
    )


def _is_on(layer):
    """Whether GAR is switched on: before, there is nothing for it to lose."""
    return any(layer.coefficients.values())


def _place(layer):
    """Where classes are missing, for layers with a name of their own."""
    plain = layer.metric_name("balance") == "balance"
    return "" if plain else f" of the layer {layer.name!r}"


def _in_words(classes, most=10):
    """Classes, by index or name, in words.

    >>> _in_words([2]), _in_words([2, 4, 7]), _in_words([2, 4, 7], most=1)
    ('class 2', 'classes 2, 4, 7', 'classes 2 and 2 more')
    """
    listed = ", ".join(map(str, classes[:most]))
    more = f" and {len(classes) - most} more" if classes[most:] else ""
    return f"class{'es' if len(classes) > 1 else ''} {listed}{more}"


def _enough_examples(layer):
    """Images of a batch that shows all classes about ten times."""
    p = _shares(layer.num_classes, layer.class_prior)
    return round(10 * np.mean(1 / p))


@functools.cache
def _mean_balance(batch_size, num_classes, class_prior):
    """Mean balance of random batches whose images are all classified right.

    Not `expected_balance`, a ratio of means: where a class has less than about
    one image in a batch, most batches are without it, and far from that.
    """
    p = _shares(num_classes, class_prior)
    rng = np.random.default_rng(0)
    # The limits are rough: more draws would not move them by much.
    draws = (rng.multinomial(batch_size, p) / p for _ in range(500))
    return float(np.mean([_balance_of(u) for u in draws]))


def _balance_of(u):
    """The balance of `u_i = v_i / p_i`."""
    trace = np.sum(u * u)
    return (np.sum(u) ** 2 - trace) / ((len(u) - 1) * trace)


def _shares(num_classes, class_prior):
    """The shares of the classes, an array of sum 1."""
    p = np.ones(num_classes) if class_prior is None else np.array(class_prior)
    return p / p.sum()
