"""Warnings of GAR, a category of their own."""

import sys
import warnings


class GARWarning(Warning):
    """A likely sign that a result of GAR is worthless, though not an error."""


def warn(message):
    """Issues a `GARWarning`."""
    # The call of Keras that led here would tell the reader nothing. Without a
    # registry a second training, too, is told what the first one was.
    caller = sys._getframe(1)
    warnings.warn_explicit(
        message,
        GARWarning,
        caller.f_code.co_filename,
        caller.f_lineno,
        module=caller.f_globals["__name__"],
    )
