"""Keras for what trains nothing, in less time and without a word."""

import contextlib
import importlib
import importlib.util
import os


def load_keras():
    """Loads Keras, on NumPy if it can be, which Keras has only beside JAX."""
    backend = "numpy" if importlib.util.find_spec("jax") else "tensorflow"
    chosen = os.environ.get("KERAS_BACKEND")
    os.environ["KERAS_BACKEND"] = backend
    with _without_notes():
        importlib.import_module("keras")
    # As the user had it, for the default of --backend.
    if chosen is None:
        del os.environ["KERAS_BACKEND"]
    else:
        os.environ["KERAS_BACKEND"] = chosen


@contextlib.contextmanager
def _without_notes():
    """Without what C++ code writes to stderr; exceptions come as ever."""
    stderr = os.dup(2)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
