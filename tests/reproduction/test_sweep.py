"""Sweeps: each run once, one after another, in processes or on Ray."""

import json
import os
import re
import signal
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest import mock

import fresh
import pytest
import tiny_runs
from made_records import write_record
from tiny_runs import TINY, numbers
from worker_runs import SETTINGS, act

from reproduction import cluster, commands, environment, report, sweep
from reproduction.run import lock_of, path_of_state
from reproduction.settings import SMALL
from reproduction.sweep import WorkerError

BACKEND = tiny_runs.BACKEND
# Real digits, which processes of their own find as well.
SHORT = replace(SMALL["digits"], pretrain_epochs=2, epochs=1, backend=BACKEND)
AGAIN = replace(SHORT, restart=1)
# One that Keras loads fast, for processes that train nothing.
LIGHT = {"KERAS_BACKEND": "numpy"}


@pytest.fixture
def swept(capsys):
    """Function that sweeps; the answer, and what it said behind its first line.

    Without "run 1 of 2: ..." and what is said of epochs.
    """

    def swept(folder, seeds=(0,), experiments=(TINY,), **options):
        capsys.readouterr()
        answer = sweep.sweep(experiments, seeds, folder, **options)
        return answer, said(capsys)

    return swept


def said(capsys):
    (_, *lines) = capsys.readouterr().out.splitlines(keepends=True)
    kept = (
        line
        for line in lines
        if not re.match(r"run \d+ of|.* (pretraining|regularization) \d", line)
    )
    return "".join(kept)


@pytest.fixture
def begun(monkeypatch):
    """The runs that a sweep has begun, which are made up."""
    begun = []

    def made(experiment, seed, results, reporter):
        begun.append((experiment, seed, reporter.place))
        return {"seed": seed}

    monkeypatch.setattr(sweep, "run", made)
    return begun


@pytest.mark.parametrize("ray", [None, "auto"])
def test_a_sweep_says_where_it_runs(ray, begun, monkeypatch, capsys):
    monkeypatch.setattr(
        cluster,
        "on_cluster",
        lambda tasks, *given: [(task, {"seed": 0}) for task in tasks],
    )
    experiments = [TINY, replace(TINY, precision="bfloat16")]
    sweep.sweep(experiments, [0, 0], "nowhere", ray=ray)
    here = environment.device_in_words(environment.describe())
    (first, *_) = capsys.readouterr().out.splitlines()
    where = "Ray at auto" if ray else here
    assert first.endswith(f" on {where}, float32, bfloat16. Runs: 2.")


def test_each_run_is_made_once_in_its_place_and_seeds_first(
    begun, tmp_path, swept
):
    more = replace(TINY, epochs=4)
    write_record(tmp_path, TINY, 1)
    (found, complete), _ = swept(tmp_path, [0, 1, 0], [TINY, more])
    assert begun == [
        (TINY, 0, "run 1 of 4"),
        (more, 0, "run 2 of 4"),
        (more, 1, "run 4 of 4"),
    ]
    assert [record["seed"] for record in found] == [0, 0, 1, 1]
    assert complete


@pytest.fixture(scope="module")
def one_by_one(tmp_path_factory):
    """Folder and records of two runs that this process made."""
    folder = tmp_path_factory.mktemp("here")
    found, _ = sweep.sweep([SHORT, AGAIN], [0], folder)
    return folder, found


def test_a_run_whose_numbers_are_not_finite_ends_no_sweep(
    tmp_path, monkeypatch, swept
):
    def make(task, *_):
        if task[0] == SHORT:
            raise FloatingPointError("The loss is NaN.")
        made.append(task)

    made = []
    monkeypatch.setattr(sweep, "make", make)
    with pytest.raises(WorkerError, match="loss is NaN"):
        swept(tmp_path, [0, 1], [SHORT, AGAIN])
    assert made == [(AGAIN, 0), (AGAIN, 1)]


# In processes.


@pytest.fixture
def acted(monkeypatch, tmp_path, swept):
    """Function that sweeps over seeds whose workers act as they are told."""
    for name, value in LIGHT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sweep, "make", act)
    # The acts are no option of a run, and so nothing looks at them.
    return lambda *acts, **options: swept(
        tmp_path, range(len(acts)), jobs=2, acts=acts, **options
    )


def begun_in(folder):
    """What the workers noted when they began."""
    return [json.loads(path.read_text()) for path in folder.glob("begun-?")]


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A process that has ended but was not waited for is still listed.
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text().split()[2] != "Z"


def assert_same(folder, found, one_by_one):
    theirs, expected = one_by_one
    ours, names = (
        {p.relative_to(f) for p in f.glob("*/*/*")} for f in (folder, theirs)
    )
    assert ours == names
    assert [*map(numbers, found)] == [*map(numbers, expected)]
    for path in names:
        if path.suffix == ".npz":
            content = (folder / path).read_bytes()
            assert content == (theirs / path).read_bytes()


@pytest.fixture
def same_threads(one_by_one, monkeypatch):
    """Sums depend on the number of threads."""
    threads = str(one_by_one[1][0]["environment"]["threads"])
    for name in ("TF_NUM_INTRAOP_THREADS", "PJRT_NPROC"):
        monkeypatch.setenv(name, threads)


@pytest.mark.slow
# Ray leaves its sockets and files to the garbage collector.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize(
    "where", [{"jobs": 2}, {"ray": "local"}], ids=["processes", "ray"]
)
def test_elsewhere_runs_are_as_one_after_another(
    where, one_by_one, same_threads, tmp_path, monkeypatch, swept, capsys
):
    if "ray" in where:
        pytest.importorskip("ray")
        path = fresh.environment()["PYTHONPATH"]
        monkeypatch.setenv("PYTHONPATH", path)
    wrong = replace(SHORT, images_per_epoch=10_000)
    taken = replace(SHORT, epochs=2)
    experiments = [wrong, taken, SHORT, AGAIN]
    with lock_of(path_of_state(taken, 0, tmp_path)):
        with pytest.raises(WorkerError, match="images_per_epoch must be"):
            swept(tmp_path, [0], experiments, **where)
    told = said(capsys)
    assert "digits-50 seed 0 failed: ValueError: images_per" in told
    assert "digits-50 seed 0 is being run by another process." in told
    # What the others left is taken as it is.
    monkeypatch.delattr(sweep, "run")
    (found, complete), _ = swept(tmp_path, [0], [SHORT, AGAIN])
    assert complete
    assert not path_of_state(SHORT, 0, tmp_path).exists()
    assert_same(tmp_path, found, one_by_one)


@pytest.mark.slow
def test_a_worker_has_its_share_and_dies_alone(
    acted, tmp_path, monkeypatch, capsys
):
    for name in SETTINGS:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setattr(sweep.processes, "cores", lambda: 7)
    with pytest.raises(WorkerError, match="process was killed"):
        acted("record", "die", "record")
    (line,) = said(capsys).splitlines()
    assert line.startswith("tiny-132 seed 1 failed: Its process was killed")
    notes = begun_in(tmp_path)
    assert len(notes) == 3
    assert not any(is_alive(note["pid"]) for note in notes)
    for note in notes:
        assert [note[name] for name in SETTINGS] == ["3", "false"]


HANG = """
import signal, sys
from reproduction import sweep
from worker_runs import act

if __name__ == "__main__":
    # A shell starts what it puts in the background deaf to Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    task, acts = (None, 0), {"acts": ["hang"]}
    sweep.make = act
    arguments = {task: "run 1 of 1"}, sys.argv[1], acts
    try:
        [*sweep.in_processes(*arguments, jobs=1)]
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_no_worker_outlives_the_sweep(end, tmp_path):
    script = tmp_path / "hang.py"
    script.write_text(HANG)
    env = fresh.environment(**LIGHT)
    process = fresh.start(script, tmp_path, env=env, start_new_session=True)
    while not begun_in(tmp_path):
        assert process.poll() is None
        time.sleep(0.05)
    (worker,) = begun_in(tmp_path)
    # Ctrl-C goes to the whole group, the other signal to one process.
    (os.killpg if end == signal.SIGINT else os.kill)(process.pid, end)
    output, errors = process.communicate(timeout=60)
    assert output == ("interrupted\n" if end == signal.SIGINT else "")
    assert "Traceback" not in errors
    # A worker that lives on fails the test after half a minute.
    for _ in range(600):
        if not is_alive(worker["pid"]):
            break
        time.sleep(0.05)
    assert not is_alive(worker["pid"])


# By the command line.


@pytest.fixture
def options(tmp_path):
    words = ["--results", str(tmp_path), "--seeds", "0-1", "--share-stage-1"]
    words += ["--backend", BACKEND, "--precision", "float32", "--epochs", "5"]
    return commands.training_parser("").parse_args(words)


def test_a_table_is_swept_and_shown(options, monkeypatch, capsys):
    swept = mock.Mock(return_value=(["a record"], False))
    monkeypatch.setattr(sweep, "sweep", swept)
    show = mock.Mock()
    status = commands.run_table(options, [TINY], show)
    assert status == commands.EXIT_UNFINISHED
    changed = replace(TINY, epochs=5)
    assert swept.call_args.args == ([changed], [0, 1], options.results)
    wanted = {"share_stage_1": True, "jobs": 1}
    assert wanted.items() <= swept.call_args.kwargs.items()
    show.assert_called_once_with(report, ["a record"], options.results)
    # The plan alone runs nothing.
    options.dry_run = True
    assert commands.run_table(options, [TINY], show) == 0
    assert "Left: 2" in capsys.readouterr().out
    swept.assert_called_once()


@pytest.mark.parametrize(
    ("outcome", "status", "told"),
    [
        ([([], False)], commands.EXIT_UNFINISHED, ""),
        (KeyboardInterrupt, 130, "interrupted: the same command goes on"),
        (WorkerError("It ended."), 2, "error: It ended."),
    ],
)
def test_how_a_sweep_without_records_ends(
    outcome, status, told, options, monkeypatch, capsys
):
    monkeypatch.setattr(sweep, "sweep", mock.Mock(side_effect=outcome))
    show = mock.Mock()
    parser = mock.Mock(parse_args=lambda: options)
    run = partial(commands.run_table, experiments=[TINY], show=show)
    assert commands.main(parser, run) == status
    errors = capsys.readouterr().err
    assert errors.startswith(told) and bool(errors) == bool(told)
    show.assert_not_called()
