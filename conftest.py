"""Names that the examples in the docstrings may use."""

import keras
import numpy as np
import pytest


@pytest.fixture(autouse=True, scope="session")
def _names(doctest_namespace):
    doctest_namespace.update(keras=keras, np=np)
