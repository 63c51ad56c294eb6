"""What the tests of runs share."""

import pytest


@pytest.fixture(scope="module")
def tiny():
    """Puts the data set and the network where a run finds them."""
    import tiny_runs

    with pytest.MonkeyPatch.context() as patch:
        tiny_runs.install(patch)
        yield
