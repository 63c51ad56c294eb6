"""Algorithm 1 of the paper: supervised pretraining, then GAR."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import keras
import numpy as np
from numpy.typing import ArrayLike

from gar_keras.callbacks import (
    BestWeights,
    LastEpoch,
    WarnOfError,
    WarnOfLoss,
    WarnOnCollapse,
    checkpoints_of,
    end_last,
    ending_with,
    list_of,
    standard_callbacks,
)
from gar_keras.engine.batches import (
    BATCH_SIZE,
    UNLABELED_PER_BATCH,
    BatchSampler,
    TrainingData,
    labeled_alone,
    num_examples,
)
from gar_keras.engine.data import (
    as_labeled,
    as_validation,
    check_examples,
    check_inputs,
    check_same_columns,
    prepared,
    stage_2_data,
)
from gar_keras.engine.fit import (
    check_epochs,
    compile_options,
    fit,
    largest_divisor,
)
from gar_keras.engine.graphs import DROPOUT_LAYERS, tells_training
from gar_keras.engine.keras_internals import flatten_layers
from gar_keras.engine.optimizers import (
    compile_saved,
    sgd,
    stage_2_optimizer,
    with_loss_scale,
)
from gar_keras.engine.replicas import in_scope_of_model
from gar_keras.engine.statistics import MeasureStatistics
from gar_keras.engine.streams import Stream
from gar_keras.layers import regularization_layers
from gar_keras.methods import method_of
from gar_keras.methods.base import Stage2, needs_labels, network_of
from gar_keras.metrics import error_rate
from gar_keras.models import plain_network, warn_of_own_training
from gar_keras.utils.types import Callbacks, Images, Pairs, Verbosity
from gar_keras.utils.validation import (
    check_count,
    check_flag,
    check_labels,
)
from gar_keras.utils.warnings import warn

# How far statistics of BatchNormalization may be off, in standard deviations:
# settled ones were off by less than 0.13, others by 1.4 and more.
LARGEST_GAP = 0.5


@in_scope_of_model
def pretrain(
    model: keras.Model,
    x_labeled: Images,
    y_labeled: ArrayLike | None = None,
    *,
    epochs: int = 2000,
    batch_size: int = BATCH_SIZE,
    optimizer: keras.optimizers.Optimizer | None = None,
    validation_data: Pairs | None = None,
    report_every: int = 100,
    initial_epoch: int = 0,
    seed: int = 0,
    callbacks: Callbacks = (),
    verbose: Verbosity = "auto",
) -> keras.callbacks.History:
    """Stage 1: trains on the labelled images alone (Algorithm 1, first loop).

    Args:
        model: A compiled or plain `keras.Model` from images to logits
            `(batch, n)`, trained in place with the cross-entropy. The loss of a
            GAR layer in it is left out: it belongs to stage 2. Without such a
            layer the model itself is compiled anew: its optimizer, loss and
            metrics are replaced.
        x_labeled: X_L, `(m_L, ...)`, in any form that `fit` takes; it is taken
            into memory, unless it is an image source.
        y_labeled: Class indices `(m_L,)`, or one-hot rows. Left out where
            `x_labeled` is a `tf.data.Dataset` or a `keras.utils.PyDataset` of
            pairs `(x, y)`.
        epochs: Epochs over X_L. The paper trains until a stopping criterion,
            its code for 2,000 epochs.
        batch_size: Images in a batch.
        optimizer: A Keras optimizer. `sgd()` by default.
        validation_data: `(x, y)` whose error is measured, or a data set of
            such pairs, which is taken into memory, or `None`.
        report_every: Epochs that make up one epoch of `fit`, at most; the
            number used is the largest divisor of `epochs` up to it. Logs,
            validation and callbacks come once in so many epochs.
        initial_epoch: Epochs that are done already, when training goes on
            with the optimizer of an earlier call.
        seed: Seed of the order of the batches.
        callbacks: Keras callbacks, as in `fit`. One that monitors `val_error`
            needs `mode="min"`, for `val_accuracy` `mode="max"`, and for
            `val_loss` neither. A `ModelCheckpoint` writes `model`.
        verbose: As in `fit`.

    Returns:
        A `keras.callbacks.History`. With `validation_data` it has `val_error`,
        from 0 to 1, `val_accuracy`, which is `1 - val_error`, and `val_loss`,
        the mean cross-entropy of the labels.

    Raises:
        ValueError: if the data do not fit together or do not fit the model,
            if the model gives no logits or has no weights that are trained, or
            if the loss of GAR cannot be taken out of it; see
            `gar_keras.detach`.
        FloatingPointError: if the loss becomes NaN or infinite. The model
            has the weights that it had before then.

    Warns:
        GARWarning: if the first weights of the model get numbers as they are
            that are too large, such as pixels from 0 to 255, or too small, if
            float32 does not hold a column of features, if the validation data
            have numbers of another size, or if a class has no label.

    Example:

    >>> from gar_keras import error_rate
    >>> x, y = np.array([[1., 0.], [0., 1.]]), np.array([0, 1])
    >>> model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)])
    >>> history = pretrain(model, x, y, epochs=200, verbose=0)
    >>> error_rate(model, x, y)
    0.0
    """
    check_same_columns(x_labeled, validation_data)
    x_labeled, y_labeled = as_labeled(x_labeled, y_labeled, model=model)
    validation_data = as_validation(validation_data, x_labeled, model)
    check_examples("x_labeled", x_labeled)
    check_epochs(epochs, initial_epoch)
    callbacks = list_of(callbacks)
    per_report = largest_divisor(
        epochs, check_count("report_every", report_every, least=1)
    )
    if initial_epoch % per_report:
        raise ValueError(
            f"initial_epoch must be a multiple of the {per_report} epochs that "
            f"one epoch of fit takes. Received: initial_epoch={initial_epoch}"
        )
    check_count("batch_size", batch_size, least=1)
    sampler = BatchSampler(num_examples(x_labeled), batch_size, seed=seed)
    plain, classes, validation_data = prepared(
        model, plain_network, x_labeled, validation_data
    )
    y_labeled = check_labels("y_labeled", y_labeled, sampler.size, classes)
    warn_of_missing_classes(y_labeled, classes)
    if plain is not model:
        warn_of_own_training(model)
    compile_saved(
        plain,
        optimizer or sgd(),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        **compile_options(plain, per_report * sampler.steps),
    )
    start = plain.get_weights()
    data = TrainingData(sampler, x_labeled, labels=y_labeled)
    last_epoch = LastEpoch()
    callbacks = [*standard_callbacks(validation_data), *callbacks, last_epoch]
    if tells_training(plain):
        callbacks = [MeasureStatistics(plain, data), *callbacks]
    else:
        warn_of_inference(plain)
    try:
        with checkpoints_of(model, callbacks) as callbacks:
            return fit(
                plain,
                data,
                passes=per_report,
                epochs=epochs // per_report,
                initial_epoch=initial_epoch // per_report,
                callbacks=callbacks,
                verbose=verbose,
            )
    except BaseException as e:
        last_epoch.restore()
        if isinstance(e, FloatingPointError):
            plain.set_weights(start)
        raise


@in_scope_of_model
def regularize(
    model: keras.Model,
    x_labeled: Images,
    x_unlabeled: Images,
    *,
    y_labeled: ArrayLike | None = None,
    method: Any = None,
    epochs: int = 100,
    labeled_per_batch: int | None = None,
    unlabeled_per_batch: int = UNLABELED_PER_BATCH,
    images_per_epoch: int | None = None,
    optimizer: keras.optimizers.Optimizer | None = None,
    validation_data: Pairs | None = None,
    keep_best: bool = True,
    initial_epoch: int = 0,
    seed: int = 0,
    class_names: Sequence | None = None,
    callbacks: Callbacks = (),
    verbose: Verbosity = "auto",
    **settings,
) -> keras.callbacks.History:
    """Stage 2: goes on with unlabelled examples (Algorithm 1, second loop).

    With labels it is `method="safe-gar"`: GAR that is set up by what the model
    predicts, so that it does little harm, and the cross-entropy of the labels;
    without, it is `method="gar"`: the paper's loss, where they play no part,
    and with `optimizer=sgd()` the paper's stage 2. Dropout layers are left out,
    as in the paper's experiments, unless a term of the method keeps them (not
    those inside a subclassed model, which Keras cannot take apart); all other
    layers are trained in place.

    Args:
        model: A pretrained `keras.Model` from examples to logits `(batch, n)`.
            One that was made in the scope of a
            `tf.distribute.MirroredStrategy` is trained on its replicas, with
            the loss of the whole batch.
        x_labeled: X_L, as for `pretrain`.
        x_unlabeled: X_U, `(m_U, ...)`, in any form that `fit` takes, or an
            image source. The paper's code takes all training images, the
            labelled ones among them. A `numpy.memmap`, an `h5py.Dataset` and
            data sets are read batch by batch, and not searched for NaN. The
            images of a `tf.data.Dataset` or a `keras.utils.PyDataset` are put
            into batches of b_U as they come: it should be shuffled.
        y_labeled: Labels of X_L, as for `pretrain`, or `None`.
        method: A list of terms, such as `[GAR(), CrossEntropy(), VAT()]`, or
            the name of one in `gar_keras.methods.METHODS`.
        epochs: Epochs over X_U, at most: with `validation_data` a
            `keras.callbacks.EarlyStopping("val_error", mode="min")` among the
            `callbacks` ends the training sooner.
        labeled_per_batch: b_L. By default 16, or each of X_L in every batch
            where there are fewer. The paper takes about a tenth of m_L.
        unlabeled_per_batch: b_U. The paper fills the batch up to 128.
        images_per_epoch: Images of X_U in an epoch, if not all of them, drawn
            at random; the epochs take turns until all have been seen. For a
            data set the default is the number of its batches times the size of
            the first; a data set of unknown length needs this number.
        optimizer: A Keras optimizer. By default the authors', `sgd()`, but
            with a term of GAR, whose first steps can lose a class for good,
            the gradient is clipped to a norm of 1, and the rate rises over the
            first 100 steps (a fifth of all, if that is less).
        validation_data: As for `pretrain`.
        keep_best: Whether the model ends with the weights of the epoch of this
            call with the least validation error (the last of them), or with
            those it began with if every epoch has a greater error, also where
            an exception or Ctrl-C ends training. Without `validation_data` it
            ends with those of the last step.
        initial_epoch: Epochs that are done already, when training goes on
            with the optimizer of an earlier call. What rises or falls over the
            training does so over `epochs`: give both calls the same. Noise and
            data sets begin anew. With `"safe-gar"` it also goes on with the
            prior and the scale of that call: `method=history.model.method`.
            With `"mean-teacher"` it goes on from the teacher: the student is
            not kept.
        seed: Seed of the order of the batches.
        class_names: What warnings call the classes, in the order of the logits.
            `None` for their indices.
        callbacks: As for `pretrain`: what a `ModelCheckpoint` writes is without
            the loss of GAR. The hooks of a batch come once in up to 100 steps
            on TensorFlow, and with JAX on a GPU, for examples in memory, once
            an epoch.
        verbose: As in `fit`.
        **settings: Settings of the terms of a method that has a name:
            `regularize(..., method="vat", epsilon=1.0)`. Those of `"safe-gar"`
            are e.g. `class_prior`, `supervised`, the weight of the labels, or
            `layer`, a `GraphActivityRegularization` in place of one with the
            paper's coefficients.

    Returns:
        A `keras.callbacks.History` with `loss`, a mean over the examples, the
        weighted terms that it is the sum of, by their names, means over the
        batches, and, with `validation_data`, what `pretrain` adds. GAR's term
        is `regularization`, with which `affinity`, `balance` and
        `classes_in_use` come; that of the labels is `supervised`.
        `val_loss` rises where a few of the predictions that GAR makes confident
        are wrong. Its `model` is the `gar_keras.methods.base.Stage2` that was
        trained.

    Raises:
        ValueError: if the data do not fit together, if a batch asks for more
            labelled images than there are, or if the model gives no logits or
            has no weights that are trained.
        FloatingPointError: if the loss becomes NaN or infinite. The model
            has its best weights then, as `keep_best` has it, and else those
            that this call began with, of which a copy is kept for that.

    Warns:
        GARWarning: if the examples are not scaled, as for `pretrain`, or those
            of X_L otherwise than the rest; if the labels are used and a class
            has none; if the moving statistics of a `BatchNormalization` do not
            fit its weights and these examples; if the mean loss of an epoch is
            above 10; or if at the end the validation error is greater than
            before. With `GAR` also of what
            `gar_keras.callbacks.WarnOnCollapse` sees, of which `callbacks` may
            hold one of your own instead; with `"safe-gar"` of what
            `gar_keras.callbacks.CheckShares` sees at the end; with both, if
            the batches of a data set hold few of the classes each.

    Example:

    >>> x, y = np.array([[2., 0.], [0., 2.]]), np.array([0, 1])
    >>> logits = keras.layers.Dense(2, kernel_initializer="identity")
    >>> model = keras.Sequential([keras.Input((2,)), logits])
    >>> history = regularize(
    ...     model, x, np.repeat(x, 40, axis=0), labeled_per_batch=2, epochs=3,
    ...     validation_data=(x, y), verbose=0,
    ... )
    >>> history.history["val_error"]
    [0.0, 0.0, 0.0]
    """
    check_flag("keep_best", keep_best)
    if optimizer is not None:
        # What is none is refused before a term changes weights.
        optimizer = keras.optimizers.get(optimizer)
    callbacks = list_of(callbacks)
    plan = plan_stage_2(
        model,
        x_labeled,
        x_unlabeled,
        y_labeled,
        method,
        settings,
        validation_data,
        epochs=epochs,
        initial_epoch=initial_epoch,
        labeled_per_batch=labeled_per_batch,
        unlabeled_per_batch=unlabeled_per_batch,
        images_per_epoch=images_per_epoch,
        seed=seed,
    )
    if class_names is not None and len(class_names) != plan.num_classes:
        raise ValueError(
            "class_names must have a name for each output of the logits. "
            f"Received: {len(class_names)} names for {plan.num_classes} outputs"
        )
    warn_of_own_training(model)
    network, sampler = plan.network, plan.data.sampler
    validation = plan.validation
    statistics = MeasureStatistics(network, plan.data)
    # What a method finds at the start is of the network that it trains.
    gap = 0.0 if initial_epoch else statistics.measure()
    if gap > LARGEST_GAP:
        warn(
            "The moving statistics of BatchNormalization that the model came "
            "with do not fit it on these examples, and are measured anew. "
            f"Received: off by {gap:.2g} standard deviations. Either they had "
            "not settled in its own training (too few steps for the layers' "
            "momentum), and all that was measured with them is wrong, or the "
            "unlabelled examples are unlike what it was trained on."
        )
    start = network.get_weights()
    terms, trained, data = [], network, plan.data
    if not any(term.uses_unlabeled for term in plan.method):
        data = labeled_alone(data)
    steps = epochs * sampler.steps
    try:
        for term in plan.method:
            term, trained, data = term.setup(trained, data, initial_epoch)
            terms.append(term)
        stage_2 = Stage2(
            terms,
            trained,
            plan.num_classes,
            steps,
            sampler.labeled_per_batch,
            sampler.seed,
            evaluated=network,
        )
        if data is not plan.data:
            # The batches of the training are others.
            statistics = MeasureStatistics(network, data)
        # What rises or falls over the training goes on from there.
        stage_2.step.assign(initial_epoch * sampler.steps)
        stage_2.compile(
            with_loss_scale(
                network, optimizer or stage_2_optimizer(terms, steps)
            ),
            loss=None,
            **compile_options(stage_2, sampler.steps),
        )
        evaluated = statistics.evaluated = stage_2.evaluated
        layers = regularization_layers(stage_2)
        if not initial_epoch:
            for layer in layers:
                layer.reset_shares()
        keepers = []
        if validation is not None:
            before = error_rate(network, *validation)
            if keep_best:
                keepers.append(BestWeights(before, evaluated, start))
            else:
                keepers.append(WarnOfError(before, evaluated, *validation))
        is_watched = any(isinstance(c, WarnOnCollapse) for c in callbacks)
        for term in terms:
            keepers += [
                callback
                for callback in term.callbacks(
                    evaluated, plan.data, validation is not None, class_names
                )
                if not (is_watched and isinstance(callback, WarnOnCollapse))
            ]
        names = [layer.metric_name("regularization") for layer in layers]
        callbacks = [
            statistics,
            *standard_callbacks(validation),
            WarnOfLoss([*stage_2.means, *names]),
            *keepers,
            *callbacks,
            LastEpoch(),
            # Whatever weights others restore, what is said of the end is so.
            end_last(keepers),
        ]
        # It reads the metrics of the layers before others predict, which count
        # in those of a layer in the model.
        first = [c for c in callbacks if isinstance(c, WarnOnCollapse)]
        others = [c for c in callbacks if not isinstance(c, WarnOnCollapse)]
        callbacks = [*first, *others]
    except BaseException:
        # The setup of a term can have scaled the last layer.
        network.set_weights(start)
        raise
    written = model if evaluated is network else evaluated
    with (
        checkpoints_of(written, callbacks) as callbacks,
        ending_with(network, stage_2, start, callbacks),
    ):
        return fit(
            stage_2,
            data,
            epochs=epochs,
            initial_epoch=initial_epoch,
            callbacks=callbacks,
            verbose=verbose,
        )


class Plan(NamedTuple):
    """What a training of stage 2 is made of, all of it checked.

    `method` are the terms before their `setup`, and `data` has labels if a term
    uses them; `validation` is a pair or `None`.
    """

    method: list
    network: keras.Model
    num_classes: int
    data: TrainingData
    validation: tuple | None


def plan_stage_2(
    model,
    x_labeled,
    x_unlabeled,
    y_labeled,
    method,
    settings,
    validation_data,
    *,
    epochs,
    initial_epoch=0,
    images_per_epoch=None,
    **batches,
):
    """The `Plan` of a call of `regularize`; raises what it refuses."""
    data, validation = stage_2_data(
        x_labeled,
        y_labeled,
        x_unlabeled,
        validation_data,
        model,
        images_per_epoch=images_per_epoch,
        **batches,
    )
    if method is None:
        method = "gar" if data.y_labeled is None else "safe-gar"
    is_named = isinstance(method, str)
    method = method_of(method, settings)
    is_left_out = data.y_labeled is not None and not needs_labels(method)
    if is_left_out and not is_named:
        warn(
            "The labels play no part: no term of the method uses them. "
            f"Received: y_labeled, and method={method}. Add CrossEntropy()."
        )
    check_epochs(epochs, initial_epoch)
    network, n, validation = prepared(
        model,
        lambda model: network_of(method, model),
        data.x_labeled,
        validation,
    )
    if not isinstance(data.images, Stream):
        check_inputs(network, "x_unlabeled", data.images)
    check_stage_2(method, network, data.images, data.sampler)
    y = None
    if needs_labels(method):
        m = data.sampler.num_labeled
        y = check_labels("y_labeled", data.y_labeled, m, n)
        warn_of_missing_classes(y, n)
    return Plan(method, network, n, replace(data, y_labeled=y), validation)


def warn_of_missing_classes(y, n):
    """Warns if a class that the model has an output for has no label."""
    missing = np.setdiff1d(np.arange(n), y)
    if len(missing):
        warn(
            f"No example is labelled as class {', '.join(map(str, missing))}, "
            "which the model has an output for: no example will be given to "
            "it. Label some, or take a model without that output."
        )


def warn_of_inference(model):
    """Warns if a model is trained with layers that act as in inference."""
    kinds = (keras.layers.BatchNormalization, *DROPOUT_LAYERS)
    found = [
        layer for layer in flatten_layers(model) if isinstance(layer, kinds)
    ]
    if found:
        warn(
            f"The call of {type(model).__name__} has no argument training: "
            f"Keras trains it with {found[0].name!r} as in inference. Write "
            "def call(self, x, training=None)."
        )


def check_stage_2(method, network, x_unlabeled, sampler):
    """Raises what stage 2 refuses of terms, their network and its data."""
    if needs_labels(method):
        check_count("labeled_per_batch", sampler.labeled_per_batch, least=1)
    for term in method:
        term.check(network, x_unlabeled)
