"""Types of the public functions' arguments."""

from collections.abc import Sequence
from typing import Any
from typing import Literal

# A tensor of any backend, or an array that becomes one.
Tensor = Any
# An array or an image source.
Images = Any
# Images and class indices.
Pair = tuple[Images, Any]
ClassPrior = Sequence[float] | None
# A Keras callback, several, or a `CallbackList`.
Callbacks = Any
Verbosity = int | Literal["auto"]
