"""What a run says of its progress, by a clock that the test moves."""

import io
from types import SimpleNamespace

import pytest

from reproduction.progress import Reporter


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock():
    """Time that stands still unless it is moved."""
    return SimpleNamespace(now=1000.0)


def reporting(text, clock):
    return Reporter("mnist-100 seed 0", 3, 40, text, lambda: clock.now)


def advance(reporter, clock, total, times):
    """Steps at given times: epochs done by seconds after the start."""
    start = clock.now
    for seconds, done in times.items():
        clock.now = start + seconds
        reporter.step("regularization", done, total, {"loss": 0.5})


def test_within_an_epoch_a_file_gets_a_line_every_20_seconds(clock):
    text = io.StringIO()
    reporter = reporting(text, clock)
    reporter.begin()
    # A step takes a second, an epoch 100 of them.
    advance(reporter, clock, 2, {s: s / 100 for s in range(71)})
    assert text.getvalue().splitlines() == [
        "run 3 of 40: mnist-100 seed 0",
        "mnist-100 seed 0 regularization 0.20/2  loss 0.5  0:03:00 left",
        "mnist-100 seed 0 regularization 0.40/2  loss 0.5  0:02:40 left",
        "mnist-100 seed 0 regularization 0.60/2  loss 0.5  0:02:20 left",
    ]


def test_the_line_of_an_epoch_tells_errors_and_the_time_left(clock):
    text = io.StringIO()
    reporter = reporting(text, clock)
    reporter.begin()
    row = {"loss": 0.25, "test_error": 0.05, "seconds": 9.0}
    advance(reporter, clock, 4, {0: 0.5, 10: 1.0})
    # 10 s for half an epoch.
    reporter.epoch("regularization", {"epoch": 1, **row}, 4)
    reporter.epoch("regularization", {"epoch": 4, **row}, 4)
    reporter.say("warning: something")
    assert text.getvalue().splitlines()[1:] == [
        "mnist-100 seed 0 regularization 1/4  loss 0.25  test_error 5.00 %  "
        "9.0 s  0:01:00 left",
        "mnist-100 seed 0 regularization 4/4  loss 0.25  test_error 5.00 %  "
        "9.0 s",
        "mnist-100 seed 0: warning: something",
    ]


def test_a_terminal_has_a_bar(clock):
    pytest.importorskip("tqdm")
    text = Terminal()
    reporter = reporting(text, clock)
    reporter.begin()
    advance(reporter, clock, 2, {s: s / 100 for s in (1, 30, 60)})
    reporter.epoch("regularization", {"epoch": 1, "seconds": 1.0}, 2)
    reporter.end()
    assert "run 3 of 40 regularization |" in text.getvalue()
    assert "0.60/2" not in text.getvalue()
    assert "mnist-100 seed 0 regularization 1/2  1.0 s" in text.getvalue()
