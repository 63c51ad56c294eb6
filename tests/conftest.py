"""What the tests leave out of the warnings that are errors; memory in use."""

import sys
import tracemalloc

import pytest


def pytest_collection_finish(session):
    # Many tests train networks that know nothing yet, and lose classes. pytest
    # loads the class to filter by it, and Keras with it, which some need not.
    if "keras" in sys.modules:
        session.config.addinivalue_line(
            "filterwarnings", "ignore::gar_keras.collapse.GARWarning"
        )


@pytest.fixture
def peak():
    """Function that gives the bytes that a call had at its peak."""

    def peak(function):
        tracemalloc.start()
        try:
            function()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    return peak
