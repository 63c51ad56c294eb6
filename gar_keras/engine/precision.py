"""What float32 keeps of a user's numbers.

Seconds since 1970 are 128 apart in float32, and beyond 1e-38 and 1e38 it has
no numbers at all. A column that would lose what tells its rows apart has to be
standardized in float64, before it is rounded.
"""

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
    # From all over the examples, which may be sorted by a column.
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
