"""What the regularizer costs, as paired ratios from one process."""

from dataclasses import asdict
from dataclasses import dataclass
import json
import multiprocessing
import resource
import statistics
import time

import keras
import numpy as np

from gar_keras import backend
from gar_keras import datasets
from gar_keras.batches import BatchPlan
from gar_keras.experiments import environment
from gar_keras.experiments import records
from gar_keras.layers import GraphActivityRegularization
from gar_keras.models import cnn6
from gar_keras.training import sgd


@dataclass(frozen=True)
class Case:
    """What is timed: cnn6 on MNIST images, with and without the regularizer.

    Attributes:
        batch_size: Images in a batch.
        num_classes: `n`, outputs of the network.
        num_images: `m`, images to draw from. Above 60,000: InfiMNIST, made on
            the way.
        precision: `"float32"` or `"bfloat16"`.
        steps: Steps in a timed stretch.
        pairs: Timed pairs of stretches.
    """

    batch_size: int = 128
    num_classes: int = 10
    num_images: int = 60_000
    precision: str = "float32"
    steps: int = 40
    pairs: int = 10


def interleave(first, second, pairs):
    """Times two functions in turns, so that both see the same machine.

    Each is called once before, to warm up. Which of them begins changes from
    pair to pair.

    Args:
        first: Function to time.
        second: Function to time.
        pairs: Number of pairs.

    Returns:
        A list of `(seconds of first, seconds of second)`.

    Example:

    >>> len(interleave(lambda: None, lambda: None, pairs=3))
    3
    """
    first()
    second()
    times = []
    for turn in range(pairs):
        if turn % 2:
            b = _seconds(second)
            a = _seconds(first)
        else:
            a = _seconds(first)
            b = _seconds(second)
        times.append((a, b))
    return times


def summarize(times, steps):
    """Median step times and the median of the per-pair ratio.

    Args:
        times: List of `(seconds without, seconds with)` for `steps` steps.
        steps: Steps in each.

    Returns:
        A dict: `"without_ms"` and `"with_ms"` a step, `"ratio"` (with over
        without), its quartiles and all ratios.

    Example:

    >>> summary = summarize([(1.0, 1.1), (2.0, 2.0), (1.0, 1.2)], steps=10)
    >>> summary["ratio"], summary["with_ms"]
    (1.1, 120.0)
    """
    ratios = [b / a for a, b in times]
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return {
        "without_ms": 1000 * statistics.median(a for a, _ in times) / steps,
        "with_ms": 1000 * statistics.median(b for _, b in times) / steps,
        "ratio": middle,
        "ratio_quartiles": [low, high],
        "ratios": ratios,
    }


def overhead(case):
    """Times supervised training with and without GAR's terms (section 4.1).

    Both networks, their batches and their loops are the same; one has a
    `GraphActivityRegularization` behind its logits.

    Args:
        case: A `Case`.

    Returns:
        What `summarize` returns.
    """
    plain, regularized = (_trainer(case, gar) for gar in (False, True))
    return summarize(interleave(plain, regularized, case.pairs), case.steps)


def peak_memory(case, gar):
    """Peak memory of a process that trains one stretch.

    Args:
        case: A `Case`.
        gar: Whether with the regularizer.

    Returns:
        Peak resident set in MiB, of a process of its own.
    """
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_train_and_measure, (case, gar))


def measure(cases, path, console):
    """Measures cases and writes them to one file, as they come.

    Cases that the file holds already are not measured again.

    Args:
        cases: List of `Case`.
        path: Path of the JSON file.
        console: A `rich` console for the results.

    Returns:
        The content of the file.
    """
    content = {"environment": environment.describe(), "cases": []}
    if path.exists():
        content = json.loads(path.read_text())
    done = [entry["case"] for entry in content["cases"]]
    for case in cases:
        if asdict(case) in done:
            continue
        entry = {"case": asdict(case), **overhead(case)}
        entry["peak_mib"] = {
            name: peak_memory(case, gar)
            for name, gar in (("without", False), ("with", True))
        }
        content["cases"].append(entry)
        records.write(path, content)
        console.print(describe(entry))
    return content


def describe(entry):
    """One line on a measured case."""
    c = entry["case"]
    low, high = entry["ratio_quartiles"]
    return (
        f"batch {c['batch_size']}, n = {c['num_classes']}, "
        f"m = {c['num_images']:,}, {c['precision']}: "
        f"{entry['without_ms']:.1f} ms a step without, "
        f"{entry['with_ms']:.1f} ms with GAR; ratio {entry['ratio']:.3f} "
        f"({low:.3f} to {high:.3f}, {c['pairs']} pairs); peak "
        f"{entry['peak_mib']['without']:.0f} and "
        f"{entry['peak_mib']['with']:.0f} MiB"
    )


def _trainer(case, gar):
    """A function that trains one stretch."""
    keras.utils.set_random_seed(0)
    dtype = "mixed_bfloat16" if case.precision == "bfloat16" else "float32"
    network = cnn6(
        num_classes=case.num_classes,
        preprocessing=keras.layers.Rescaling(1 / 255, dtype="float32"),
        dropout=False,
        dtype=dtype,
    )
    logits = network.outputs[0]
    if gar:
        logits = GraphActivityRegularization()(logits)
    model = keras.Model(network.inputs, logits)
    model.compile(
        sgd(),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        **backend.compile_options(case.steps),
    )
    batches = _batches(case)

    def train():
        model.fit(batches, steps_per_epoch=case.steps, verbose=0, shuffle=False)

    return train


def _batches(case):
    mnist = datasets.load("mnist")
    images = mnist.x_train
    if case.num_images > len(images):
        images = datasets.load_infimnist(length=case.num_images)
    labels = np.arange(case.num_images) % case.num_classes
    plan = BatchPlan(
        case.num_images,
        case.batch_size,
        per_epoch=case.steps * case.batch_size,
    )
    return backend.make_batches(plan, images, labels=labels)


def _train_and_measure(case, gar):
    _trainer(case, gar)()
    # Linux counts in KiB.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _seconds(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start
