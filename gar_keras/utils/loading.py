"""Loading Keras without its backend's notes on how it was built."""

import contextlib
import logging
import os
import sys
import tempfile


def load_keras():
    """Imports Keras with the backend named in `KERAS_BACKEND`.

    TensorFlow writes some lines to standard error before its logging is set
    up. They are shown if the import fails.
    """
    # Of TensorFlow's own warnings, none is about what a user does here.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    with held_back_unless_it_fails():
        import keras  # noqa: F401


@contextlib.contextmanager
def held_back_unless_it_fails():
    """Holds back what is written to standard error, by C++ code as well."""
    try:
        kept = os.dup(2)
    # A program may be started without it.
    except OSError:
        yield
        return
    with os.fdopen(kept, "wb") as shown, tempfile.TemporaryFile() as notes:
        _flush()
        os.dup2(notes.fileno(), 2)
        try:
            yield
        except BaseException:
            _flush()
            notes.seek(0)
            shown.write(notes.read())
            shown.flush()
            raise
        finally:
            _flush()
            os.dup2(shown.fileno(), 2)


def _flush():
    # It is None where there is no standard error.
    if sys.stderr is not None:
        sys.stderr.flush()
