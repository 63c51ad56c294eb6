"""The time limit: what goes on after it is ended."""

import io
import threading
from unittest import mock

import fresh
import pytest
from made_records import OVERHEAD_CASE
from rich.console import Console
from tiny_runs import TINY

from reproduction import deadlines, sweep
from reproduction.benchmarks import benchmark_command


@pytest.fixture
def ended(monkeypatch):
    """An event in place of the end of the process."""
    event = threading.Event()

    def end(say):
        say()
        event.set()

    monkeypatch.setattr(deadlines, "_end", end)
    monkeypatch.setattr(deadlines, "GRACE", 0.0)
    return event


def hang(ended):
    """What goes on until the process ends."""
    assert ended.wait(60)
    raise sweep.OutOfTime


def late_run(folder, ended, monkeypatch):
    monkeypatch.setattr(sweep, "run", lambda *args, **options: hang(ended))
    output = io.StringIO()
    console = Console(file=output, width=1000)
    sweep.sweep([TINY], [0], folder, console=console, time_limit=0.01)
    return output.getvalue()


def late_benchmark(folder, ended, monkeypatch):
    options = benchmark_command.Options(results=folder, time_limit=5.0)
    monkeypatch.setattr(deadlines, "seconds_to", lambda deadline: 0.01)
    with pytest.raises(sweep.OutOfTime):
        benchmark_command.run(
            options, "overhead", [OVERHEAD_CASE], lambda case, tell: hang(ended)
        )
    return ""


@pytest.mark.parametrize("late", [late_run, late_benchmark])
def test_what_no_exception_comes_into_is_ended(
    late, ended, tmp_path, monkeypatch, capsys
):
    said = late(tmp_path, ended, monkeypatch)
    assert "Time limit of" in said + capsys.readouterr().out
    assert not [*tmp_path.rglob("*.json")]


def test_what_ends_in_time_goes_on(monkeypatch):
    timer = mock.Mock()
    monkeypatch.setattr(deadlines.threading, "Timer", timer)
    for seconds in (None, 1000.0):
        with deadlines.kept(deadlines.deadline_in(seconds), pytest.fail):
            pass
    # None without a limit, and one that does not ring any more.
    (made,) = timer.mock_calls[:1]
    assert 0 < made.args[0] <= 1000
    timer().cancel.assert_called_once_with()


LATE = """
import time
from reproduction import deadlines
with deadlines.kept(time.monotonic(), lambda: print("late")):
    time.sleep(600)
"""


@pytest.mark.slow
def test_the_process_ends_with_124():
    # The backend that loads fastest: nothing is trained.
    env = fresh.environment(KERAS_BACKEND="numpy")
    process = fresh.start("-c", LATE, env=env)
    output, _ = process.communicate()
    assert (process.returncode, output) == (124, "late\n")
