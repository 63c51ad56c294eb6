"""What the tests of data files have in common."""

import pytest


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home of its own for each test, and no settings from outside."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("GAR_KERAS_DATA", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return tmp_path / "home"
