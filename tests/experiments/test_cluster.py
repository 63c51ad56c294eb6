"""Runs on a Ray cluster of this machine: what is lost goes on elsewhere."""

import _thread
import io
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import fresh
import pytest
import tiny_runs
from consoles import Output, interrupt
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from tiny_runs import TINY, Witness, numbers, run_tiny, state_of
from worker_runs import Tiny

from gar_keras.datasets import DataError
from gar_keras.experiments import runner
from gar_keras.experiments.options import RunnerOptions
from gar_keras.experiments.placement import path_of
from gar_keras.experiments.sweep import sweep
from gar_keras.experiments.workers import cluster
from gar_keras.experiments.workers.processes import WorkerError

# Cores of machines.
MACHINES = st.lists(st.integers(0, 9), max_size=5)


@given(MACHINES, st.integers(1, 20))
def test_a_share_is_the_most_that_lets_all_run_at_once(machines, num_runs):
    cores = cluster.share(machines, num_runs)
    assert cores >= 1
    if cores > 1:
        assert sum(machine // cores for machine in machines) >= num_runs
    assert sum(machine // (cores + 1) for machine in machines) < num_runs


def test_a_cluster_without_cores_yet_has_a_share():
    assert cluster.share([], 3) == 1


@pytest.mark.parametrize(
    "option", ["tensorboard", "keep_state", "share_stage_1"]
)
def test_what_would_stay_on_the_cluster_is_refused(option, tmp_path):
    options = RunnerOptions(**{option: "x"})
    with pytest.raises(ValueError, match=f"^{option} cannot be had with ray"):
        sweep([TINY], [0], tmp_path, options, ray="local")


# On a cluster.


@pytest.fixture(scope="module")
def ray(tmp_path_factory):
    """A cluster on this machine, for all the tests."""
    ray = pytest.importorskip("ray")
    with pytest.MonkeyPatch.context() as patch:
        # A worker that is killed leaves its folder behind.
        patch.setenv("TMPDIR", str(tmp_path_factory.mktemp("machine")))
        # But the paths of Ray's sockets have to be short.
        patch.setenv("RAY_TMPDIR", tempfile.gettempdir())
        # Where its workers find this file.
        path = fresh.environment()["PYTHONPATH"]
        patch.setenv("PYTHONPATH", path)
        _, is_ours = cluster._connect("local")
        assert is_ours
        yield ray
        ray.shutdown()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Folder and record of an undisturbed run without a cluster."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        tiny_runs.install(patch)
        yield folder, run_tiny(folder, save_models=True)


@pytest.fixture
def often(monkeypatch):
    """Every epoch's state comes home."""
    monkeypatch.setattr(cluster, "STATE_INTERVAL", 0.0)


def on_cluster(
    folder, output, *experiments, marker=None, time_limit=None, **options
):
    return sweep(
        experiments or [TINY],
        [0],
        folder,
        RunnerOptions(data_dir=Tiny(marker), **options),
        time_limit=time_limit,
        ray="local",
        console=Console(file=output, width=1000),
    )


def assert_same_files(folder, whole):
    ours, theirs = (
        {path.relative_to(f) for path in f.glob("*/*/*/*")}
        for f in (folder, whole)
    )
    assert ours == theirs
    snapshots = path_of(TINY, 0, whole).with_suffix(".npz")
    ours = folder / snapshots.relative_to(whole)
    assert ours.read_bytes() == snapshots.read_bytes()


pytestmark = [
    pytest.mark.slow,
    # Ray leaves its sockets and files to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def test_a_run_whose_worker_is_killed_ends_as_an_undisturbed_one(
    ray, often, whole, tmp_path
):
    marker, folder = tmp_path / "marker", tmp_path / "results"

    def kill():
        os.kill(int(marker.read_text()), signal.SIGKILL)

    output = Output("regularization 1/3", kill)
    (record,), complete = on_cluster(
        folder, output, marker=marker, save_models=True
    )
    assert complete
    assert numbers(record) == numbers(whole[1])
    assert_same_files(folder, whole[0])
    assert not state_of(folder).exists()
    lines = output.getvalue().splitlines()
    lost = "tiny-12 seed 0: its worker was lost; it is given to another one"
    goes_on = "tiny-12 seed 0: goes on after epoch 1 of regularization"
    assert lines[lines.index(lost) + 1] == goes_on
    # No epoch was made twice.
    epochs = [line.split("  ")[0] for line in lines if "loss" in line]
    assert epochs == [
        *[f"tiny-12 seed 0 pretraining {i}/102" for i in (51, 102)],
        *[f"tiny-12 seed 0 regularization {i}/3" for i in (1, 2, 3)],
    ]


def test_an_error_on_the_cluster_is_that_of_the_run(ray, tmp_path):
    output = io.StringIO()
    with pytest.raises(DataError) as error:
        on_cluster(tmp_path, output, replace(TINY, dataset="broken"))
    assert str(error.value) == "No file [of MNIST]."
    assert output.getvalue() == (
        "broken-12 seed 0 failed: No file [of MNIST].\n"
    )


def test_no_time_is_told_with_the_name_of_the_run(ray, tmp_path):
    output = io.StringIO()
    answer = on_cluster(tmp_path, output, time_limit=1e-3)
    assert answer == ([], False)
    assert output.getvalue() == (
        "Time limit of 0.001 s reached in tiny-12 seed 0. The same command "
        "goes on from the last finished epoch.\n"
    )


def test_a_run_of_another_process_is_skipped(ray, tmp_path):
    lock = runner.Checkpoint.of_run(TINY, 0, tmp_path).lock()
    output = io.StringIO()
    with lock:
        assert on_cluster(tmp_path, output) == ([], False)
    assert "seed 0 is being run by another process" in output.getvalue()


def test_after_ctrl_c_a_run_goes_on_anywhere(ray, whole, tmp_path, monkeypatch):
    # Its state is not due for minutes, and yet it comes home.
    marker, folder = tmp_path / "marker", tmp_path / "results"
    output = Output("regularization 1/3", interrupt)
    with pytest.raises(KeyboardInterrupt):
        on_cluster(folder, output, marker=marker)
    tiny_runs.install(monkeypatch)
    text = io.StringIO()
    console = Console(file=text, width=1000)
    (record,), _ = sweep(
        [TINY], [0], folder, RunnerOptions(save_models=True), console=console
    )
    assert "goes on after epoch 1 of regularization" in text.getvalue()
    assert numbers(record) == numbers(whole[1])
    assert_same_files(folder, whole[0])


# What the workers of a cluster do, without one.


class Mail(list):
    """Letters to the sweep."""

    def put(self, letter):
        self.append(letter)

    def get(self):
        return self.pop(0)

    def size(self):
        return len(self)


def test_states_come_home_every_so_often(tmp_path, monkeypatch):
    now = 100.0
    monkeypatch.setattr(cluster.time, "monotonic", lambda: now)
    checkpoint = runner.Checkpoint(tmp_path / "state.npz", "", 0)
    checkpoint.write_bytes(b"state")
    mail = Mail()
    courier = cluster._Courier("run", mail, checkpoint, interval=60.0)
    for seconds in (59, 1, 59, 2):
        now += seconds
        courier.epoch("regularization", {"epoch": 1}, 3)
    line = ("run", "epoch", "regularization", {"epoch": 1}, 3)
    state = ("run", "state", b"state")
    # The state first: when its epoch is shown, it is here.
    assert mail == [line, state, line, line, state, line]


def test_a_task_can_be_cancelled_where_interrupts_were_ignored(monkeypatch):
    # As in the workers of a cluster that was started in the background.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)

    def cancelled(run, folder, seconds, courier, options):
        runner.Checkpoint.of_run(*run, folder).write_bytes(b"state")
        _thread.interrupt_main()
        time.sleep(0.1)

    monkeypatch.setattr(cluster, "share_gpu", lambda: None)
    monkeypatch.setattr(cluster, "attempt", cancelled)
    mail, run = Mail(), (TINY, 0)
    try:
        with pytest.raises(KeyboardInterrupt):
            cluster._make(run, None, 0.0, None, 60.0, RunnerOptions(), mail)
    finally:
        signal.signal(signal.SIGINT, before)
    assert mail == [(run, "state", b"state")]


def test_a_worker_has_a_folder_of_its_own(tmp_path):
    with cluster.work_folder(tmp_path) as one:
        with cluster.work_folder(tmp_path) as other:
            assert one != other
            assert one.is_dir() and other.is_dir()
        assert one.is_dir() and not other.exists()
    assert not [*tmp_path.iterdir()]


WORK = """
import sys, time
from gar_keras.experiments import cluster

with cluster.work_folder(sys.argv[1]) as folder:
    (folder / "state").write_text("80 MB")
    print(folder, flush=True)
    time.sleep(600)
"""


def test_the_folder_of_a_killed_worker_is_removed_by_the_next(tmp_path):
    strange = tmp_path / "gar_keras_of_somebody"
    strange.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", WORK, tmp_path],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        theirs = Path(process.stdout.readline().strip())
        with cluster.work_folder(tmp_path):
            assert (theirs / "state").exists()
    finally:
        process.kill()
        process.communicate()
    assert (theirs / "state").exists()
    with cluster.work_folder(tmp_path) as mine:
        assert {*tmp_path.iterdir()} == {
            strange, mine, mine.with_suffix(".lock")
        }  # fmt: skip


def test_ray_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match="needs the package ray"):
        cluster._connect("auto")


class BadRay:
    """A Ray of which nothing answers."""

    error = ConnectionError
    is_initialized = staticmethod(lambda: False)

    @staticmethod
    def init(address, **options):
        raise BadRay.error("Could not find any running Ray instance.\nMore.")


@pytest.mark.parametrize("error", [ConnectionError, Exception])
def test_a_cluster_that_does_not_answer_is_named(error, monkeypatch):
    monkeypatch.setattr(BadRay, "error", error)
    monkeypatch.setitem(sys.modules, "ray", BadRay)
    with pytest.raises(WorkerError) as error:
        cluster._connect("auto")
    assert str(error.value).startswith(
        "There is no reaching a Ray cluster at 'auto' (Could not find any "
        "running Ray instance.). Start one with `ray start --head`, or take "
        "--ray local."
    )


@pytest.fixture
def sweeper(tmp_path):
    """The sweep's end of one run, without a cluster: what it submits."""
    workers = object.__new__(cluster.Cluster)
    submitted = []
    workers._submit = submitted.append
    workers._mail = Mail()
    checkpoint = runner.Checkpoint(tmp_path / "state.npz", "", 0)
    task = cluster._Task("run", Witness(), 0.0, tmp_path, checkpoint, None)
    workers._tasks = {"ref": task}
    return workers, task, submitted


def test_a_run_that_only_loses_its_worker_is_given_up(sweeper):
    workers, task, submitted = sweeper
    error = RuntimeError("It died.\nMore.")
    for _ in range(2):
        assert workers._lost(task, error) is cluster._AGAIN
    assert submitted == [task, task]
    # An epoch in between, and the count begins anew.
    workers._mail.put(("run", "epoch", "regularization", {"epoch": 1}, 3))
    workers._deliver()
    for _ in range(2):
        assert workers._lost(task, error) is cluster._AGAIN
    outcome = workers._lost(task, error)
    assert isinstance(outcome, WorkerError)
    assert "was lost 3 times in a row (It died.)" in str(outcome)


def test_what_a_lost_machine_still_sends_is_not_taken(sweeper):
    workers, task, _ = sweeper
    workers._mail.put(("another run", "state", b"old"))
    workers._mail.put(("another run", "say", "still here"))
    workers._mail.put(("run", "state", b"new"))
    workers._mail.put(("run", "say", "warning"))
    workers._deliver()
    assert task.checkpoint.read_bytes() == b"new"
    assert task.reporter.lines == ["warning"]
    assert workers._mail == []
