"""Names that the examples in the docstrings may use."""

import pytest


@pytest.fixture(autouse=True)
def _names(request):
    if "doctest_namespace" not in request.fixturenames:
        return
    import keras
    import numpy as np

    namespace = request.getfixturevalue("doctest_namespace")
    namespace.update(keras=keras, np=np)
