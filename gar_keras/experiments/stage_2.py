"""Stage 2 of a run: its method, with the network of stage 1 or without one."""

import time

import numpy as np

from gar_keras.callbacks import CoefficientSchedule, ErrorRate
from gar_keras.collapse import WarnOnCollapse
from gar_keras.experiments.recorder import Deadline, OutOfTime, RunRecorder
from gar_keras.optimizers import stage_2_optimizer


def run(setup, state, deadline, reporter=None, callbacks=()):
    """Trains what is left of stage 2.

    Args:
        setup: The `Setup` of the run.
        state: Its `RunState`.
        deadline: `time.monotonic()` at which it must have stopped.
        reporter: A `progress.Reporter`, or `None`.
        callbacks: Further Keras callbacks.

    Raises:
        OutOfTime: if the deadline came first.
    """
    e = setup.experiment
    done = state.done("regularization")
    if done == e.epochs:
        return
    errors = ErrorRate(**setup.errors.sets, **setup.versions.sets)
    recorder = RunRecorder(state, errors, "regularization", reporter=reporter)
    setup.method.train(
        setup.model,
        setup.x_labeled,
        setup.y_labeled,
        setup.unlabeled,
        epochs=e.epochs,
        labeled_per_batch=e.labeled_per_batch,
        unlabeled_per_batch=e.unlabeled_per_batch,
        images_per_epoch=e.images_per_epoch,
        optimizer=state.restored(_optimizer(e, len(setup.unlabeled))),
        initial_epoch=done,
        state=state.method_state,
        seed=setup.training_seed,
        callbacks=[
            recorder,
            Deadline(deadline),
            *_warm_up(e),
            *_collapse_warning(setup, state),
            *callbacks,
        ],
        verbose=0,
    )
    if state.done("regularization") < e.epochs:
        raise OutOfTime


def propagate(setup, state):
    """Runs a method without a network: its curve has one epoch.

    Args:
        setup: The `Setup` of the run.
        state: Its `RunState`.
    """
    sets = setup.errors.sets
    x, y = zip(*sets.values(), strict=True)
    start = time.perf_counter()
    predicted = setup.method.fit_predict(
        setup.x_labeled,
        setup.y_labeled,
        setup.unlabeled,
        np.concatenate(x),
        seed=setup.seed,
    )
    seconds = time.perf_counter() - start
    wrong = np.split(predicted != np.concatenate(y), [len(y[0])])
    errors = {
        name: [None, float(part.mean())]
        for name, part in zip(sets, wrong, strict=True)
    }
    times = {"seconds": [None, round(seconds, 3)]}
    state.progress["regularization"] = {
        "seconds": seconds,
        "curve": {"epoch": [0, 1], **errors, **times},
    }


def _optimizer(e, num_unlabeled):
    steps = e.steps_per_epoch(num_unlabeled)
    return stage_2_optimizer(
        e.extensions,
        e.epochs * steps,
        e.stage_2_rate or e.learning_rate,
        e.momentum,
        e.decay,
    )


def _warm_up(e):
    epochs = e.extensions.affinity_warmup
    if not epochs:
        return []
    return [
        CoefficientSchedule(
            affinity=lambda i: e.affinity * min(1.0, (i + 1) / epochs)
        )
    ]


def _collapse_warning(setup, state):
    """The warning that knows the epochs before this process, too."""
    if not setup.method.warns_of_collapse:
        return []
    e = setup.experiment
    curve = state.curve("regularization")
    before, *earlier = (
        dict(zip(curve, row, strict=True))
        for row in zip(*curve.values(), strict=True)
    )
    batch_size = e.labeled_per_batch + e.unlabeled_per_batch
    return [
        WarnOnCollapse(
            before["val_error"],
            earlier,
            batch_size,
            num_validation=e.num_validation,
        )
    ]
