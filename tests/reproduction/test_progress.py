"""What a run says of its progress, by a clock that the test moves."""

import io
from dataclasses import replace
from types import SimpleNamespace

import pytest
from rich.console import Console

from reproduction.progress import Place, Reporter
from reproduction.settings import TABLE_1


@pytest.fixture
def clock():
    """Time that stands still unless it is moved."""
    return SimpleNamespace(now=1000.0)


@pytest.fixture
def text():
    return io.StringIO()


def reporting(text, clock, place=None, width=1000, **options):
    console = Console(file=text, width=width, **options)
    return Reporter("mnist-100 seed 0", console, place, lambda: clock.now)


@pytest.fixture
def reporter(text, clock):
    with reporting(text, clock) as found:
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


# 1,000 images in stage 1 (10 epochs of 100), 2,560 in stage 2: 2 epochs of 10
# steps of 112 + 16, in which 1,120 images of X_U are taken.
RUN = replace(TABLE_1[100], pretrain_epochs=10, epochs=2, images_per_epoch=1120)
SPREADING = replace(RUN, method="label-spreading")


@pytest.mark.parametrize(
    ("stage", "behind", "at_once", "left"),
    [
        # 100 images a second, of which there are 900 and 2,560.
        ("pretraining", (), 1, "0:00:09 left  0:00:35 left of all"),
        ("pretraining", (RUN, RUN), 1, "0:00:09 left  0:01:46 left of all"),
        ("pretraining", (RUN, RUN), 2, "0:00:09 left  0:01:11 left of all"),
        ("pretraining", (SPREADING,), 1, "0:00:09 left  0:00:35 left of all"),
        # Of Ray's machines it is not known how many runs they make at once.
        ("pretraining", (RUN,), None, "0:00:09 left"),
        # 1,280 images a second, in the last epoch but one.
        ("regularization", (), 1, "0:00:01 left  0:00:01 left of all"),
        ("regularization", (RUN,), 1, "0:00:01 left  0:00:04 left of all"),
    ],
)
def test_the_time_left_of_all_runs(stage, behind, at_once, left, text, clock):
    place = Place(3, 40, behind, at_once)
    with reporting(text, clock, place) as reporter:
        reporter.begin(RUN, num_unlabeled=60_000)
        _, epochs = RUN.images_of_epochs(60_000)[stage]
        # The speed is that between two steps.
        reporter.step(stage, 0.5, epochs, None)
        clock.now += 0.5
        reporter.epoch(stage, {"epoch": 1, "seconds": 1.0}, epochs)
    first, last = text.getvalue().splitlines()
    assert first == "run 3 of 40: mnist-100 seed 0"
    assert last == f"mnist-100 seed 0 {stage} 1/{epochs}  1.0 s  {left}"


def test_after_a_line_the_20_seconds_begin_anew(reporter, clock, text):
    advance(reporter, clock, 2, {19: 0.1})
    reporter.say("warning: something")
    advance(reporter, clock, 2, {19: 0.2})
    assert text.getvalue() == "mnist-100 seed 0: warning: something\n"


def test_a_terminal_has_the_bar_alone(text, clock):
    with reporting(text, clock, width=80, force_terminal=True) as reporter:
        advance(reporter, clock, 2, {s: s / 100 for s in (1, 30, 60)})
    assert "regularization" in text.getvalue()
    assert "/2" not in text.getvalue()
