"""Means, deviations and intervals of errors over seeds, in percent."""

import math
import statistics
from dataclasses import dataclass

from scipy import stats

# In a cell without a figure.
MISSING = "-"


@dataclass(frozen=True)
class Estimate:
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
        return _interval(self.mean, self.deviation**2 / self.n, self.n - 1)

    def interval_above(self, other):
        """Welch's 95 % interval of how far the mean is above another one.

        It is `None` if either has no deviation.

        Example:

        >>> ours, paper = Estimate(1.6, 0.1, 3), Estimate(1.56, 0.09, 10)
        >>> between(ours.interval_above(paper))     # 0.04 ± 3.14 * 0.0644
        '-0.16 to 0.24'
        """
        if self.deviation is None or other.deviation is None:
            return None
        ours, theirs = (e.deviation**2 / e.n for e in (self, other))
        total = ours + theirs
        degrees = 0.0
        if total:
            degrees = total**2 / (
                ours**2 / (self.n - 1) + theirs**2 / (other.n - 1)
            )
        return _interval(self.mean - other.mean, total, degrees)

    def text(self, sign=""):
        """Mean and deviation alone, of a difference with its sign: `"+"`."""
        spread = "" if self.deviation is None else f" ± {self.deviation:.2f}"
        return f"{self.mean:{sign}.2f}{spread}"

    def __str__(self):
        return f"{self.text()} (n = {self.n})"


def _interval(mean, variance, degrees):
    error = math.sqrt(variance)
    half = stats.t.ppf(0.975, degrees) * error if error else 0.0
    return mean - half, mean + half


def between(interval):
    """An interval as text."""
    return MISSING if interval is None else "{:.2f} to {:.2f}".format(*interval)
