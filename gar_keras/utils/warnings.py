"""Warnings of GAR: a category of their own, shown where the caller wants."""

import contextlib
import warnings


class GARWarning(Warning):
    """A likely sign that a result of GAR is worthless, though not an error."""


def warn(message):
    """Issues a `GARWarning`."""
    # The call of Keras that led here would tell the reader nothing.
    warnings.warn(message, GARWarning, stacklevel=2)


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
