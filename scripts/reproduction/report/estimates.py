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
    """

    mean: float
    deviation: float | None
    n: int

    @classmethod
    def of(cls, errors):
        """From errors in percent, one for each seed.

        Example:

        >>> str(Estimate.of([1, 2, 3]))
        '2.00 ± 1.00 (n = 3)'
        """
        errors = [float(error) for error in errors]
        deviation = statistics.stdev(errors) if len(errors) > 1 else None
        return cls(statistics.mean(errors), deviation, len(errors))

    def interval(self):
        """The 95 % interval of the mean by Student's t, or `None` if n = 1.

        Example:

        >>> between(Estimate.of([1, 2, 3]).interval())   # 2 ± 4.303 * 1 / √3
        '-0.48 to 4.48'
        """
        if self.deviation is None:
            return None
        error = self.deviation / math.sqrt(self.n)
        return _interval(self.mean, error, self.n - 1)

    def of_standard_error(self):
        """The estimate, where what is told as its ± is the mean's own error.

        Example:

        >>> Estimate(1.56, 0.09, 9).of_standard_error().text()
        '1.56 ± 0.27'
        """
        return self._replace(deviation=self.deviation * math.sqrt(self.n))

    def text(self, sign=""):
        """Mean and deviation alone, of a difference with its sign: `"+"`."""
        spread = "" if self.deviation is None else f" ± {self.deviation:.2f}"
        return f"{self.mean:{sign}.2f}{spread}"

    def __str__(self):
        return f"{self.text()} (n = {self.n})"


def equivalence(ours, theirs, margin):
    """Whether two means are nearer to each other than a margin, by Welch's t.

    Args:
        ours, theirs: `Estimate`s that have a deviation.
        margin: In points, above 0.

    Returns:
        `(difference, interval, p)`: how far ours is above theirs, its 90 %
        interval, and the larger p of the two one-sided tests that it is not
        above -margin, and not below margin. It is below 5 % where the interval
        lies within the margins.
    """
    difference, error, degrees = _welch(ours, theirs)
    interval = _interval(difference, error, degrees, level=0.90)
    room = margin - abs(difference)
    if error:
        p = stats.t.sf(room / error, degrees)
    else:
        p = 0.0 if room > 0 else 1.0
    return difference, interval, float(p)


def _welch(first, second):
    """A difference of means, its standard error and degrees of freedom."""
    variances = [e.deviation**2 / e.n for e in (first, second)]
    total = sum(variances)
    parts = zip(variances, (first, second), strict=True)
    divisor = sum(variance**2 / (e.n - 1) for variance, e in parts)
    degrees = total**2 / divisor if divisor else math.inf
    return first.mean - second.mean, math.sqrt(total), degrees


def _interval(mean, error, degrees, level=0.95):
    if not error:
        return mean, mean
    return stats.t.interval(level, degrees, mean, error)


def between(interval):
    """An interval as text."""
    return MISSING if interval is None else "{:.2f} to {:.2f}".format(*interval)
