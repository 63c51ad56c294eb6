"""What a run says of its progress, by a clock that the test moves."""

import io

import pytest
from rich.console import Console

from reproduction.progress import Reporter


class Clock:
    """Time that stands still unless it is moved."""

    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def text():
    return io.StringIO()


@pytest.fixture
def reporter(text, clock):
    console = Console(file=text, width=1000)
    with Reporter("mnist-100 seed 0", console, clock) as found:
        yield found


def advance(reporter, clock, total, times):
    """Steps at given times: epochs done by seconds after the start."""
    start = clock.now
    for seconds, done in times.items():
        clock.now = start + seconds
        reporter.step("regularization", done, total, {"loss": 0.5})


def test_within_an_epoch_a_file_gets_a_line_every_20_seconds(
    reporter, clock, text
):
    # A step takes a second, an epoch 100 of them.
    advance(reporter, clock, 2, {s: s / 100 for s in range(1, 71)})
    assert text.getvalue().splitlines() == [
        "mnist-100 seed 0 regularization 0.20/2  loss 0.5  0:03:00 left",
        "mnist-100 seed 0 regularization 0.40/2  loss 0.5  0:02:40 left",
        "mnist-100 seed 0 regularization 0.60/2  loss 0.5  0:02:20 left",
    ]


def test_the_line_of_an_epoch_tells_the_time_left(reporter, clock, text):
    row = {"loss": 0.25, "test_error": 0.05, "seconds": 9.0}
    advance(reporter, clock, 4, {0: 0.5, 10: 1.0})
    # 10 s for half an epoch.
    reporter.epoch("regularization", {"epoch": 1, **row}, 4)
    reporter.epoch("regularization", {"epoch": 4, **row}, 4)
    assert text.getvalue().splitlines() == [
        "mnist-100 seed 0 regularization 1/4  loss 0.25  test_error 5.00 %  "
        "9.0 s  0:01:00 left",
        "mnist-100 seed 0 regularization 4/4  loss 0.25  test_error 5.00 %  "
        "9.0 s",
    ]


def test_after_a_line_the_20_seconds_begin_anew(reporter, clock, text):
    advance(reporter, clock, 2, {19: 0.1})
    reporter.say("warning: something")
    advance(reporter, clock, 2, {19: 0.2})
    assert text.getvalue() == "mnist-100 seed 0: warning: something\n"


def test_a_terminal_has_the_bar_alone(clock):
    text = io.StringIO()
    console = Console(file=text, width=80, force_terminal=True)
    with Reporter("mnist-100 seed 0", console, clock) as reporter:
        advance(reporter, clock, 2, {s: s / 100 for s in (1, 30, 60)})
    assert "regularization" in text.getvalue()
    assert "/2" not in text.getvalue()
