"""Algorithm 1 of the paper: supervised pretraining, then GAR."""

import keras
import numpy as np

from gar_keras.callbacks import BestWeights
from gar_keras.callbacks import ErrorRate
from gar_keras.callbacks import StopOnNaN
from gar_keras.callbacks import error_rate
from gar_keras.callbacks import list_of
from gar_keras.collapse import WarnOnCollapse
from gar_keras.engine.batches import BatchSampler
from gar_keras.engine.batches import Feed
from gar_keras.engine.fit import compile_options
from gar_keras.engine.fit import fit
from gar_keras.engine.fit import largest_divisor
from gar_keras.models import attach
from gar_keras.models import check_linear
from gar_keras.models import detach
from gar_keras.models import ensure_built
from gar_keras.models import has_graph
from gar_keras.models import moved
from gar_keras.models import without_dropout
from gar_keras.optimizers import SGD
from gar_keras.paper import DECAY
from gar_keras.paper import LABELED_PER_BATCH
from gar_keras.paper import LEARNING_RATE
from gar_keras.paper import MOMENTUM
from gar_keras.paper import UNLABELED_PER_BATCH
from gar_keras.scaling import warn_if_unscaled
from gar_keras.utils.validation import check_array
from gar_keras.utils.validation import check_count
from gar_keras.utils.validation import check_images
from gar_keras.utils.validation import check_labels
from gar_keras.utils.validation import check_number
from gar_keras.utils.validation import is_source


def sgd(learning_rate=LEARNING_RATE, momentum=MOMENTUM, decay=DECAY):
    """The optimizer of the paper's experiments, for both stages.

    SGD with Nesterov momentum and the rate `learning_rate / (1 + decay * t)`
    at step `t`.

    Args:
        learning_rate: Rate of the first step. Callbacks can set it.
        momentum: Nesterov momentum.
        decay: Decay of the rate per step.

    Returns:
        A new `gar_keras.optimizers.SGD`.

    Raises:
        ValueError: if a number is not valid.

    Example:

    >>> optimizer = sgd()
    >>> round(optimizer.momentum, 2), optimizer.nesterov
    (0.95, True)
    """
    rate = check_number("learning_rate", learning_rate)
    return SGD(rate, momentum=momentum, nesterov=True, decay=decay)


def pretrain(
    model,
    x_labeled,
    y_labeled,
    *,
    epochs=2000,
    batch_size=128,
    optimizer=None,
    validation_data=None,
    report_every=100,
    initial_epoch=0,
    moves=(),
    seed=0,
    callbacks=(),
    verbose="auto",
):
    """Stage 1: trains on the labelled images alone (Algorithm 1, first loop).

    Args:
        model: A compiled or plain `keras.Model` from images to logits
            `(batch, n)`, trained in place with the log loss. The loss of a
            GAR layer in it is left out: it belongs to stage 2. Without such a
            layer and without `moves` the model itself is compiled anew: its
            optimizer, loss and metrics are replaced.
        x_labeled: X_L, `(m_L, ...)`.
        y_labeled: Class indices `(m_L,)`.
        epochs: Passes over X_L. The paper trains until a stopping criterion,
            its code for 2,000 epochs.
        batch_size: Images in a batch.
        optimizer: A Keras optimizer. `sgd()` by default.
        validation_data: `(x, y)` whose error is measured, or `None`.
        report_every: Passes that make up one epoch of `fit`, at most; the
            number used is the largest divisor of `epochs` up to it. Logs,
            validation and callbacks come once in so many passes.
        initial_epoch: Passes that are done already, when training goes on
            with the optimizer of an earlier call.
        moves: Layers that move the images in training, e.g.
            `gar_keras.random_moves(2, 0.1)`. None in the paper.
        seed: Seed of the order of the batches.
        callbacks: Keras callbacks, as in `fit`. One that monitors `val_error`
            needs `mode="min"`, and for `val_accuracy` `mode="max"`.
        verbose: As in `fit`.

    Returns:
        A `keras.callbacks.History`. With `validation_data` it has `val_error`,
        from 0 to 1, and `val_accuracy`, which is `1 - val_error`.

    Raises:
        ValueError: if the data do not fit together or do not fit the model,
            or if the model gives no logits.
        FloatingPointError: if the loss becomes NaN or infinite.

    Warns:
        GARWarning: if the first weights of the model get large integers, such
            as pixels from 0 to 255, as they are.

    Example:

    >>> x, y = np.array([[1., 0.], [0., 1.]]), np.array([0, 1])
    >>> model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)])
    >>> history = pretrain(model, x, y, epochs=200, verbose=0)
    >>> error_rate(model, x, y)
    0.0
    """
    check_images("x_labeled", x_labeled)
    check_epochs(epochs, initial_epoch)
    callbacks = list_of(callbacks)
    passes = largest_divisor(
        epochs, check_count("report_every", report_every, least=1)
    )
    if initial_epoch % passes:
        raise ValueError(
            f"initial_epoch must be a multiple of the {passes} passes that "
            f"one epoch of fit takes. Received: initial_epoch={initial_epoch}"
        )
    plan = BatchSampler(len(x_labeled), batch_size, seed=seed)
    ensure_built(model, x_labeled)
    plain = detach(model)
    check_linear(plain)
    classes = num_classes(plain, "x_labeled", x_labeled)
    y_labeled = check_labels("y_labeled", y_labeled, len(x_labeled), classes)
    watching = watch(validation_data, classes, like=("x_labeled", x_labeled))
    trained = moved(plain, moves)
    trained.compile(
        optimizer or sgd(),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        **compile_options(passes * plan.steps),
    )
    return fit(
        trained,
        Feed(plan, x_labeled, labels=y_labeled),
        passes=passes,
        epochs=epochs // passes,
        initial_epoch=initial_epoch // passes,
        callbacks=[*watching, *callbacks],
        verbose=verbose,
    )


def regularize(
    model,
    x_labeled,
    x_unlabeled,
    *,
    layer=None,
    logits=None,
    epochs=100,
    labeled_per_batch=LABELED_PER_BATCH,
    unlabeled_per_batch=UNLABELED_PER_BATCH,
    images_per_epoch=None,
    optimizer=None,
    validation_data=None,
    keep_best=True,
    initial_epoch=0,
    seed=0,
    callbacks=(),
    verbose="auto",
):
    """Stage 2: trains with the loss of GAR alone (Algorithm 1, second loop).

    Labels play no part. Dropout layers are left out, as in the paper's
    experiments (not those inside a subclassed model, which Keras cannot take
    apart); all other layers are trained in place.

    Args:
        model: A pretrained `keras.Model` whose output, or one of whose layers,
            is the logits `(batch, n)`.
        x_labeled: X_L, `(m_L, ...)`. Only the images: they guide each batch.
        x_unlabeled: X_U, `(m_U, ...)`, or an image source. The paper's code
            takes all training images, the labelled ones among them. A
            `numpy.memmap` is read batch by batch, and not searched for NaN.
        layer: A `GraphActivityRegularization`. One with the paper's
            coefficients by default.
        logits: Name of the layer that gives the logits, if it is not the last.
        epochs: Passes over X_U.
        labeled_per_batch: b_L. The paper takes about a tenth of m_L.
        unlabeled_per_batch: b_U. The paper fills the batch up to 128.
        images_per_epoch: Images of X_U in an epoch, if not all of them.
        optimizer: A Keras optimizer. A new `sgd()` by default.
        validation_data: `(x, y)` whose error is measured, or `None`.
        keep_best: Whether the model ends with the weights of the epoch with
            the least validation error (the first of them), of the epochs of
            this call: those before `initial_epoch` do not count. Without
            `validation_data` it ends with those of the last epoch.
        initial_epoch: Epochs that are done already, when training goes on
            with the optimizer of an earlier call.
        seed: Seed of the order of the batches.
        callbacks: Keras callbacks, as in `fit`. One that monitors `val_error`
            needs `mode="min"`, and for `val_accuracy` `mode="max"`. Their
            hooks of a batch come once in up to 100 steps on TensorFlow, which
            runs as many in one call, and once an epoch with JAX on a GPU.
        verbose: As in `fit`.

    Returns:
        A `keras.callbacks.History` with `loss`, `affinity`, `balance`,
        `regularization` and, with `validation_data`, `val_error`, from 0 to 1,
        and `val_accuracy`, which is `1 - val_error`.

    Raises:
        ValueError: if the data do not fit together, if a batch asks for more
            labelled images than there are, or if the model gives no logits.
        FloatingPointError: if the loss becomes NaN or infinite.

    Warns:
        GARWarning: if the first weights of the model get large integers, such
            as pixels from 0 to 255, as they are; or if the outputs collapse,
            the batches are too small for the number of classes or the
            validation error rises; see
            `gar_keras.collapse.WarnOnCollapse`, of which `callbacks` may
            hold one of your own instead.

    Example:

    >>> x, y = np.array([[1., 0.], [0., 1.]]), np.array([0, 1])
    >>> logits = keras.layers.Dense(2, kernel_initializer="identity")
    >>> model = keras.Sequential([keras.Input((2,)), logits])
    >>> history = regularize(
    ...     model, x, np.repeat(x, 40, axis=0), labeled_per_batch=2, epochs=3,
    ...     validation_data=(x, y), verbose=0,
    ... )
    >>> history.history["val_error"]
    [0.0, 0.0, 0.0]
    """
    check_epochs(epochs, initial_epoch)
    callbacks = list_of(callbacks)
    plan = plan_stage_2(
        x_labeled,
        x_unlabeled,
        labeled_per_batch,
        unlabeled_per_batch,
        images_per_epoch,
        seed,
    )
    ensure_built(model, x_labeled)
    regularized = attach(without_dropout(model), layer, logits)
    classes = num_classes(regularized, "x_labeled", x_labeled)
    watching = watch(validation_data, classes, like=("x_labeled", x_labeled))
    if validation_data is not None and keep_best:
        watching.append(BestWeights())
    regularized.compile(
        optimizer or sgd(), loss=None, **compile_options(plan.steps)
    )
    callbacks = with_alarm(callbacks, regularized, validation_data, plan)
    return fit(
        regularized,
        Feed(plan, x_unlabeled, x_labeled),
        epochs=epochs,
        initial_epoch=initial_epoch,
        callbacks=[*watching, *callbacks],
        verbose=verbose,
    )


def check_epochs(epochs, initial_epoch):
    """Raises unless training can go on from one epoch up to the other."""
    check_count("epochs", epochs, least=1)
    check_count("initial_epoch", initial_epoch, least=0, most=epochs)


def plan_stage_2(
    x_labeled,
    x_unlabeled,
    labeled_per_batch,
    unlabeled_per_batch,
    images_per_epoch,
    seed,
):
    """The `BatchSampler` of X_L and X_U, of which both are checked."""
    check_array("x_labeled", x_labeled)
    check_images("x_unlabeled", x_unlabeled, like=("x_labeled", x_labeled))
    return BatchSampler(
        len(x_unlabeled),
        unlabeled_per_batch,
        len(x_labeled),
        labeled_per_batch,
        seed,
        images_per_epoch,
    )


def num_classes(model, name, x):
    """n of the logits `(batch, n)` that the model gives for such images."""
    for tensor in model.inputs if has_graph(model) else ():
        dtype = keras.backend.standardize_dtype(tensor.dtype)
        if "int" in dtype and not np.can_cast(x.dtype, dtype):
            raise ValueError(
                f"The model takes images of dtype {dtype}, and Keras would "
                f"cut off what does not fit. Received: {name} of dtype "
                f"{x.dtype}. Give the images as they are stored."
            )
    image = x.take([0]) if is_source(x) else x[:1]
    shape = getattr(model(image), "shape", None)
    if shape is None or len(shape) != 2 or shape[-1] < 2:
        raise ValueError(
            "The model must give one row of logits (n of at least 2) for each "
            f"image. Received: model={model.name!r}, whose output for one "
            f"image has the shape {shape}"
        )
    warn_if_unscaled(model, x)
    return shape[-1]


def with_alarm(callbacks, model, validation_data, plan):
    """The callbacks, with a `WarnOnCollapse` behind them if they have none."""
    if any(isinstance(c, WarnOnCollapse) for c in callbacks):
        return callbacks
    before = validation_data and error_rate(model, *validation_data)
    # The last, so that it sees the errors that others put in the logs.
    alarm = WarnOnCollapse(before, batch_size=plan.images_per_step)
    return [*callbacks, alarm]


def watch(validation_data, num_classes, like):
    """The callbacks that every training runs with."""
    if validation_data is None:
        return [StopOnNaN()]
    if not isinstance(validation_data, tuple | list) or (
        len(validation_data) != 2
    ):
        raise ValueError(
            "validation_data must be a pair (x, y) of images and class "
            f"indices. Received: {type(validation_data).__name__}"
        )
    x, y = validation_data
    check_array("validation_data[0]", x, like)
    y = check_labels("validation_data[1]", y, len(x), num_classes)
    return [StopOnNaN(), ErrorRate(val_error=(x, y))]
