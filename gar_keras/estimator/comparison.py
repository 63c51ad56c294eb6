"""What each method would bring, measured on the labels at hand."""

import inspect
from collections.abc import Sequence

import keras
import numpy as np
from numpy.typing import ArrayLike

from gar_keras.callbacks import list_of
from gar_keras.engine.batches import LABELED_PER_BATCH, num_examples, take
from gar_keras.engine.copies import (
    copy_model,
    copy_with_new_weights,
    seeded,
)
from gar_keras.engine.data import as_labeled
from gar_keras.engine.graphs import check_model
from gar_keras.methods import method_of
from gar_keras.metrics import error_rate
from gar_keras.models import check_linear, warn_of_own_training
from gar_keras.training import plan_stage_2, pretrain, regularize
from gar_keras.utils.types import Images
from gar_keras.utils.validation import (
    check_count,
    check_flag,
    check_labels,
    check_verbosity,
    received,
)


def compare(
    model: keras.Model,
    x_labeled: Images,
    y_labeled: ArrayLike,
    x_unlabeled: Images,
    methods: Sequence[str] = ("safe-gar", "gar", "entropy"),
    *,
    folds: int = 5,
    pretrain_epochs: int = 2000,
    seed: int = 0,
    **options,
) -> dict[str, list[float]]:
    """Compares methods of stage 2 by cross-validation of the labels.

    The labels are cut into folds, each with its share of every class. For each
    fold a copy of the model with new weights is pretrained on the other folds,
    and each method goes on from there. With few labels the errors are coarse:
    look at the folds, not at small differences of their means.

    Args:
        model: A `keras.Model` from examples to logits. It is not trained
            itself; in the copies, weights that are not trained keep their
            values, such as those of `Normalization` and of frozen layers.
        x_labeled: X_L, `(m_L, ...)`.
        y_labeled: Class indices `(m_L,)`.
        x_unlabeled: X_U, `(m_U, ...)`.
        methods: Names for `method` of `gar_keras.regularize`.
        folds: Number of folds, at least 2.
        pretrain_epochs: Epochs of each pretraining.
        seed: Seed of folds, weights and batches.
        **options: Further arguments of `gar_keras.regularize`, e.g. `epochs`;
            of an `optimizer` each training gets a new one of its config.
            `verbose` is 0 by default; with another one the pretrainings are
            shown as well, and a line in front of each training names it.

    Returns:
        The error on each fold, from 0 to 1, by the name of the method, and as
        `"pretraining"` that before stage 2.

    Raises:
        ValueError: before any training, if the data or the options do not fit
            together, or if a class has fewer labels than two.

    Example:

    >>> x, y = np.repeat(np.eye(2), 4, axis=0), np.repeat([0, 1], 4)
    >>> model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)])
    >>> errors = compare(
    ...     model, x, y, x, ["gar"], folds=2, pretrain_epochs=1, epochs=1,
    ...     labeled_per_batch=2, verbose=0,
    ... )
    >>> sorted(errors), len(errors["gar"])
    (['gar', 'pretraining'], 2)
    """
    check_model(model)
    check_linear(model)
    x_labeled, y_labeled = as_labeled(x_labeled, y_labeled)
    m = num_examples(x_labeled)
    methods = _as_list(methods)
    options = {"verbose": 0, **options}
    _check_methods(methods, options)
    check_count("pretrain_epochs", pretrain_epochs, least=1)
    check_count("seed", seed, least=0)
    warn_of_own_training(model)
    # `pretrain` knows of how many classes the model is.
    y = check_labels("y_labeled", y_labeled, m)
    fold_of = _folds(y, check_count("folds", folds, least=2, most=m), seed)
    verbose = options["verbose"]
    optimizer = options.pop("optimizer", None)
    _check_optimizer(optimizer)
    most = options.pop("labeled_per_batch", None)
    if most is None:
        most = LABELED_PER_BATCH
    check_count("labeled_per_batch", most, least=0)
    # With the fewest labels to train on.
    first = np.flatnonzero(fold_of != 0)
    with seeded(seed):
        _check_training(
            copy_model(model, x_labeled),
            take(x_labeled, first),
            y[first],
            x_unlabeled,
            methods,
            {"seed": seed, "labeled_per_batch": min(most, len(first))},
            options,
        )
    errors = {name: [] for name in ("pretraining", *methods)}
    for fold in range(folds):
        kept, others = (
            np.flatnonzero(side) for side in (fold_of == fold, fold_of != fold)
        )
        held = take(x_labeled, kept), y[kept]
        x, labels = take(x_labeled, others), y[others]
        with seeded(seed + fold):
            copy = copy_with_new_weights(model)
        if verbose:
            print(f"Fold {fold + 1} of {folds}: pretraining")
        pretrain(
            copy,
            x,
            labels,
            epochs=pretrain_epochs,
            seed=seed,
            verbose=verbose,
        )
        start = copy.get_weights()
        errors["pretraining"].append(error_rate(copy, *held))
        for number, name in enumerate(methods, start=1):
            if verbose:
                print(
                    f"Fold {fold + 1} of {folds}, method {number} of "
                    f"{len(methods)}: {name}"
                )
            copy.set_weights(start)
            regularize(
                copy,
                x,
                x_unlabeled,
                y_labeled=labels,
                method=name,
                labeled_per_batch=min(most, len(labels)),
                optimizer=_copy_of(optimizer),
                seed=seed,
                **options,
            )
            errors[name].append(error_rate(copy, *held))
    return errors


def _as_list(methods):
    is_one = isinstance(methods, str) or not hasattr(methods, "__iter__")
    return [methods] if is_one else [*methods]


def _check_methods(methods, options):
    """Raises unless each method is named once, and takes the options."""
    if not methods or len({*methods}) < len(methods):
        raise ValueError(
            "methods must name one method or more, each once. Received: "
            f"methods={methods}"
        )
    set_here = {"model", "x_labeled", "x_unlabeled", "y_labeled", "method"}
    twice = set_here & options.keys()
    if twice:
        raise TypeError(
            f"compare sets {min(twice)} of each training itself. Received: "
            f"{min(twice)} as a further argument of gar_keras.regularize."
        )
    for name in methods:
        method_of(name, _of_method(options))


def _of_method(options):
    """Those of the options that are not arguments of `regularize` itself."""
    taken = inspect.signature(regularize).parameters
    return {name: options[name] for name in options.keys() - taken.keys()}


def _check_training(model, x, y, x_unlabeled, methods, set_here, options):
    """Raises what `regularize` would refuse, with these arguments."""
    arguments = inspect.signature(regularize).parameters
    given = {name: argument.default for name, argument in arguments.items()}
    given |= options | set_here
    check_flag("keep_best", given["keep_best"])
    check_verbosity(given["verbose"])
    list_of(given["callbacks"])
    names = ("labeled_per_batch", "unlabeled_per_batch", "images_per_epoch")
    batches = {name: given[name] for name in (*names, "seed")}
    epochs = {name: given[name] for name in ("epochs", "initial_epoch")}
    for name in methods:
        plan = plan_stage_2(
            model,
            x,
            x_unlabeled,
            y,
            name,
            _of_method(options),
            given["validation_data"],
            **epochs,
            **batches,
        )
        if given["initial_epoch"]:
            plan.method.setup(plan.network, plan.data, given["initial_epoch"])


def _check_optimizer(optimizer):
    try:
        keras.optimizers.get(optimizer)
    except (TypeError, ValueError):
        raise ValueError(
            "optimizer must be a Keras optimizer, or None for that of the "
            f"method. Received: {received('optimizer', optimizer)}"
        ) from None


def _copy_of(optimizer):
    """A new optimizer of the same settings, without the state of another."""
    if not isinstance(optimizer, keras.optimizers.Optimizer):
        return optimizer
    return type(optimizer).from_config(optimizer.get_config())


def _folds(y, folds, seed):
    """The number of the fold of each label."""
    counts = np.bincount(y)
    if counts[counts > 0].min() < 2:
        raise ValueError(
            "Cross-validation needs two labels of each class. Received: one of "
            f"class {np.flatnonzero(counts == 1)[0]}. Label more examples."
        )
    # Shuffled, then class by class: dealt out, each fold has its share of each.
    rows = np.random.default_rng(seed).permutation(len(y))
    rows = rows[np.argsort(y[rows], kind="stable")]
    fold_of = np.empty(len(y), int)
    fold_of[rows] = np.arange(len(y)) % folds
    return fold_of
