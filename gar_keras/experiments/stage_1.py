"""Stage 1 of a run: the labelled images alone."""

from gar_keras.engine.fit import largest_divisor
from gar_keras.experiments.recorder import Deadline, OutOfTime, RunRecorder
from gar_keras.optimizers import sgd
from gar_keras.training import pretrain


def run(setup, state, deadline, reporter=None):
    """Trains what is left of stage 1, and ends it.

    Args:
        setup: The `Setup` of the run.
        state: Its `RunState`.
        deadline: `time.monotonic()` at which it must have stopped.
        reporter: A `progress.Reporter`, or `None`.

    Raises:
        OutOfTime: if the deadline came first.
    """
    e = setup.experiment
    done = state.done("pretraining")
    if done < e.pretrain_epochs:
        per_report = largest_divisor(e.pretrain_epochs, 100)
        optimizer = sgd(e.learning_rate, e.momentum, e.decay)
        recorder = RunRecorder(
            state, setup.errors, "pretraining", per_report, reporter
        )
        pretrain(
            setup.model,
            setup.x_labeled,
            setup.y_labeled,
            epochs=e.pretrain_epochs,
            report_every=per_report,
            batch_size=e.batch_size,
            optimizer=state.restored(optimizer),
            initial_epoch=done,
            augmentation=setup.augmentation,
            seed=setup.training_seed,
            callbacks=[recorder, Deadline(deadline)],
            verbose=0,
        )
        if state.done("pretraining") < e.pretrain_epochs:
            raise OutOfTime
    state.begin_stage_2(setup.versions.measure(setup.model))
