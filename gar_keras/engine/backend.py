"""The backend in use."""

import keras


def name():
    """Name of the backend in use: `"tensorflow"`, `"jax"` or `"torch"`."""
    return keras.backend.backend()
