"""Quiet backends for all tests, and names that the docstrings' examples use.

The environment comes first: Keras, TensorFlow and Matplotlib read it on import.
"""

import os

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("MPLBACKEND", "agg")

import keras
import numpy as np
import pytest


@pytest.fixture(autouse=True, scope="session")
def _names(doctest_namespace):
    doctest_namespace.update(keras=keras, np=np)
