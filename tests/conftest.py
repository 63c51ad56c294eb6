"""What the tests leave out of the warnings that are errors; memory in use."""

import tracemalloc

import pytest


def pytest_configure(config):
    # Many tests train networks that know nothing yet, and lose classes.
    config.addinivalue_line(
        "filterwarnings", "ignore::gar_keras.utils.warnings.GARWarning"
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
