"""Times of two ways to do the same, as pairs from one process."""

import gc
import math
import statistics
import time

import keras
import numpy as np


def interleave(first, second, pairs, per_build=4, tell=lambda done: None):
    """Pairs of the seconds of two ways, in turns on the same machine.

    A B, B A, A B and so on, so that neither always comes second. Both are
    called once before, to warm up: to fill caches, and to trace and compile.

    Each way is a function that builds a function that does some work and
    returns the seconds that a unit of it took. Where its arrays happen to lie
    in memory makes a network faster or slower, for as long as it lives, by more
    than what is measured here: so it is built anew for each `per_build` pairs.
    Between the pairs `tell` gets the number of those that are done.

    Example:

    >>> interleave(lambda: lambda: 2.0, lambda: lambda: 3.0, pairs=2)
    [(2.0, 3.0), (2.0, 3.0)]
    """
    times = []
    for start in range(0, pairs, per_build):
        a, b = _in_turn(first, second, start // per_build)
        _in_turn(a, b, 1)
        for turn in range(min(per_build, pairs - start)):
            times.append(_in_turn(a, b, turn))
            tell(len(times))
        del a, b
        gc.collect()
    return times


def _in_turn(first, second, turn):
    """What both return; the second one is called first in odd turns."""
    if turn % 2:
        b = second()
        return first(), b
    return first(), second()


def compare(times):
    """The `spread`s of two or more pairs `(seconds of reference, seconds)`.

    Example:

    >>> result = compare([(1.0, 1.1), (2.0, 2.0), (1.0, 1.2)])
    >>> result["ratio"]["median"], result["ms"]["median"]
    (1.1, 1200.0)
    """
    return spreads([(1000 * a, 1000 * b) for a, b in times])


def spreads(pairs):
    """The same of pairs in milliseconds."""
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


def training(fit, units):
    """A function that calls `fit(callbacks=...)` and returns seconds a unit.

    An epoch has so many units. The first, in which a model is compiled, does
    not count.
    """

    def run():
        clock = _Clock()
        fit(callbacks=[clock])
        return clock.seconds / units

    return run


class _Clock(keras.callbacks.Callback):
    """Takes the seconds of an epoch, of all but the first."""

    def on_epoch_end(self, epoch, logs=None):
        # Waits for a device that works on its own. The last weight is small.
        np.asarray(self.model.trainable_weights[-1].numpy())
        now = time.perf_counter()
        if epoch == 0:
            self.start = now
        else:
            self.seconds = (now - self.start) / epoch
        if not math.isfinite(logs["loss"]):
            raise FloatingPointError(
                f"The loss became {logs['loss']} while the time was taken. "
                "The steps of a diverged network measure nothing."
            )
