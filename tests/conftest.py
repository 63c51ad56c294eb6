"""Settings of all tests, and the memory that a call uses."""

import tracemalloc

import hypothesis
import pytest

# The same examples in each run; others with --hypothesis-profile default.
hypothesis.settings.register_profile(
    "repeated", derandomize=True, deadline=None
)
hypothesis.settings.load_profile("repeated")


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
