"""Warnings of GAR: a category of their own, shown where the caller wants."""

import contextlib
import contextvars
import warnings

# The texts of the warnings within `each_once`.
_told = contextvars.ContextVar("told")


class GARWarning(Warning):
    """A likely sign that a result of GAR is worthless, though not an error."""


def warn(message):
    """Issues a `GARWarning`."""
    told = _told.get(set())
    if message not in told:
        told.add(message)
        # The call of Keras that led here would tell the reader nothing.
        warnings.warn(message, GARWarning, stacklevel=2)


@contextlib.contextmanager
def each_once():
    """Within it, in this thread, no `GARWarning` comes twice.

    Example:

    >>> with shown_by(print), each_once():
    ...     warn("Classes are being lost.")
    ...     warn("Classes are being lost.")
    Classes are being lost.
    """
    token = _told.set(set())
    try:
        yield
    finally:
        _told.reset(token)


@contextlib.contextmanager
def shown_by(show):
    """Within it, each `GARWarning` is given to a function, as a string.

    Example:

    >>> with shown_by(print):
    ...     warn("Classes are being lost.")
    Classes are being lost.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("always", GARWarning)
        otherwise = warnings.showwarning

        def showwarning(message, category, *where, **options):
            if issubclass(category, GARWarning):
                show(str(message))
            else:
                otherwise(message, category, *where, **options)

        warnings.showwarning = showwarning
        yield
