"""Algorithm 1 on examples whose labels are known in part."""

import math
from copy import copy
from dataclasses import dataclass, field, replace

import numpy as np
from keras import ops

from gar_keras.augmentation import random_augmentation
from gar_keras.callbacks import (
    BEST_ARE_KEPT,
    LOST_CLASSES_ARE_RESTORED,
    Advice,
    WarnOnCollapse,
)
from gar_keras.engine.batches import BATCH_SIZE, take
from gar_keras.engine.data import num_classes, stage_2_sampler
from gar_keras.engine.fit import early_stopping, largest_divisor
from gar_keras.engine.graphs import ensure_built
from gar_keras.engine.optimizers import sgd, stage_2_optimizer
from gar_keras.estimator.examples import UNLABELED
from gar_keras.layers import GraphActivityRegularization
from gar_keras.methods import method_of
from gar_keras.methods.gar import GAR
from gar_keras.methods.safe_gar import given_prior
from gar_keras.metrics import error_rate, lost_classes
from gar_keras.models import image_format_of
from gar_keras.training import check_stage_2, pretrain, regularize
from gar_keras.utils.validation import check_count, check_number
from gar_keras.utils.warnings import warn

# Steps of stage 1 by default: those of the paper's code, with 100 labels.
PRETRAIN_STEPS = 2000
LEAST_PASSES = 10
# Passes of stage 1 of which one line tells, at most.
REPORT_EVERY = 100

# Examples that tell whether a class was lost, as many as the reports look at.
LOOKED_AT = 2000


@dataclass(frozen=True)
class Summary:
    """What `fit` did. As text, in one line: what stage 2 gained, and lost.

    Attributes:
        num_labeled: Labelled examples trained on.
        num_validation: Labelled examples kept back.
        num_unlabeled: Examples without a label.
        class_prior: The shares of the classes, as stage 2 took them; `None`
            for equal ones.
        pretraining: History of stage 1: lists by name.
        error_before: Error on the validation examples between the stages,
            from 0 to 1; `None` without any.
        regularization: History of stage 2; empty without it.
        error_after: The error on them of the weights that the model ends
            with; `None` without stage 2 as well.
        lost: The classes that were given to some of up to 2,000 examples after
            stage 1, and to none of them at the end.
        search: Of `epochs="auto"`, the `Summary` of the training with
            validation examples, by which the number of epochs was found.
    """

    num_labeled: int
    num_validation: int
    num_unlabeled: int
    class_prior: tuple | None
    pretraining: dict
    error_before: float | None = None
    regularization: dict = field(default_factory=dict)
    error_after: float | None = None
    lost: tuple = ()
    search: "Summary | None" = None

    def __str__(self):
        if self.search:
            again = f"again on all {self.num_labeled} labels"
            return f"{self.search}; {again}: {self._stage_2()}"
        errors = [self.error_before, self.error_after]
        known = [f"{100 * e:.2f} %" for e in errors if e is not None]
        error = "validation error: not measured"
        if known:
            n = f"(n = {self.num_validation})"
            error = f"validation error {n}: {' -> '.join(known)}"
        return f"{error}; {self._stage_2()}"

    def _stage_2(self):
        if not self.num_unlabeled:
            return "no stage 2"
        epochs = len(self.regularization.get("loss", ()))
        lost = ", ".join(map(str, self.lost)) or "none"
        return f"epochs of stage 2: {epochs}; classes lost: {lost}"


def stages(model, x, y, settings, class_names, seed):
    """Trains a model by Algorithm 1, stage by stage.

    What stage 2 would refuse is refused before stage 1. Stage 2 sees all
    examples without their labels, as in the paper's code: the labelled ones
    and those kept back for validation among them. With no unlabelled example
    there is no stage 2.

    `settings` has the parameters of `GARClassifier`, and y is -1 where there is
    no label. Yields a `Summary` behind each stage.
    """
    labeled = np.flatnonzero(y != UNLABELED)
    prior = given_prior(settings.class_prior, y[labeled], len(class_names))
    kept = _keep_back(
        y, labeled, settings.validation_fraction, seed, class_names
    )
    validation = (take(x, kept), y[kept]) if len(kept) else None
    labeled = np.setdiff1d(labeled, kept)
    x_labeled, y_labeled = take(x, labeled), y[labeled]
    batches = {
        "labeled_per_batch": settings.labeled_per_batch,
        "unlabeled_per_batch": settings.unlabeled_per_batch,
    }
    method = _method(settings, prior)
    unlabeled = np.count_nonzero(y == UNLABELED)
    if unlabeled:
        sampler = stage_2_sampler(
            x_labeled, x, **batches, images_per_epoch=None, seed=seed
        )
        epochs, _ = early_stopping(settings.epochs, validation, sampler.steps)
        check_stage_2(method, method.network(model), x, sampler)
    else:
        _check_numbers(settings)
    passes = settings.pretrain_epochs
    if passes is None:
        passes = default_epochs(len(labeled))
    alike = {
        "validation_data": validation,
        "seed": seed,
        "verbose": settings.verbose,
    }
    if settings.verbose:
        print(
            f"Stage 1 of {2 if unlabeled else 1}: {passes} epochs over "
            f"{len(labeled)} labelled examples, reported "
            f"{largest_divisor(passes, REPORT_EVERY)} at a time"
        )
    history = pretrain(
        model,
        x_labeled,
        y_labeled,
        epochs=passes,
        optimizer=sgd(settings.learning_rate),
        augmentation=random_augmentation(
            getattr(method, "shift", 0),
            getattr(method, "affine", 0.0),
            seed,
            image_format_of(model),
        ),
        report_every=REPORT_EVERY,
        **alike,
    ).history
    before = history["val_error"][-1] if validation else None
    summary = Summary(
        num_labeled=len(labeled),
        num_validation=len(kept),
        num_unlabeled=unlabeled,
        class_prior=prior,
        pretraining=history,
        error_before=before,
    )
    yield summary
    if not unlabeled:
        return
    logits = _logits_of_some(model, x)
    watching = WarnOnCollapse(
        before,
        batch_size=sampler.images_per_step,
        class_names=class_names,
        num_validation=len(kept) if validation else None,
        advice=_advice(method, settings, validation),
    )
    if settings.verbose:
        most = "up to " if settings.epochs == "auto" else ""
        print(
            f"Stage 2 of 2: {type(method).__name__}, {most}{epochs} epochs "
            f"over all {len(x)} examples"
        )
    history = regularize(
        model,
        x_labeled,
        x,
        y_labeled=y_labeled,
        method=method,
        epochs=settings.epochs,
        optimizer=stage_2_optimizer(
            method, epochs * sampler.steps, settings.learning_rate
        ),
        callbacks=[watching],
        **batches,
        **alike,
    )
    # With what the method has found in the data.
    trained = getattr(history.model, "method", None)
    history = history.history
    lost = lost_classes(logits, _logits_of_some(model, x))
    yield replace(
        summary,
        class_prior=getattr(trained, "class_prior", prior),
        regularization=history,
        error_after=error_rate(model, *validation) if validation else None,
        lost=tuple(class_names[i] for i in lost),
    )


def train_on_all_labels(model, x, y, settings, class_names, seed, search):
    """Trains a new model on all labels, for the epochs that were found best.

    What was kept back to find their number is missing most where labels are
    few: a model that is trained on it as well is the better one.

    Args:
        model: The model, as it was when the search began.
        x, y, settings, class_names, seed: As in `stages`.
        search: The last `Summary` of that training.

    Returns:
        The `Summary` of this one.
    """
    epochs = _best_epoch(search)
    if settings.verbose:
        print(f"Again on all labels; epochs of stage 2: {epochs}")
    # Stage 2 is not begun where it brought nothing.
    settings = copy(settings).set_params(
        epochs=max(epochs, 1), validation_fraction=0.0
    )
    both = stages(model, x, y, settings, class_names, seed)
    summary = next(both)
    if epochs:
        summary = next(both)
    return replace(summary, search=search)


def _best_epoch(summary):
    """The last epoch of stage 2 of least validation error; 0 for stage 1."""
    errors = [summary.error_before, *summary.regularization["val_error"]]
    return len(errors) - 1 - int(np.argmin(errors[::-1]))


def _advice(method, settings, validation):
    """The `Advice` in the words of `GARClassifier`."""
    is_name = isinstance(settings.method, str)
    labels = "the labels (method='safe-gar')"
    return Advice(
        rate="a lower learning_rate",
        labels=None if method.learns_labels else labels,
        prior="as class_prior" if is_name else "as class_prior to the method",
        kept=_kept(method, settings, validation),
    )


def _kept(method, settings, validation):
    """Which weights the model ends with."""
    if settings.epochs == "auto":
        # Those of another training.
        return ""
    if validation:
        return BEST_ARE_KEPT
    return LOST_CLASSES_ARE_RESTORED if method.restores_start else ""


def _logits_of_some(model, x):
    """The logits of some of the examples, from all over them."""
    some = np.linspace(0, len(x) - 1, min(len(x), LOOKED_AT)).astype(int)
    # Without `predict`, which would compile a function for so few.
    logits = [
        ops.convert_to_numpy(model(x[rows], training=False))
        for rows in np.array_split(some, -(-len(some) // 250))
    ]
    return np.concatenate(logits)


def default_epochs(num_labeled):
    """Epochs of stage 1 that make about `PRETRAIN_STEPS` steps.

    Example:

    >>> default_epochs(100), default_epochs(3000), default_epochs(60_000)
    (2000, 84, 10)
    """
    steps = math.ceil(num_labeled / BATCH_SIZE)
    epochs = math.ceil(PRETRAIN_STEPS / steps)
    if epochs > 100:
        # `pretrain` reports once in a divisor of it, and a prime has none.
        epochs = math.ceil(epochs / 100) * 100
    return max(epochs, LEAST_PASSES)


def _method(settings, prior):
    """The method of stage 2, with the prior if one is given."""
    if settings.class_prior is None:
        return method_of(settings.method, {})
    if settings.method == "gar":
        return GAR(GraphActivityRegularization(class_prior=prior))
    return method_of(settings.method, {"class_prior": prior})


def _check_numbers(settings):
    """What of stage 2 is refused even where there is none."""
    check_count("unlabeled_per_batch", settings.unlabeled_per_batch, least=1)
    if settings.labeled_per_batch is not None:
        check_count("labeled_per_batch", settings.labeled_per_batch, least=0)
    if not isinstance(settings.epochs, str) or settings.epochs != "auto":
        check_count("epochs", settings.epochs, least=1)


def check_outputs(model, x, n):
    """Builds a model for such examples; raises unless it has n outputs."""
    ensure_built(model, x)
    outputs = num_classes(model, "X", x)
    if outputs != n:
        raise ValueError(
            f"The network must have an output for each of the {n} classes that "
            f"have a label. Received: {outputs} outputs of {model.name!r}"
        )


def _keep_back(y, labeled, fraction, seed, class_names):
    """Indices of the validation examples: a share of each class.

    One at least of each class that has two.
    """
    if not check_number("validation_fraction", fraction, high=1):
        return labeled[:0]
    rng = np.random.default_rng([seed, len(y)])
    kept = []
    for c in np.unique(y[labeled]):
        of_class = rng.permutation(np.flatnonzero(y == c))
        # One at least is trained on.
        share = max(1, round(fraction * len(of_class)))
        kept.append(of_class[: min(share, len(of_class) - 1)])
    single = [class_names[c] for c, rows in enumerate(kept) if not len(rows)]
    kept = np.sort(np.concatenate(kept))
    if not len(kept):
        raise ValueError(
            f"There are too few labels to keep {fraction:g} of each class "
            f"back. Received: {len(labeled)} labels, "
            f"validation_fraction={fraction:g}. Label more examples, or set "
            "validation_fraction to 0."
        )
    if single:
        warn(
            "The validation error is without classes that have one label. "
            f"Received: {', '.join(map(repr, single))}, trained on alone. "
            "Label more examples of these."
        )
    return kept
