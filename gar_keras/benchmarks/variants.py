"""Variants of training and evaluation that the speed benchmark compares.

`VARIANTS[task][name]` makes a function that does one stretch of a workload and
returns the seconds that one unit of it took. To add a variant, write such a
maker below with `@_variant(task, name, there)` above it, where `there()` says
whether the variant exists on the backend and device in use. Records call it
the path of a case.

`plain` is the reference: what a Keras user would write, with Keras' defaults
and its own optimizer, on float32 arrays.
"""

from collections.abc import Callable
from dataclasses import dataclass

import keras
import numpy as np

from gar_keras.benchmarks import timing
from gar_keras.benchmarks.cases import IMAGES, STRETCH, TASKS, Case, Workload
from gar_keras.callbacks import ErrorRate, StopOnNaN
from gar_keras.engine import hardware, pipeline
from gar_keras.engine.fit import compile_options
from gar_keras.models import attach, without_dropout
from gar_keras.optimizers import sgd
from gar_keras.utils.validation import check_choice

PLAIN = "plain"


@dataclass(frozen=True)
class Variant:
    """A way to do a task.

    Attributes:
        make: Function of a `Workload` that returns the function to time.
        there: Whether the variant exists here.
    """

    make: Callable
    there: Callable


VARIANTS = {task: {} for task in TASKS}


def available(task):
    """Names of the variants of a task that exist here, without plain.

    They are measured in this order, the fastest first: time may be short.
    """
    return [
        name
        for name, variant in VARIANTS[task].items()
        if name != PLAIN and variant.there()
    ]


def cases(tasks, networks, precisions, path_names=None, pairs=10, steps=None):
    """The cases of some tasks, networks, precisions and paths.

    Args:
        tasks: Of `TASKS`.
        networks: `"cnn6"`, `"cnn9"`.
        precisions: `"float32"`, `"bfloat16"`.
        path_names: Paths. All that there are for the task on this backend and
            device by default.
        pairs: Timed pairs.
        steps: Steps of stage 2 in a stretch. By default what suits the device.

    Returns:
        A list of `Case`, with the paper's numbers of images.

    Raises:
        ValueError: if a path is not there for any of the tasks.
    """
    stretch = dict(STRETCH[hardware.device_kind()])
    if steps is not None:
        stretch["regularize"] = steps
    there = {task: available(task) for task in tasks}
    known = {name for names in there.values() for name in names}
    for name in path_names or ():
        check_choice("path", name, sorted(known))
    return [
        Case(task, network, path, precision, IMAGES[task][network],
             stretch[task], pairs)
        for task in tasks
        for network in networks
        for precision in precisions
        for path in there[task]
        if not path_names or path in path_names
    ]  # fmt: skip


def stretch(case, name):
    """The function that does a stretch of a case by a variant.

    Args:
        case: A `Case`.
        name: `"plain"` or one of `available(case.task)`.

    Returns:
        A function without arguments that returns the seconds of a unit.

    Raises:
        ValueError: if there is no such variant here.
    """
    check_choice("path", name, (PLAIN, *available(case.task)))
    return VARIANTS[case.task][name].make(Workload(case))


def run_once(case, name):
    """Does one stretch: what a process does whose memory is measured."""
    stretch(case, name)()


def _variant(task, name, there=lambda: True):
    def register(make):
        VARIANTS[task][name] = Variant(make, there)
        return make

    return register


@_variant("regularize", PLAIN)
def _plain_regularize(work):
    model = attach(without_dropout(work.plain_network()))
    model.compile(_plain_sgd(), loss=None)
    epochs, steps = work.lengths()
    return timing.fit(
        model,
        MixedBatches(work),
        units=epochs * steps,
        epochs=epochs,
        steps_per_epoch=steps,
    )


@_variant("regularize", "compiled", hardware.loops_on_device)
def _compiled_regularize(work):
    from gar_keras.engine import jax_epochs

    model, _ = _regularized(work)
    batches = jax_epochs.prepare(model, work.feed)
    # Whole epochs, each one step of `fit`.
    epochs = -(-work.case.stretch // work.sampler.steps)
    return timing.fit(
        model,
        batches,
        units=epochs * work.sampler.steps,
        callbacks=[StopOnNaN()],
        epochs=epochs,
        steps_per_epoch=1,
        shuffle=False,
    )


@_variant("regularize", "fit")
def _fit_regularize(work):
    model, options = _regularized(work)
    epochs, steps = work.lengths(options.get("steps_per_execution", 1))
    batches = pipeline.make_batches(work.feed)
    return timing.fit(
        model,
        batches,
        units=epochs * steps,
        callbacks=[StopOnNaN()],
        epochs=epochs,
        steps_per_epoch=steps,
        shuffle=False,
    )


@_variant("pretrain", PLAIN)
def _plain_pretrain(work):
    model = work.plain_network()
    model.compile(_plain_sgd(), _log_loss())
    return timing.fit(
        model,
        work.ready_images,
        units=work.case.stretch,
        y=work.labels,
        batch_size=work.sampler.batch,
        epochs=work.case.stretch,
    )


@_variant("pretrain", "compiled", hardware.loops_on_device)
def _compiled_pretrain(work):
    from gar_keras.engine import jax_epochs

    model, _ = _pretrained(work)
    passes = work.case.stretch
    batches = jax_epochs.prepare(model, work.feed, passes)
    return timing.fit(
        model,
        batches,
        units=passes,
        callbacks=[StopOnNaN()],
        steps_per_epoch=1,
        shuffle=False,
    )


@_variant("pretrain", "fit")
def _fit_pretrain(work):
    model, steps = _pretrained(work)
    batches = pipeline.make_batches(work.feed)
    return timing.fit(
        model,
        batches,
        units=work.case.stretch,
        callbacks=[StopOnNaN()],
        steps_per_epoch=steps,
        shuffle=False,
    )


@_variant("evaluate", PLAIN)
def _plain_evaluate(work):
    model = without_dropout(work.plain_network())
    x, y = work.ready_images, work.labels

    def measure():
        for _ in range(work.case.stretch):
            np.mean(np.argmax(model.predict(x, verbose=0), axis=-1) != y)

    return timing.timed(measure, _thousands(work))


@_variant("evaluate", "error_rate")
def _error_rate(work):
    model = without_dropout(work.network())
    errors = ErrorRate(test_error=(work.images, work.labels))

    def measure():
        for _ in range(work.case.stretch):
            errors.measure(model)

    return timing.timed(measure, _thousands(work))


class MixedBatches(keras.utils.PyDataset):
    """Batches of stage 2 as a Keras user would make them from arrays.

    Each is b_U unlabelled images, in a new order in each epoch, with b_L
    labelled ones behind them, drawn for the batch.
    """

    def __init__(self, work):
        super().__init__()
        self.work = work
        self.x_labeled = work.ready_images[: work.num_labeled]
        self.rng = np.random.default_rng(0)
        self.on_epoch_end()

    def __len__(self):
        return self.work.sampler.steps

    def __getitem__(self, index):
        sampler = self.work.sampler
        rows = self.order[index * sampler.batch : (index + 1) * sampler.batch]
        chosen = self.rng.choice(
            len(self.x_labeled), sampler.labeled_per_batch, replace=False
        )
        return np.concatenate(
            [self.work.ready_images[rows], self.x_labeled[chosen]]
        )

    def on_epoch_end(self):
        self.order = self.rng.permutation(self.work.sampler.size)


def _thousands(work):
    """Thousands of images that a stretch evaluates."""
    return work.case.stretch * work.case.images / 1000


def _plain_sgd():
    return keras.optimizers.SGD(0.01, momentum=0.95, nesterov=True)


def _log_loss():
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def _regularized(work):
    """The model as `regularize` compiles it, and its compile options."""
    model = attach(without_dropout(work.network()))
    options = compile_options(work.sampler.steps)
    model.compile(sgd(), loss=None, **options)
    return model, options


def _pretrained(work):
    """The model as `pretrain` compiles it, and the steps of a stretch."""
    model = work.network()
    steps = work.case.stretch * work.sampler.steps
    model.compile(sgd(), _log_loss(), **compile_options(steps))
    return model, steps
