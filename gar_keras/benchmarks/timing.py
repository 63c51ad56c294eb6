"""Times of two ways to do the same, as pairs from one process."""

import gc
import math
import statistics
import time

import keras
import numpy as np

from gar_keras.experiments.recorder import OutOfTime


def interleave(first, second, pairs, deadline=math.inf):
    """Times two functions in turns, so that both see the same machine.

    Each is called once before, to warm up: to trace, to compile, to fill
    caches. Then A B, B A, A B and so on, so that neither always comes second.

    Args:
        first: Function without arguments that does some work and returns the
            seconds that one unit of it took.
        second: Likewise.
        pairs: Number of pairs.
        deadline: `time.monotonic()` at which to have stopped.

    Returns:
        A list of `(seconds of first, seconds of second)`.

    Raises:
        OutOfTime: if the deadline would come before the last pair.

    Example:

    >>> interleave(lambda: 2.0, lambda: 3.0, pairs=2)
    [(2.0, 3.0), (2.0, 3.0)]
    """
    times = []
    longest = 0.0
    # One more: the pair that warms up.
    for turn in range(pairs + 1):
        start = time.monotonic()
        if start + longest > deadline:
            raise OutOfTime
        if turn % 2:
            a = first()
            b = second()
        else:
            b = second()
            a = first()
        longest = max(longest, time.monotonic() - start)
        times.append((a, b))
    return times[1:]


def rebuild(first, second, pairs, deadline=math.inf, per_build=4):
    """Times two ways in turns, and builds them anew after some pairs.

    Where its arrays happen to lie in memory makes a network faster or slower,
    for as long as it lives, by more than what is measured here. So it is built
    several times, now before the other and now behind it.

    Args:
        first: Function without arguments that builds what `interleave` takes.
        second: Likewise.
        pairs: Number of pairs in all.
        deadline: As for `interleave`.
        per_build: Pairs with the same two, at most.

    Returns:
        A list of `(seconds of first, seconds of second)`.

    Raises:
        OutOfTime: if the deadline would come before the last pair.
    """
    times = []
    for build in range(-(-pairs // per_build)):
        some = min(per_build, pairs - len(times))
        if build % 2:
            b = second()
            a = first()
        else:
            a = first()
            b = second()
        times += interleave(a, b, some, deadline)
        del a, b
        gc.collect()
    return times


def compare(times):
    """Medians and quartiles of pairs of times.

    Args:
        times: At least two pairs `(seconds of the reference, seconds)`.

    Returns:
        A dict of `spread`s: `"reference_ms"` and `"ms"` a unit, `"ratio"` (the
        second over the reference, pair by pair) and `"difference_ms"`.

    Example:

    >>> result = compare([(1.0, 1.1), (2.0, 2.0), (1.0, 1.2)])
    >>> result["ratio"]["median"], result["ms"]["median"]
    (1.1, 1200.0)
    """
    pairs = [(1000 * a, 1000 * b) for a, b in times]
    return {
        "reference_ms": spread([a for a, _ in pairs]),
        "ms": spread([b for _, b in pairs]),
        "ratio": spread([b / a for a, b in pairs]),
        "difference_ms": spread([b - a for a, b in pairs]),
    }


def spread(values):
    """Median, quartiles and all values, as a dict for a record.

    Example:

    >>> spread([1.0, 2.0, 3.0, 4.0, 10.0])["quartiles"]
    [2.0, 4.0]
    """
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return {"median": middle, "quartiles": [low, high], "all": list(values)}


def timed(function, units=1):
    """A function that calls another and returns its seconds a unit.

    Args:
        function: Function without arguments that ends when its work is done.
        units: Units of work in a call.
    """

    def run():
        start = time.perf_counter()
        function()
        return (time.perf_counter() - start) / units

    return run


def fit(model, x, units, *, callbacks=(), **options):
    """A function that runs `fit` and returns its seconds a unit.

    The time runs from the start of the first epoch to the end of the last,
    when the weights are there: what `fit` does once, however many epochs
    follow, is left out.

    Args:
        model: A compiled model.
        x: What `fit` trains on.
        units: Units of work in a call.
        callbacks: Callbacks that belong to the work.
        **options: Other arguments of `fit`.

    Raises:
        FloatingPointError: by the function returned, if the loss is NaN or
            infinite: such a run is not a measurement.
    """
    clock = _Clock()

    def run():
        model.fit(x, verbose=0, callbacks=[*callbacks, clock], **options)
        return (clock.end - clock.start) / units

    return run


class _Clock(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        self.start = None

    def on_epoch_begin(self, epoch, logs=None):
        if self.start is None:
            self.start = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        # Waits for a device that works on its own. The last weight is small.
        np.asarray(self.model.trainable_weights[-1].numpy())
        self.end = time.perf_counter()
        if not math.isfinite(logs["loss"]):
            raise FloatingPointError(
                f"The loss became {logs['loss']} while the time was taken. "
                "The steps of a diverged network measure nothing."
            )
