"""What a run says of its progress, by a clock that the test moves."""

import io
import warnings
from types import SimpleNamespace

import pytest

from gar_keras.utils.warnings import GARWarning
from reproduction import progress
from reproduction.progress import Reporter


@pytest.fixture
def clock(monkeypatch):
    """Time that stands still unless it is moved."""
    clock = SimpleNamespace(now=1000.0)
    time = SimpleNamespace(monotonic=lambda: clock.now)
    monkeypatch.setattr(progress, "time", time)
    return clock


@pytest.mark.parametrize("is_terminal", [False, True])
def test_an_epoch_has_a_line_and_a_terminal_a_bar(is_terminal, clock):
    text = io.StringIO()
    text.isatty = lambda: is_terminal
    reporter = Reporter("mnist-100 seed 0", "run 3 of 40", text)
    reporter.begin()
    # Taken up after its second epoch.
    reporter.stage("regularization", 2, 5)
    reporter.step(2.5, {"loss": 0.5})
    clock.now += 10
    row = {"loss": 0.25, "test_error": 0.05, "seconds": 9.0}
    reporter.epoch({"epoch": 3, **row})
    reporter.step(3.5, {"loss": 0.125})
    clock.now += 10
    reporter.epoch({"epoch": 5, **row})
    reporter.say("warning: something")
    reporter.end()
    told = text.getvalue()
    assert ("run 3 of 40 regularization |" in told) == is_terminal
    assert ("loss 0.125  test_error 5.00 %" in told) == is_terminal
    # 10 s an epoch.
    lines = [
        "run 3 of 40: mnist-100 seed 0",
        "mnist-100 seed 0: regularization 3/5  loss 0.25  test_error 5.00 %  "
        "9.0 s  0:00:20 left",
        "mnist-100 seed 0: regularization 5/5  loss 0.25  test_error 5.00 %  "
        "9.0 s",
        "mnist-100 seed 0: warning: something",
    ]
    if is_terminal:
        assert all(line in told for line in lines)
    else:
        assert told.splitlines() == lines


def warn_of(message):
    warnings.warn(message, GARWarning, stacklevel=1)


def test_other_warnings_are_shown_as_ever():
    shown = []
    with pytest.warns(RuntimeWarning, match="another") as others:
        with progress.shown_by(shown.append):
            warn_of("one")
            warnings.warn("another", RuntimeWarning, stacklevel=1)
            warn_of("one")
        with pytest.warns(GARWarning, match="outside"):
            warn_of("outside")
    assert shown == ["one", "one"]
    assert len([w for w in others if w.category is RuntimeWarning]) == 1
