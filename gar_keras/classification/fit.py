"""Both stages on data whose labels are known in part.

What `GARClassifier` and `python -m gar_keras` have in common: the arrays they
take, the networks they choose, and one function that does Algorithm 1.
"""

import contextlib
import math
import random
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
from keras import layers

from gar_keras import models, paper
from gar_keras.augmentation import random_augmentation
from gar_keras.callbacks import LatestBestWeights, ReportProgress, error_rate
from gar_keras.classification.settings import FitSettings  # noqa: F401
from gar_keras.collapse import WarnOnCollapse
from gar_keras.data_adapters import as_unlabeled
from gar_keras.engine import hardware
from gar_keras.engine.batches import BatchSampler, take
from gar_keras.engine.fit import largest_divisor, predict
from gar_keras.engine.streams import Stream
from gar_keras.layers import GraphActivityRegularization
from gar_keras.methods.gar import with_options
from gar_keras.models import POLICIES, cnn6
from gar_keras.optimizers import sgd, stage_2_optimizer
from gar_keras.preparation import early_stopping, num_classes, stage_2_sampler
from gar_keras.regularizers import class_prior_of
from gar_keras.training import pretrain
from gar_keras.utils.parts import has_parts, keys_of_parts
from gar_keras.utils.softmax import softmax  # noqa: F401
from gar_keras.utils.validation import (
    check_class_prior,
    check_real,
    is_in_memory,
)
from gar_keras.utils.warnings import warn

# What stands in for the class of an unlabelled example.
UNLABELED = -1

# Sides of an image that the 6-layer CNN is made for: two poolings need 4
# pixels, and its Dense layer outgrows the memory beyond 64.
LEAST_SIDE, MOST_SIDE = 4, 64

HIDDEN_UNITS = (128, 64)
MLP_DROPOUT = 0.5

# Steps of stage 1 by default: those of the paper's code, with 100 labels.
PRETRAIN_STEPS = 2000
LEAST_PASSES = 10
# Passes of stage 1 of which one line tells, at most.
REPORT_EVERY = 100

# Examples that tell whether a class was lost, as many as the reports look at.
LOOKED_AT = 2000

# Classes without a label that a message names.
NAMED_CLASSES = 5


@dataclass(frozen=True)
class Summary:
    """What `fit` did. As text, in one line: what stage 2 gained, and lost.

    Attributes:
        num_labeled: Labelled examples trained on.
        num_validation: Labelled examples kept back.
        num_unlabeled: Examples without a label.
        class_prior: The shares of the classes, or `None` for equal ones.
        error_before: Error on the validation examples between the stages,
            from 0 to 1; `None` without any.
        error_after: The same at the end; `None` without stage 2 as well.
        pretraining: History of stage 1: lists by name.
        regularization: History of stage 2; empty without it.
        lost: The classes that were given to some of up to 2,000 examples after
            stage 1, and to none of them at the end.
    """

    num_labeled: int
    num_validation: int
    num_unlabeled: int
    class_prior: tuple | None
    error_before: float | None
    error_after: float | None
    pretraining: dict
    regularization: dict
    lost: tuple = ()

    def __str__(self):
        if not self.num_unlabeled:
            return f"{self._error()}; no stage 2"
        epochs = len(self.regularization.get("loss", ()))
        lost = ", ".join(map(str, self.lost)) or "none"
        return (
            f"{self._error()}; epochs of stage 2: {epochs}; classes lost: "
            f"{lost}"
        )

    def _error(self):
        errors = [self.error_before, self.error_after]
        known = [f"{100 * e:.2f} %" for e in errors if e is not None]
        return f"validation error: {' -> '.join(known) or 'not measured'}"


class Progress:
    """Notes how far the stages have come, and tells another reporter.

    Attributes:
        reporter: A `gar_keras.utils.progress.Reporter`, or `None`.
    """

    def __init__(self):
        self.reporter = None
        self._done = {}

    def step(self, *arguments):
        if self.reporter is not None:
            self.reporter.step(*arguments)

    def epoch(self, stage, row, total):
        self._done[stage] = row["epoch"], total
        if self.reporter is not None:
            self.reporter.epoch(stage, row, total)

    @property
    def stage_1_is_done(self):
        done, total = self._done.get("pretraining", (0, 1))
        return done == total

    def __str__(self):
        done, total = self._done.get("regularization", (0, 0))
        if not done:
            return "stage 1"
        return f"stage 1 and {done} of {total} epochs of stage 2"


def fit(
    model,
    x,
    y,
    settings,
    *,
    x_unlabeled=None,
    class_names=None,
    seed=0,
    verbose=0,
    reporter=None,
):
    """Trains a model by Algorithm 1 of the paper, on partly labelled data.

    Stage 2 sees all examples without their labels, as in the paper's code:
    the labelled ones and those kept back for validation among them. With no
    unlabelled example there is no stage 2.

    Args:
        model: A plain `keras.Model` from examples to logits `(batch, n)`.
            Trained in place.
        x: Examples, as `as_input` gives them, or an image source.
        y: Class indices `(m,)`, int64; -1 for unlabelled examples.
        settings: `FitSettings`.
        x_unlabeled: What stage 2 sees instead of `x`, as
            `data_adapters.as_unlabeled` gives it, or `None`.
        class_names: The names of the classes, for the summary and warnings,
            if they are not their indices.
        seed: Seed of the validation examples and of the batches.
        verbose: As in Keras' `fit`.
        reporter: A `gar_keras.utils.progress.Reporter`, or `None`.

    Returns:
        A `Summary`.

    Raises:
        ValueError: if no example is labelled, if a class has no label, if the
            settings do not fit the data, or if the model holds the loss of
            GAR.
        FloatingPointError: if the loss becomes NaN or infinite.

    Warns:
        GARWarning: if no example is unlabelled, before stage 1; or if stage 2
            goes wrong.
    """
    n = _num_outputs(model, x)
    labeled = np.flatnonzero(y != UNLABELED)
    check_every_class(y[labeled], n)
    prior = _class_prior(settings.class_prior, y[labeled], n)
    kept = _keep_back(y, labeled, settings.validation_fraction, seed)
    labeled = np.setdiff1d(labeled, kept)
    x_labeled, y_labeled = take(x, labeled), y[labeled]
    seen = x if x_unlabeled is None else x_unlabeled
    # These refuse now what stage 2 would refuse after stage 1.
    sampler = stage_2_sampler(
        x_labeled,
        seen,
        settings.labeled_per_batch
        or min(paper.LABELED_PER_BATCH, len(labeled)),
        settings.unlabeled_per_batch,
        None,
        seed,
    )
    method = _method(model, settings, prior)
    stages = _Stages(
        model,
        settings,
        x_labeled,
        y_labeled,
        seen,
        validation=(take(x, kept), y[kept]) if len(kept) else None,
        sampler=sampler,
        seed=seed,
        verbose=verbose,
        reporter=reporter,
    )
    unlabeled = np.count_nonzero(y == UNLABELED)
    if x_unlabeled is not None:
        unlabeled += sampler.size
    if not unlabeled:
        warn(
            "No example is unlabelled: this is plain supervised training, "
            f"without GAR. Mark unlabelled examples with {UNLABELED} in y."
        )
    first, before = stages.pretrain()
    second, after, lost = {}, None, ()
    if unlabeled:
        second, after, lost = stages.regularize(method, before, class_names)
    return Summary(
        num_labeled=len(labeled),
        num_validation=len(kept),
        num_unlabeled=unlabeled,
        class_prior=prior,
        error_before=before,
        error_after=after,
        pretraining=first,
        regularization=second,
        lost=tuple(class_names[i] if class_names else i for i in lost),
    )


@dataclass(frozen=True)
class _Stages:
    """Both stages, and what they have in common."""

    model: keras.Model
    settings: FitSettings
    x_labeled: Any
    y_labeled: np.ndarray
    seen: Any
    validation: tuple | None
    sampler: BatchSampler
    seed: int
    verbose: Any
    reporter: Any

    def pretrain(self):
        """Stage 1: `(history, error)`, with the validation error or `None`."""
        s = self.settings
        passes = s.pretrain_epochs or _passes(len(self.y_labeled))
        lines = largest_divisor(passes, REPORT_EVERY)
        history = pretrain(
            self.model,
            self.x_labeled,
            self.y_labeled,
            epochs=passes,
            optimizer=sgd(s.learning_rate),
            validation_data=self.validation,
            augmentation=random_augmentation(s.shift, s.affine, self.seed),
            seed=self.seed,
            callbacks=ReportProgress(self.reporter, "pretraining", lines),
            report_every=REPORT_EVERY,
            verbose=self.verbose,
        ).history
        return history, self.validation and history["val_error"][-1]

    def regularize(self, method, before, class_names):
        """Stage 2: `(history, error, lost)`, with the classes it lost."""
        some = _some(self.seen)
        found = _classes_given(self.model, some)
        s, sampler = self.settings, self.sampler
        epochs, stopping = early_stopping(s.epochs, self.validation)
        steps = epochs * sampler.steps
        watching = WarnOnCollapse(
            before,
            batch_size=sampler.images_per_step,
            class_names=class_names,
        )
        history = method.train(
            self.model,
            self.x_labeled,
            self.y_labeled,
            self.seen,
            epochs=epochs,
            labeled_per_batch=sampler.labeled_per_batch,
            unlabeled_per_batch=s.unlabeled_per_batch,
            optimizer=stage_2_optimizer(s, steps, s.learning_rate),
            validation_data=self.validation,
            keep_best=False,
            callbacks=[
                ReportProgress(self.reporter, "regularization"),
                watching,
                *stopping,
                *([LatestBestWeights()] if self.validation else []),
            ],
            seed=self.seed,
            verbose=self.verbose,
        ).history
        after = self.validation and error_rate(self.model, *self.validation)
        lost = np.setdiff1d(found, _classes_given(self.model, some))
        return history, after, lost.tolist()


def encode(y):
    """The classes, and their indices in `y` with -1 for unlabelled examples.

    Args:
        y: Labels `(m,)` of any kind. Unlabelled are -1, `"-1"` and `""`.

    Returns:
        `(classes, targets)`: the labels `(n,)`, sorted, and int64 indices
        `(m,)`.

    Example:

    >>> classes, targets = encode(np.array(["cat", "dog", "", "cat"]))
    >>> classes.tolist(), targets.tolist()
    (['cat', 'dog'], [0, 1, -1, 0])
    """
    marked = is_unlabeled(y)
    classes, indices = np.unique(y[~marked], return_inverse=True)
    targets = np.full(len(y), UNLABELED, "int64")
    targets[~marked] = indices
    return classes, targets


def is_unlabeled(y):
    """Which labels mark an example as unlabelled, `(m,)`."""
    marked = y == UNLABELED
    if y.dtype.kind in "OU":
        marked = marked | (y == str(UNLABELED)) | (y == "")
    return marked


def as_input(x, name="x"):
    """Examples as the networks take them.

    Args:
        x: Features `(m, f)`, or images `(m, h, w)` or `(m, h, w, c)`, of a
            real dtype.
        name: Name of the argument, for the message.

    Returns:
        Features as float32; images `(m, h, w, c)` as uint8 if they were that,
        else as float32.

    Example:

    >>> as_input(np.zeros((5, 28, 28), "uint8")).shape
    (5, 28, 28, 1)
    """
    if x.ndim not in (2, 3, 4) or not x.size:
        raise ValueError(
            f"{name} must be features (m, f), or images (m, h, w) or "
            f"(m, h, w, c), none of these 0. Received: shape={x.shape}"
        )
    check_real(name, x.dtype, "biuf")
    if x.ndim == 2 or x.dtype != "uint8":
        # What float32 cannot hold becomes infinite, and is seen below.
        with np.errstate(over="ignore"):
            x = x.astype("float32")
        if not np.isfinite(x).all():
            raise ValueError(
                f"{name} must be finite in float32, but "
                f"{np.count_nonzero(~np.isfinite(x))} of its values are NaN "
                "or infinite. Remove or replace them."
            )
    return x[..., None] if x.ndim == 3 else x


def unlabeled_input(x, like, name):
    """Unlabelled examples of any form, like those that have labels.

    Args:
        x: Examples, in any form that `gar_keras.regularize` takes.
        like: The labelled examples, as `as_input` gives them.
        name: Name of the argument, for the message.

    Returns:
        An array, image source or `Stream`.

    Raises:
        ValueError: if they are not examples, or not like those.
    """
    found = as_unlabeled(x, name)
    if isinstance(found, np.ndarray):
        kind, wanted = (
            (array.shape[1:], array.dtype) for array in (found, like)
        )
        # What need not be converted is read from its file batch by batch.
        if is_in_memory(found) or kind != wanted:
            found = as_input(found, name)
    check_same_kind(found, like.shape[1:], like.dtype, name)
    return found


def check_same_kind(x, shape, dtype, name="x"):
    """Raises unless the examples are like those that a model was fitted to.

    Args:
        x: Examples, as `as_input` gives them, an image source or a `Stream`.
        shape: Shape of an example in `fit`.
        dtype: Dtype in `fit`.
        name: Name of the argument, for the message.
    """
    x = x.first if isinstance(x, Stream) else x
    if has_parts(x):
        raise ValueError(
            f"{name} must have one input. Received: the inputs "
            f"{keys_of_parts(x)}. Train a model of several with "
            "gar_keras.pretrain and gar_keras.regularize."
        )
    if x.shape[1:] != tuple(shape) or x.dtype != dtype:
        raise ValueError(
            f"{name} must hold examples like those of fit, of shape "
            f"{tuple(shape)} and dtype {dtype}. Received: shape "
            f"{x.shape[1:]} and dtype {x.dtype}. Scale and convert them in "
            "the same way."
        )


def check_some_label(labels):
    """Raises unless there is a label."""
    if not len(labels):
        raise ValueError(
            "No example is labelled. GAR starts from a network that is "
            "trained on a few labels: give some of each class."
        )


def check_every_class(labels, num_classes):
    """Raises unless there is a label of each of two or more classes.

    Args:
        labels: Class indices, those of unlabelled examples left out.
        num_classes: `n`.

    Example:

    >>> check_every_class(np.array([0, 1, 1]), 2)
    """
    check_some_label(labels)
    if num_classes < 2:
        raise ValueError(
            "The labels are of one class only, and a classifier needs two. "
            f"Received: {len(labels)} labels. Label examples of the others."
        )
    found = np.unique(labels)
    if found[-1] >= num_classes:
        raise ValueError(
            f"Labels must be class indices from 0 to {num_classes - 1}, for "
            f"{num_classes} classes. Received: largest label={found[-1]}. "
            "State how many classes there are, and give the network one "
            "output for each."
        )
    missing = num_classes - len(found)
    if missing:
        # Among so many indices there are as many missing ones as are named.
        first = np.arange(min(num_classes, len(found) + NAMED_CLASSES))
        named = np.setdiff1d(first, found)[:NAMED_CLASSES]
        others = missing - len(named)
        raise ValueError(
            f"Each of the {num_classes} classes needs a label. Received: none "
            f"of class {', '.join(map(str, named))}"
            f"{f' and {others} more' if others else ''}. Label an example of "
            "each class, or number the classes without gaps and give the "
            "network one output for each."
        )


def default_network(x, num_classes, precision="auto"):
    """A network for the examples, with new weights.

    For images the 6-layer CNN of the paper, `gar_keras.cnn6`, on pixels that
    are divided by 255 if they are uint8, else by the largest in `x`. For
    features two hidden layers of 128 and 64 ReLU units with dropout, on
    features that are brought to mean 0 and standard deviation 1 over `x`.

    Args:
        x: Examples, as `as_input` gives them.
        num_classes: `n`.
        precision: Between the layers, `"auto"`, `"float32"` or `"bfloat16"`.

    Returns:
        A `keras.Model` from examples as they are to logits, in float32.

    Raises:
        ValueError: if the images are too small or too large for the CNN.

    Example:

    >>> default_network(np.zeros((5, 3), "float32"), 2).output_shape
    (None, 2)
    """
    if len(x.shape) == 2:
        # So small a network gains nothing by less precision.
        policy = POLICIES["float32" if precision == "auto" else precision]
        return _mlp(x, num_classes, policy)
    sides = x.shape[1:3]
    if min(sides) < LEAST_SIDE or max(sides) > MOST_SIDE:
        raise ValueError(
            "The network for images takes (m, height, width, channels), with "
            f"sides from {LEAST_SIDE} to {MOST_SIDE} pixels. Received: "
            f"shape={x.shape}, of sides {sides[0]} x {sides[1]}. Where the "
            "channels come first, move them to the end with np.moveaxis(x, 1, "
            "-1). Resize larger or smaller images, or give a network of your "
            "own."
        )
    stored = "uint8" if x.dtype == "uint8" else "float32"
    largest = 255 if stored == "uint8" else float(np.abs(x).max()) or 1.0
    auto = precision == "auto"
    return cnn6(
        x.shape[1:],
        num_classes,
        preprocessing=layers.Rescaling(1 / largest, dtype="float32"),
        input_dtype=stored,
        dtype=POLICIES[hardware.fast_precision() if auto else precision],
    )


def _method(model, settings, prior):
    """The method of stage 2; refuses models that it cannot train."""
    layer = GraphActivityRegularization(
        **settings.coefficients,
        class_prior=prior,
        name="graph_activity_regularization",
    )
    method = with_options(settings, layer)
    method.check(model, None)
    return method


def _mlp(x, num_classes, dtype):
    features = keras.Input(x.shape[1:], dtype="float32")
    mean, variance = x.mean(0, dtype="float64"), x.var(0, dtype="float64")
    # A constant feature becomes 0, whatever rounding leaves of its variance.
    constant = np.ptp(x, axis=0) == 0
    hidden = layers.Normalization(
        mean=np.where(constant, x[0], mean).astype("float32"),
        variance=np.where(constant, 1, variance).astype("float32"),
        dtype="float32",
    )(features)
    for units in HIDDEN_UNITS:
        hidden = layers.Dense(units, activation="relu", dtype=dtype)(hidden)
        hidden = layers.Dropout(MLP_DROPOUT, dtype=dtype)(hidden)
    logits = layers.Dense(num_classes, dtype="float32", name="logits")(hidden)
    return keras.Model(features, logits, name="mlp")


def for_prediction(model):
    """A fitted model without what only training needs, to save or pickle.

    It is plain Keras: no optimizer and no loss of GAR.
    """
    return models.uncompiled(model) if models.has_graph(model) else model


def predict_logits(model, x):
    """Logits of examples, float64 `(m, n)`."""
    logits = predict(model, x).astype("float64")
    if not np.isfinite(logits).all():
        raise FloatingPointError(
            "The model gives logits that are NaN or infinite for these "
            "examples. Check their scale."
        )
    return logits


@contextlib.contextmanager
def seeded(seed):
    """Within it, new Keras layers draw from `seed`, and nothing else does."""
    # Keras takes the seed of a new layer from Python's generator.
    state = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(state)


def _num_outputs(model, x):
    if models.is_regularized(model):
        raise ValueError(
            f"The network {model.name!r} holds the loss of GAR already. Give "
            "it without: the coefficients are set beside it."
        )
    models.ensure_built(model, x)
    return num_classes(model, "x", x)


def _class_prior(class_prior, labels, n):
    if isinstance(class_prior, tuple):
        return check_class_prior(class_prior, n)
    return class_prior_of(labels, n) if class_prior == "labeled" else None


def _keep_back(y, labeled, fraction, seed):
    """Indices of the validation examples: a share of each class."""
    if not fraction:
        return labeled[:0]
    rng = np.random.default_rng([seed, len(y)])
    kept = []
    for c in np.unique(y[labeled]):
        of_class = rng.permutation(np.flatnonzero(y == c))
        # One at least is trained on.
        share = min(round(fraction * len(of_class)), len(of_class) - 1)
        kept.append(of_class[:share])
    kept = np.sort(np.concatenate(kept))
    if not len(kept):
        raise ValueError(
            f"There are too few labels to keep {fraction:g} of each class "
            f"back. Received: {len(labeled)} labels, "
            f"validation_fraction={fraction:g}. Label more examples, or set "
            "validation_fraction to 0."
        )
    return kept


def _some(x):
    """Examples at equal distances, at most `LOOKED_AT` of them."""
    if isinstance(x, Stream):
        return x.first[:LOOKED_AT]
    count = min(len(x), LOOKED_AT)
    return take(x, np.linspace(0, len(x) - 1, count).astype(int))


def _classes_given(model, x):
    """The classes that a model gives to examples."""
    # Without `predict`, which would compile a function for so few.
    logits = [
        keras.ops.convert_to_numpy(model(x[i : i + 250], training=False))
        for i in range(0, len(x), 250)
    ]
    return np.unique(np.concatenate(logits).argmax(axis=1))


def _passes(num_labeled):
    """Passes of stage 1 that make about `PRETRAIN_STEPS` steps."""
    steps = math.ceil(num_labeled / paper.BATCH_SIZE)
    passes = math.ceil(PRETRAIN_STEPS / steps)
    if passes > 100:
        # `pretrain` reports once in a divisor of it, and a prime has none.
        passes = math.ceil(passes / 100) * 100
    return max(passes, LEAST_PASSES)
