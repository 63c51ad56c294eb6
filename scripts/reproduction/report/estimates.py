"""Means, deviations and intervals of errors over seeds, in percent."""

import math
import statistics
from typing import NamedTuple

from scipy import stats

# In a cell without a figure.
MISSING = "-"


class Estimate(NamedTuple):
    """Mean and standard deviation of an error over n seeds, in percent.

    The deviation is that of a sample, `None` for one seed.

    Example:

    >>> str(Estimate.of([1, 2, 3]))
    '2.00 ± 1.00 (n = 3)'
    >>> between(Estimate.of([1, 2, 3]).interval())   # 2 ± 4.303 * 1 / √3
    '-0.48 to 4.48'
    """

    mean: float
    deviation: float | None
    n: int

    @classmethod
    def of(cls, errors):
        """From errors in percent, one for each seed."""
        errors = [float(error) for error in errors]
        deviation = statistics.stdev(errors) if len(errors) > 1 else None
        return cls(statistics.mean(errors), deviation, len(errors))

    def interval(self):
        """The 95 % interval of the mean by Student's t, or `None` if n = 1."""
        if self.deviation is None:
            return None
        half = stats.t.ppf(0.975, self.n - 1) * self.deviation
        half /= math.sqrt(self.n)
        return self.mean - half, self.mean + half

    def text(self, sign=""):
        """Mean and deviation alone, of a difference with its sign: `"+"`."""
        spread = "" if self.deviation is None else f" ± {self.deviation:.2f}"
        return f"{self.mean:{sign}.2f}{spread}"

    def __str__(self):
        return f"{self.text()} (n = {self.n})"


def equivalence(ours, theirs, margin):
    """Whether two means are nearer to each other than a margin, by Welch's t.

    Args:
        ours, theirs: `Estimate`s with a deviation, one of them above 0.
        margin: In points, above 0.

    Returns:
        `(difference, interval, answer)`: how far ours is above theirs, its 90 %
        interval, and "yes" if it lies within the margin, as where both
        one-sided tests say so at 5 %, "no" if it lies beyond, else "not told".
    """
    difference = ours.mean - theirs.mean
    a, b = ours.deviation**2 / ours.n, theirs.deviation**2 / theirs.n
    degrees = (a + b) ** 2 / (a**2 / (ours.n - 1) + b**2 / (theirs.n - 1))
    half = stats.t.ppf(0.95, degrees) * math.sqrt(a + b)
    answer = "not told"
    if abs(difference) + half < margin:
        answer = "yes"
    elif abs(difference) - half > margin:
        answer = "no"
    return difference, (difference - half, difference + half), answer


def between(interval):
    """An interval as text."""
    return MISSING if interval is None else "{:.2f} to {:.2f}".format(*interval)
