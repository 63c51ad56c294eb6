"""What a run says of its progress, by a clock that the test moves."""

import io

import pytest
from rich.console import Console

from gar_keras.utils.progress import Reporter


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


def advance(reporter, clock, stage, total, times):
    """Steps at given times: `{seconds after the start: (done, steps)}`."""
    start = clock.now
    for seconds, (done, steps) in times.items():
        clock.now = start + seconds
        reporter.step(stage, done, total, {"loss": 0.5}, steps)


def test_within_an_epoch_a_file_gets_a_line_every_20_seconds(
    reporter, clock, text
):
    # A step takes a second, an epoch 100 of them.
    steps = {s: (s / 100, 100) for s in range(1, 71)}
    advance(reporter, clock, "regularization", 2, steps)
    assert text.getvalue().splitlines() == [
        "mnist-100 seed 0 regularization 1/2 step 20/100  loss 0.5  3 min left",
        "mnist-100 seed 0 regularization 1/2 step 40/100  loss 0.5  3 min left",
        "mnist-100 seed 0 regularization 1/2 step 60/100  loss 0.5  2 min left",
    ]


def test_an_epoch_of_one_step_is_told_without_its_step(reporter, clock, text):
    steps = {s: (2.0 * s, 1) for s in range(1, 30)}
    advance(reporter, clock, "pretraining", 300, steps)
    # 260 epochs at two a second.
    assert text.getvalue() == (
        "mnist-100 seed 0 pretraining 40/300  loss 0.5  2 min left\n"
    )


def test_the_line_of_an_epoch_tells_the_time_left(reporter, clock, text):
    row = {"loss": 0.25, "classes_in_use": 9.0, "test_error": 0.05}
    row["seconds"] = 9.0
    advance(reporter, clock, "regularization", 4, {0: (0.25, 4), 9: (1.0, 4)})
    clock.now += 1
    # 10 s for three quarters of an epoch.
    reporter.epoch("regularization", {"epoch": 1, **row}, 4)
    reporter.epoch("regularization", {"epoch": 4, **row}, 4)
    first, last = text.getvalue().splitlines()
    assert first.endswith("test_error 5.00 %  9.0 s  40 s left")
    assert "1/4  loss 0.25  classes_in_use 9  test_error" in first
    assert last.endswith("test_error 5.00 %  9.0 s")


def test_after_a_line_the_20_seconds_begin_anew(reporter, clock, text):
    advance(reporter, clock, "regularization", 2, {19: (0.1, 10)})
    reporter.say("warning: something")
    advance(reporter, clock, "regularization", 2, {19: (0.2, 10)})
    assert text.getvalue() == "mnist-100 seed 0: warning: something\n"


def test_a_resumed_run_counts_its_own_time_alone(reporter, clock, text):
    times = {0: (50.5, 2), 30: (51.0, 2)}
    advance(reporter, clock, "regularization", 60, times)
    # Nine epochs, a minute each.
    assert text.getvalue().endswith("51/60  loss 0.5  9 min left\n")


def test_a_terminal_has_the_bar_alone(clock):
    text = io.StringIO()
    console = Console(file=text, width=80, force_terminal=True)
    with Reporter("mnist-100 seed 0", console, clock) as reporter:
        times = {s: (s / 100, 100) for s in (1, 30, 60)}
        advance(reporter, clock, "regularization", 2, times)
    assert "regularization" in text.getvalue()
    assert "step" not in text.getvalue()
