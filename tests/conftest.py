"""Settings of all tests, and a home without files."""

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
def dtype_policy():
    """Function that sets the policy of Keras, for one test."""
    import keras

    before = keras.config.dtype_policy()
    yield keras.config.set_dtype_policy
    keras.config.set_dtype_policy(before)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home of its own for each test, and no settings from outside."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("GAR_KERAS_DATA", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return tmp_path / "home"
