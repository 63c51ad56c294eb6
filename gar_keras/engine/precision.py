"""What float32 keeps of a user's numbers.

Seconds since 1970 are 128 apart in float32, and beyond 1e-38 and 1e38 it has
no numbers at all. A column that would lose what tells its rows apart has to be
standardized in float64, before it is rounded.
"""

from typing import NamedTuple

import numpy as np

from gar_keras.utils.warnings import warn

# Values in float64 at a time: beside a large table they take little memory.
BLOCK = 1 << 16

# What float32 may change values by, in standard deviations of their column.
LARGEST_CHANGE = 1e-3
# A column of floats no further than this from its middle is constant, in steps
# of float64 at its size: what is computed is rounded a few times.
ROUNDING_STEPS = 4

# Rows that are enough for a warning.
LOOKED_AT = 1000


def blocks(x):
    """Slices of the rows, and the rows in float64; x may be sparse."""
    size = int(np.prod(x.shape[1:]))
    step = max(1, BLOCK // size)
    for first in range(0, x.shape[0], step):
        rows = slice(first, first + step)
        block = x[rows]
        block = block.toarray() if hasattr(block, "toarray") else block
        yield rows, np.asarray(block, "float64")


def warn_if_lost(name, x):
    """Warns if float32 does not hold a column of examples that it will be in.

    The columns are those of the last axis.
    """
    if np.can_cast(x.dtype, "float32") or 0 in x.shape:
        return
    # All over the examples, which may be in the order of a column.
    some = np.linspace(0, x.shape[0] - 1, min(x.shape[0], LOOKED_AT))
    table = x[some.astype(int)]
    table = table.toarray() if hasattr(table, "toarray") else table
    width = 1 if len(x.shape) == 1 else x.shape[-1]
    table = np.asarray(table, "float64").reshape(-1, width)
    size, half = abs(table).max(axis=0), np.ptp(table, axis=0) / 2
    is_constant = half <= ROUNDING_STEPS * np.spacing(size)
    with np.errstate(over="ignore"):
        change = abs(table.astype("float32") - table).max(axis=0)
        is_lost = change > LARGEST_CHANGE * table.std(axis=0)
    lost = np.flatnonzero(is_lost & ~is_constant)
    if len(lost):
        warn(
            f"The network gets {name} in float32, which does not hold what "
            "tells the rows apart in column "
            f"{', '.join(map(str, lost[:5]))}, e.g. seconds since 1970. "
            "Standardize it in float64 before, e.g. with "
            "sklearn.preprocessing.StandardScaler."
        )


def warn_if_coarse(name, x):
    """Warns if float64 does not hold the integers of a column."""
    if x.dtype.kind not in "iu" or x.dtype.itemsize < 8 or 0 in x.shape:
        return
    if len(x.shape) == 2 and not isinstance(x, np.ndarray):
        least, largest = (v.toarray()[0] for v in (x.min(0), x.max(0)))
    else:
        over = 0 if len(x.shape) == 2 else None
        least, largest = x.min(over), x.max(over)
    # Modulo 2**64, of which the difference is right.
    spread = np.subtract(largest.astype("uint64"), least.astype("uint64"))
    sizes = np.maximum(abs(least.astype(float)), abs(largest.astype(float)))
    steps = np.spacing(sizes)
    is_coarse = (steps > 1) & (spread > 0) & (steps > LARGEST_CHANGE * spread)
    if is_coarse.any():
        warn(
            f"{name} is taken in float64, which does not hold what tells the "
            "integers apart in column "
            f"{', '.join(map(str, np.flatnonzero(is_coarse)[:5]))}. Subtract "
            "the least of them before."
        )


# Of standard deviations: float32 can divide by these, and square the quotient.
LEAST_SPREAD, LARGEST_SPREAD = 1e-30, 1e30


class Columns(NamedTuple):
    """Of each column, in float64; of images all pixels are one.

    Attributes:
        mean, std: Of the values; `std` is 0 where they are constant.
        is_lost: Whether float32 does not hold the column.
    """

    mean: np.ndarray
    std: np.ndarray
    is_lost: np.ndarray


def columns_of(x):
    """The `Columns` of a table `(m, f)`, also sparse, or of images."""
    over = 0 if len(x.shape) == 2 else tuple(range(len(x.shape)))
    least, largest = np.inf, -np.inf
    for _, block in blocks(x):
        least = np.minimum(least, block.min(over))
        largest = np.maximum(largest, block.max(over))
    # From -1 to 1, with squares in range whatever the unit.
    middle, half = least / 2 + largest / 2, largest / 2 - least / 2
    # Integers are not rounded.
    steps = ROUNDING_STEPS if x.dtype.kind == "f" else 0
    size = np.maximum(abs(least), abs(largest))
    is_constant = half <= steps * np.spacing(size)
    half = np.where(is_constant, 1.0, half)
    total = squares = change = 0
    is_beyond = has_usual = False
    for _, block in blocks(x):
        with np.errstate(over="ignore"):
            rounded = block.astype("float32")
        is_usual = (block != 0) & (abs(block) < LARGEST_SPREAD)
        has_usual = has_usual | is_usual.any(over)
        is_beyond = is_beyond | np.isinf(rounded).any(over)
        change = np.maximum(change, abs(rounded - block).max(over))
        block = (block - middle) / half
        total = total + block.sum(over)
        squares = squares + np.square(block).sum(over)
    m = np.prod(x.shape) // np.size(middle)
    mean = total / m
    std = half * np.sqrt(np.maximum(squares / m - mean**2, 0))
    std = np.where(is_constant, 0.0, std)
    in_range = (LEAST_SPREAD <= std) & (std <= LARGEST_SPREAD)
    is_held = is_constant | in_range & (change <= LARGEST_CHANGE * std)
    # Values beyond float32 among usual ones are mistakes, not the unit.
    is_mistaken = is_beyond & has_usual
    is_lost = np.logical_not(is_held | is_mistaken)
    return Columns(middle + half * mean, std, is_lost)
