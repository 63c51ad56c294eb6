"""Means, deviations and intervals of errors over seeds."""

import math
import statistics
from dataclasses import dataclass, replace
from typing import NamedTuple

# 97.5 % quantiles of Student's t, for 1 to 30 degrees of freedom.
T_QUANTILES = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


class Interval(NamedTuple):
    """Two ends and what is between them.

    Example:

    >>> str(Interval(1.5, 2)), 2 in Interval(1.5, 2), 3 in Interval(1.5, 2)
    ('1.50 to 2.00', True, False)
    """

    low: float
    high: float

    def __contains__(self, value):
        return self.low <= value <= self.high

    def __str__(self):
        return f"{self.low:.2f} to {self.high:.2f}"


@dataclass(frozen=True)
class Estimate:
    """Mean and standard deviation of an error over seeds, in percent.

    Attributes:
        mean: Mean.
        deviation: Sample standard deviation, or `None` for one seed.
        n: Number of seeds.
        signed: Whether it is a difference, which shows its sign.
    """

    mean: float
    deviation: float | None
    n: int
    signed: bool = False

    @classmethod
    def of(cls, errors):
        """From errors as shares from 0 to 1, one for each seed.

        Example:

        >>> str(Estimate.of([0.01, 0.02, 0.03]))
        '2.00 ± 1.00 (n = 3)'
        """
        percent = [100 * error for error in errors]
        deviation = statistics.stdev(percent) if len(percent) > 1 else None
        return cls(statistics.mean(percent), deviation, len(percent))

    @classmethod
    def of_differences(cls, first, errors):
        """Of the differences from the first errors; `None` without a seed.

        Args:
            first: Errors as shares from 0 to 1, by seed.
            errors: Likewise.

        Example:

        >>> str(Estimate.of_differences({0: 0.05, 1: 0.06}, {1: 0.04, 2: 0.03}))
        '-2.00 (n = 1)'
        """
        found = differences(first, errors)
        return replace(cls.of(found), signed=True) if found else None

    def interval(self):
        """The 95 % interval of the mean by Student's t, or `None` if n = 1.

        Example:

        >>> low, high = Estimate.of([0.01, 0.02, 0.03]).interval()
        >>> round(low, 2), round(high, 2)           # 2 ± 4.303 * 1 / √3
        (-0.48, 4.48)
        """
        if self.deviation is None:
            return None
        half = _t(self.n - 1) * self.deviation / math.sqrt(self.n)
        return Interval(self.mean - half, self.mean + half)

    def interval_above(self, other):
        """Welch's 95 % interval of how far the mean is above another one.

        Args:
            other: An `Estimate` from other runs.

        Returns:
            An `Interval`, or `None` if either has no deviation.

        Example:

        >>> ours, paper = Estimate(1.6, 0.1, 3), Estimate(1.56, 0.09, 10)
        >>> str(ours.interval_above(paper))     # 0.04 ± 3.182 * 0.0644
        '-0.16 to 0.24'
        """
        if self.deviation is None or other.deviation is None:
            return None
        ours, theirs = self._variance(), other._variance()
        total, difference = ours + theirs, self.mean - other.mean
        if not total:
            return Interval(difference, difference)
        degrees = total**2 / (
            ours**2 / (self.n - 1) + theirs**2 / (other.n - 1)
        )
        half = _t(degrees) * math.sqrt(total)
        return Interval(difference - half, difference + half)

    def _variance(self):
        """That of the mean."""
        return self.deviation**2 / self.n

    def __str__(self):
        spread = "" if self.deviation is None else f" ± {self.deviation:.2f}"
        mean = f"{self.mean:{'+' if self.signed else ''}.2f}"
        return f"{mean}{spread} (n = {self.n})"


def _t(degrees):
    """The quantile of so many degrees of freedom, rounded down."""
    # The table ends at 30; more would only make intervals narrower.
    whole = min(int(degrees + 1e-9), len(T_QUANTILES))
    return T_QUANTILES[whole - 1]


def differences(first, errors):
    """How far errors are above the first ones, of the seeds that both have.

    Example:

    >>> differences({0: 1, 1: 2}, {1: 4, 2: 3})
    [2]
    """
    return [errors[seed] - first[seed] for seed in first if seed in errors]
