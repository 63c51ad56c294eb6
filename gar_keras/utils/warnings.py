"""Warnings of GAR, a category of their own."""

import warnings


class GARWarning(Warning):
    """A likely sign that a result of GAR is worthless, though not an error."""


def warn(message):
    """Issues a `GARWarning`."""
    # The call of Keras that led here would tell the reader nothing.
    warnings.warn(message, GARWarning, stacklevel=2)
