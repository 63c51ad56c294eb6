"""Types of the public functions' arguments."""

from collections.abc import Sequence
from typing import Any

# A tensor of any backend, or an array that becomes one.
Tensor = Any
ClassPrior = Sequence[float] | None
