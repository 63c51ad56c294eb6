"""Overhead of the regularizer, as paired ratios from one process."""

import math
from dataclasses import dataclass

import keras
import numpy as np

from gar_keras import datasets
from gar_keras.benchmarks import memory, timing
from gar_keras.engine import hardware, pipeline
from gar_keras.engine.batches import BatchSampler, Feed
from gar_keras.engine.fit import compile_options
from gar_keras.experiments.settings import PRECISIONS
from gar_keras.layers import GraphActivityRegularization
from gar_keras.models import POLICIES, cnn6
from gar_keras.optimizers import sgd
from gar_keras.paper import BATCH_SIZE
from gar_keras.utils.validation import check_choice, check_count

# Images of an epoch, however many there are to draw from, as in the paper.
PER_EPOCH = 60_000
# Steps in a stretch, by the kind of device.
STEPS = {"cpu": 40, "gpu": 400}


@dataclass(frozen=True)
class Case:
    """A case that is timed: cnn6 on MNIST, with and without GAR.

    Attributes:
        batch_size: Images in a batch.
        num_classes: `n`, outputs of the network.
        num_images: `m`, images to draw from, 60,000 of them in an epoch.
            Above 60,000: InfiMNIST, made on the way.
        precision: `"float32"` or `"bfloat16"`.
        steps: Steps in a timed stretch.
        pairs: Timed pairs of stretches.

    Raises:
        ValueError: if a value is out of range.
    """

    batch_size: int = BATCH_SIZE
    num_classes: int = 10
    num_images: int = 60_000
    precision: str = "float32"
    steps: int = 40
    pairs: int = 10

    def __post_init__(self):
        check_count("num_images", self.num_images, least=1)
        most = min(self.num_images, PER_EPOCH)
        check_count("batch_size", self.batch_size, least=1, most=most)
        check_count("num_classes", self.num_classes, least=2)
        check_choice("precision", self.precision, PRECISIONS)
        check_count("steps", self.steps, least=1)
        # One value has no quartiles.
        check_count("pairs", self.pairs, least=2)


def measure(case, deadline=math.inf):
    """Times supervised training with and without GAR's terms (section 4.1).

    Both networks, their batches and their loops are the same; one has a
    `GraphActivityRegularization` behind its logits.

    Args:
        case: A `Case`.
        deadline: `time.monotonic()` at which to have stopped.

    Returns:
        A dict for a record: what `timing.compare` returns, with the network
        without the terms as the reference, and `"peak"`, the memory of
        processes that train one stretch.

    Raises:
        OutOfTime: if the deadline comes first.
        FloatingPointError: if the network diverges.
    """
    times = timing.rebuild(
        lambda: stretch(case, False),
        lambda: stretch(case, True),
        case.pairs,
        deadline,
    )
    return {
        **timing.compare(times),
        "peak": {
            "without": memory.peak(run_once, case, False),
            "with": memory.peak(run_once, case, True),
        },
    }


def stretch(case, gar):
    """The function that trains one stretch and returns the seconds of a step.

    Args:
        case: A `Case`.
        gar: Whether with the regularizer.
    """
    keras.utils.set_random_seed(0)
    network = cnn6(
        num_classes=case.num_classes,
        preprocessing=keras.layers.Rescaling(1 / 255, dtype="float32"),
        dropout=False,
        dtype=POLICIES[case.precision],
    )
    logits = network.outputs[0]
    if gar:
        logits = GraphActivityRegularization()(logits)
    model = keras.Model(network.inputs, logits)
    model.compile(
        sgd(),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        **compile_options(case.steps),
    )
    if hardware.loops_on_device():
        return _on_device(model, case)
    return timing.fit(
        model,
        pipeline.make_batches(_feed(case)),
        units=case.steps,
        steps_per_epoch=case.steps,
        shuffle=False,
    )


def run_once(case, gar):
    """Trains one stretch: what a process does whose memory is measured."""
    stretch(case, gar)()


def describe(entry):
    """One line on a measured case."""
    c = entry["case"]
    low, high = entry["ratio"]["quartiles"]
    return (
        f"batch {c['batch_size']}, n = {c['num_classes']:,}, "
        f"m = {c['num_images']:,}, {c['precision']}: "
        f"{entry['reference_ms']['median']:.4g} ms a step without, "
        f"{entry['ms']['median']:.4g} ms with GAR; ratio "
        f"{entry['ratio']['median']:.4f} ({low:.4f} to {high:.4f}, "
        f"{c['pairs']} pairs); peak {memory.text(entry['peak']['without'])} "
        f"and {memory.text(entry['peak']['with'])}"
    )


def _on_device(model, case):
    """Whole epochs in one program, as GAR trains there: at least the steps."""
    from gar_keras.engine import jax_epochs

    feed = _feed(case)
    passes = -(-case.steps // feed.sampler.steps)
    return timing.fit(
        model,
        jax_epochs.prepare(model, feed, passes),
        units=passes * feed.sampler.steps,
        steps_per_epoch=1,
        shuffle=False,
    )


def _feed(case):
    in_epoch = min(case.num_images, PER_EPOCH)
    sampler = BatchSampler(
        case.num_images,
        case.batch_size,
        # Without a last batch of another size.
        images_per_epoch=in_epoch - in_epoch % case.batch_size,
        in_random_order=True,
    )
    labels = np.arange(case.num_images) % case.num_classes
    if case.num_images <= PER_EPOCH:
        images = datasets.load("mnist").x_train[: case.num_images]
        return Feed(sampler, images, labels=labels)
    # Its first 60,000 images are MNIST's as they are: begin behind them.
    images = datasets.load_infimnist(length=case.num_images)
    return Feed(sampler, images, labels=labels, first_epoch=2)
