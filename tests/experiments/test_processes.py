"""Runs in worker processes: the same runs, and nobody is left behind."""

import io
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import fresh
import pytest
import tiny_runs
from consoles import Output, interrupt
from rich.console import Console
from tiny_runs import TINY, numbers
from worker_runs import Acts, Tiny

from gar_keras.datasets import DataError
from gar_keras.engine.resources import cores, shares_of_cores
from gar_keras.experiments.options import RunnerOptions
from gar_keras.experiments.placement import path_of
from gar_keras.experiments.sweep import sweep
from gar_keras.experiments.workers import processes
from gar_keras.experiments.workers.processes import WorkerError

pytestmark = pytest.mark.slow

SHORT = replace(TINY, epochs=1)


def act(folder, *acts, output=None, jobs=2, **times):
    """A sweep over as many seeds as there are acts."""
    return sweep(
        [TINY],
        range(len(acts)),
        folder,
        RunnerOptions(data_dir=Acts(*acts)),
        jobs=jobs,
        console=Console(file=output or io.StringIO(), width=1000),
        **times,
    )


def begun(folder):
    """Process ids of the runs that were begun, by seed."""
    return {
        int(path.name.removeprefix("begun-")): int(path.read_text())
        for path in folder.glob("begun-?")
    }


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A process that has ended but was not waited for is still listed.
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text().split()[2] != "Z"


# What comes of the runs.


def test_side_by_side_is_as_one_after_another(tmp_path, monkeypatch):
    ours, theirs = tmp_path / "processes", tmp_path / "here"
    text = io.StringIO()
    found, complete = sweep(
        [SHORT],
        [0, 1],
        ours,
        RunnerOptions(data_dir=Tiny(), save_models=True),
        jobs=2,
        console=Console(file=text, width=200),
    )
    assert complete
    tiny_runs.install(monkeypatch)
    expected, _ = sweep(
        [SHORT],
        [0, 1],
        theirs,
        RunnerOptions(save_models=True),
        console=Console(file=io.StringIO()),
    )
    assert [*map(numbers, found)] == [*map(numbers, expected)]
    names = {path.name for path in theirs.iterdir()}
    assert {path.name for path in ours.iterdir()} == names
    for snapshots in theirs.glob("*.npz"):
        assert (ours / snapshots.name).read_bytes() == snapshots.read_bytes()
    lines = [line.split("  ")[0] for line in text.getvalue().splitlines()]
    assert sorted(line for line in lines if line.endswith(" 1/1")) == [
        f"tiny-12 seed {seed} regularization 1/1" for seed in (0, 1)
    ]


def test_records_come_in_the_order_of_the_runs(tmp_path):
    # The first run waits for the second one, so they are made at once.
    output = io.StringIO()
    found, complete = act(
        tmp_path, "wait for 1", "record", "skip", "record", output=output
    )
    assert [record["seed"] for record in found] == [0, 1, 3]
    assert not complete
    assert "seed 2 is being run by another process" in output.getvalue()
    # A worker makes one run after another.
    assert len(set(begun(tmp_path).values())) <= 2


def test_no_worker_is_started_for_finished_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "_Worker", None)
    path = path_of(TINY, 0, tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    with pytest.raises(ValueError, match="not a record"):
        act(tmp_path, "record")


def test_a_worker_has_its_share_of_the_machine(tmp_path, monkeypatch):
    for name in ("TF_NUM_INTRAOP_THREADS", "XLA_PYTHON_CLIENT_PREALLOCATE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(processes, "cores", lambda: 7)
    ((record,), _) = act(tmp_path, "record")
    assert record["TF_NUM_INTRAOP_THREADS"] == "3"
    assert record["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"


@pytest.mark.skipif(cores() < 2, reason="one core cannot be shared out")
def test_a_worker_keeps_to_its_cores(tmp_path):
    # The first run waits for the second one: two workers.
    found, _ = act(tmp_path, "wait for 1", "record")
    assert [record["cores"] for record in found] == shares_of_cores(2)


# What fails.


@pytest.mark.parametrize(
    ("end", "message"),
    [
        ("die", "Its process ended by signal 9 (Killed)."),
        ("exit", "Its process ended with status 3."),
    ],
)
def test_a_worker_that_dies_takes_no_other_run_along(end, message, tmp_path):
    output = io.StringIO()
    with pytest.raises(WorkerError) as error:
        act(tmp_path, "record", end, "record", "record", output=output)
    assert str(error.value).startswith(message)
    assert str(error.value).endswith("goes on from the last finished epoch.")
    assert f"tiny-12 seed 1 failed: {message}" in output.getvalue()
    pids = begun(tmp_path)
    assert [*sorted(pids)] == [0, 1, 2, 3]
    assert not any(map(is_alive, pids.values()))


@pytest.mark.parametrize(
    ("end", "kind", "message"),
    [
        ("data", DataError, "No file [of MNIST]."),
        ("odd", RuntimeError, "Odd: an odd error"),
    ],
)
def test_an_error_is_that_of_the_run(end, kind, message, tmp_path):
    output = io.StringIO()
    with pytest.raises(kind) as error:
        act(tmp_path, end, "record", "record", output=output)
    assert str(error.value) == message
    (note,) = error.value.__notes__
    assert "in _act" in note
    lines = output.getvalue().splitlines()
    assert f"tiny-12 seed 0 failed: {message}" in lines
    assert [*sorted(begun(tmp_path))] == [0, 1, 2]


def test_out_of_time_no_run_is_begun(tmp_path):
    output = io.StringIO()
    found, complete = act(
        tmp_path, "late", "late", "record", output=output, time_limit=5
    )
    assert (found, complete) == ([], False)
    (line,) = (x for x in output.getvalue().splitlines() if "Time" in x)
    assert line.startswith("Time limit of 5 s reached in tiny-12 seed ")
    assert line.endswith(
        ". The same command goes on from the last finished epoch."
    )
    assert 2 not in begun(tmp_path)


def test_the_start_of_a_worker_counts_for_the_time_limit(monkeypatch):
    pipe = mock.Mock()
    workers = processes.Processes(1, "nowhere", RunnerOptions())
    workers._idle.append(SimpleNamespace(pipe=pipe))
    workers.start((TINY, 0), None, 60.0)
    pipe.send.assert_called_once_with(((TINY, 0), 60.0))
    given = []
    monkeypatch.setattr(
        "gar_keras.experiments.runner.run",
        lambda *_, deadline, **__: given.append(deadline),
    )
    processes.attempt((TINY, 0), "nowhere", 60.0, None, RunnerOptions())
    assert given == [60.0]


def test_ctrl_c_ends_the_workers(tmp_path):
    output = Output("seed 1: begins", interrupt)
    with pytest.raises(KeyboardInterrupt):
        act(tmp_path, "hang", "hang", output=output)
    pids = begun(tmp_path)
    assert 1 in pids
    assert not any(map(is_alive, pids.values()))


HANG = """
import math, signal, sys, time
from types import SimpleNamespace
from worker_runs import Acts
from gar_keras.experiments.options import RunnerOptions
from gar_keras.experiments.workers.processes import Processes
from gar_keras.experiments.settings import TABLE_1

if __name__ == "__main__":
    # A shell starts what it puts in the background deaf to Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    reporter = SimpleNamespace(say=lambda text: print(text, flush=True))
    options = RunnerOptions(data_dir=Acts("hang"))
    try:
        with Processes(1, sys.argv[1], options) as workers:
            workers.start((TABLE_1[100], 0), reporter, math.inf)
            while True:
                workers.wait()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_worker_outlives_the_sweep(end, tmp_path):
    script = tmp_path / "hang.py"
    script.write_text(HANG)
    process = subprocess.Popen(
        [sys.executable, script, tmp_path],
        env=fresh.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout.readline() == "begins\n"
    (worker,) = begun(tmp_path).values()
    # Ctrl-C goes to the whole group, the other signals to one process.
    (os.killpg if end == signal.SIGINT else os.kill)(process.pid, end)
    output, errors = process.communicate(timeout=60)
    assert output == ("interrupted\n" if end == signal.SIGINT else "")
    assert errors == ""
    # What ends a test that fails.
    for _ in range(600):
        if not is_alive(worker):
            break
        time.sleep(0.05)
    assert not is_alive(worker)


@pytest.mark.parametrize(
    "error", [DataError("a"), FloatingPointError("b"), OSError(28, "full", "f")]
)
def test_an_error_arrives_as_it_was(error):
    sent = processes.portable(error)
    assert type(sent) is type(error)
    assert sent.args == error.args
    assert str(sent) == str(error)
