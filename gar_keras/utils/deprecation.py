"""Names that have changed: the former ones keep working, with a warning."""

import functools
import sys
import warnings
from collections.abc import Callable

from gar_keras.utils.types import Function


def former_names(module, **names):
    """A `__getattr__` for a module some of whose names have changed.

    Args:
        module: Name of the module.
        **names: The present name for each former one.
    """

    def former(name):
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warn_renamed(f"{module}.{name}", names[name])
        return getattr(sys.modules[module], names[name])

    return former


def former_arguments(**names: str) -> Callable[[Function], Function]:
    """A decorator: the function also takes arguments by their former names.

    Args:
        **names: The present name for each former one.

    Example:

    >>> @former_arguments(colour="color")
    ... def paint(color="white"):
    ...     return color
    >>> paint(color="red")
    'red'
    """

    def decorate(function):
        @functools.wraps(function)
        def renamed(*args, **kwargs):
            for old in names.keys() & kwargs.keys():
                new = names[old]
                if new in kwargs:
                    raise TypeError(
                        f"{function.__name__} takes {new} or its former name "
                        f"{old}, not both."
                    )
                warn_renamed(f"The argument {old}", new)
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return renamed

    return decorate


def warn_renamed(old, new):
    """Warns the caller of the function that calls this."""
    warnings.warn(
        f"{old} has become {new}. Use that name.",
        DeprecationWarning,
        stacklevel=3,
    )
