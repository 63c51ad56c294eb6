"""Quiet backends for all tests, and names that the docstrings' examples use.

The environment comes first: Keras, TensorFlow and Matplotlib read it on import.
A test of what needs no Keras must not wait for it, so nothing is loaded here.
"""

import os

import pytest

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# As in the scripts. On a CPU TensorFlow needs it where channels come first.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
os.environ.setdefault("MPLBACKEND", "agg")


@pytest.fixture(scope="session")
def doctest_namespace():
    """The names, loaded once a doctest asks for them."""
    import keras
    import numpy as np

    return {"keras": keras, "np": np}
