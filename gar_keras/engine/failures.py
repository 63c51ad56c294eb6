"""What a data source raises, kept on its way through TensorFlow.

TensorFlow calls sources from its own threads, and makes an error of its own of
what they raise.
"""

import contextlib
import sys


class Failures:
    """The first exception of a source that TensorFlow calls.

    Example:

    >>> failures = Failures()
    >>> with failures.raised():
    ...     with failures.noted():
    ...         raise ValueError("3.png is not readable")
    Traceback (most recent call last):
    ...
    ValueError: 3.png is not readable
    """

    def __init__(self):
        self._first = None

    @contextlib.contextmanager
    def noted(self):
        """Within it, an exception is kept. To be put around a source."""
        try:
            yield
        except Exception as e:
            self._first = self._first or e
            raise

    @contextlib.contextmanager
    def raised(self):
        """Within it, the exception kept takes the place of TensorFlow's."""
        try:
            yield
        except Exception as e:
            if self._first is None or not _is_of_tensorflow(e):
                raise
            raise self._first from e


def _is_of_tensorflow(error):
    tf = sys.modules.get("tensorflow")
    return tf is not None and isinstance(error, tf.errors.OpError)
