"""Types of the public functions' arguments."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

# A tensor of any backend, or an array that becomes one.
Tensor = Any
# Examples in any form of `gar_keras.engine.data`.
Images = Any
# Examples and labels, or a data set of pairs of them.
Pairs = Any
ClassPrior = Sequence[float] | None
# A Keras callback, several, or a `CallbackList`.
Callbacks = Any
Verbosity = int | Literal["auto"]

# What a decorator takes and gives back.
Function = TypeVar("Function", bound=Callable[..., Any])
