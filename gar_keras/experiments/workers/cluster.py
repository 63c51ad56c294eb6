"""Runs on the machines of a Ray cluster, side by side.

A run is a task. It works in a folder of its machine that nobody else sees, and
what has to last comes home to the results folder of the sweep: the record and
its files at the end, and the state of the run every so often. So a run whose
machine is lost goes on elsewhere, from the newest state that came home; and so
does one that is taken up later, with or without Ray.
"""

import contextlib
import os
import shutil
import signal
import tempfile
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import filelock

from gar_keras.engine.resources import limit_threads, share_gpu
from gar_keras.experiments.options import check_for_cluster
from gar_keras.experiments.workers.processes import (
    GOES_ON,
    Relay,
    WorkerError,
    attempt,
)
from gar_keras.utils import files
from gar_keras.utils.optional import optional

# Seconds between two states that a run sends home, and so what a lost machine
# costs at most, but for the epoch that it is in. A state is some 80 MB with the
# 6-layer CNN: at this rate, 40 runs send 11 MB a second.
STATE_INTERVAL = 300.0

# Times that a run may lose its worker without an epoch in between.
MOST_LOSSES = 3

# Seconds between two polls of the messages of the runs.
_POLL = 0.5

# Seconds for runs to end of their own accord before they are killed.
_PATIENCE = 30

# Of the folders that workers work in.
_PREFIX = "gar_keras_worker_"

# What a finished run leaves, the record as the last: with it, it is finished.
_SUFFIXES = (".keras", ".npz", ".json")


def share(machines, num_runs):
    """Cores for each run: the most with which all the runs have room at once.

    Args:
        machines: Cores of each machine.
        num_runs: Number of runs.

    Returns:
        An integer of at least 1; with 1, some runs may have to wait.

    Example:

    >>> share([16, 8], 4)
    5
    >>> share([16, 8], 100)
    1
    """
    return max(
        (
            cores
            for cores in range(1, int(max(machines, default=0)) + 1)
            if _room(machines, cores) >= num_runs
        ),
        default=1,
    )


def _room(machines, amount):
    """How many times the amount is to be had, each time on one machine."""
    return sum(int(machine // amount) for machine in machines)


@dataclass
class _Task:
    """What the sweep knows of a run that is being made on the cluster."""

    run: tuple
    reporter: Any
    until: float
    path: Path
    checkpoint: Any
    lock: Any
    losses: int = 0


class Cluster:
    """Workers on a Ray cluster. A context, with the methods of `Processes`.

    Args:
        address: Address of the cluster, or `"local"` to start one here.
        num_runs: Runs that are to be made.
        results: Folder of the records, on this machine alone.
        options: `RunnerOptions` of each run.

    Raises:
        ValueError: if the runs would leave files on the cluster.
    """

    def __init__(self, address, num_runs, results, options):
        check_for_cluster(options)
        self._results = Path(results)
        self._options = options
        self._ray, self._is_mine = _connect(address)
        self._tasks = {}
        self._over = []
        # A run that can have a GPU needs little else.
        if _room(self._machines("GPU"), 1):
            self._needs = {"num_gpus": 1, "num_cpus": 1}
            self._threads = None
        else:
            self._threads = share(self._machines("CPU"), num_runs)
            self._needs = {"num_cpus": self._threads}
        from ray.util.queue import Queue

        # On the machine whose loss is that of the whole cluster.
        head = {"node:__internal_head__": 0.001}
        self._mail = Queue(actor_options={"num_cpus": 0, "resources": head})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # In a cluster that is lost, nothing is left to be stopped.
        with contextlib.suppress(
            self._ray.exceptions.RayError, ConnectionError
        ):
            if self._tasks:
                self._stop()
            self._mail.shutdown(force=True)
        for task in self._tasks.values():
            task.lock.release()
        if self._is_mine:
            self._ray.shutdown()

    def _stop(self):
        """Ends what is left, for Ctrl-C as a rule; its states come home."""
        refs = list(self._tasks)
        for ref in refs:
            self._ray.cancel(ref)
        self._ray.wait(refs, num_returns=len(refs), timeout=_PATIENCE)
        for ref in refs:
            self._ray.cancel(ref, force=True)
        self._deliver()

    @property
    def places(self):
        """Number of runs that can be made at once, as the cluster is now."""
        if self._threads is None:
            return max(1, _room(self._machines("GPU"), 1))
        return max(1, _room(self._machines("CPU"), self._threads))

    def _machines(self, resource):
        return [
            node["Resources"].get(resource, 0)
            for node in self._ray.nodes()
            if node["Alive"]
        ]

    def start(self, run, reporter, deadline):
        """Gives a run to the cluster.

        Args:
            run: `(experiment, seed)`.
            reporter: The `Reporter` of the run.
            deadline: `time.monotonic()` at which the run must have stopped.
        """
        # Not above: a machine of the cluster must not load keras so early.
        from gar_keras.experiments import runner
        from gar_keras.experiments.checkpoint import Checkpoint
        from gar_keras.experiments.placement import path_of

        experiment, seed = run
        path = path_of(experiment, seed, self._results)
        checkpoint = Checkpoint.of_run(experiment, seed, self._results)
        lock = checkpoint.lock()
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            self._over.append((run, None))
            return
        if path.exists():
            lock.release()
            record = runner.finished(experiment, seed, self._results)
            self._over.append((run, record))
            return
        for file in (*_files(path), checkpoint.path):
            files.delete_leftovers(file)
        # Other machines know the time of day, but not our monotonic().
        until = time.time() + deadline - time.monotonic()
        self._submit(_Task(run, reporter, until, path, checkpoint, lock))

    def _submit(self, task):
        make = self._ray.remote(max_retries=0, **self._needs)(_make)
        ref = make.remote(
            task.run,
            task.checkpoint.read_bytes(),
            task.until,
            self._threads,
            STATE_INTERVAL,
            self._options,
            self._mail,
        )
        self._tasks[ref] = task

    def wait(self):
        """Waits until a run has ended, or for a moment.

        Returns:
            List of `(run, outcome)` of the runs that ended: the record,
            `None` if another process is running the run, or an exception.
        """
        over, self._over = self._over, []
        if over:
            return over
        try:
            done, _ = self._ray.wait(list(self._tasks), timeout=_POLL)
            # What a run has sent comes before its end.
            self._deliver()
            ended = [(self._tasks.pop(ref), ref) for ref in done]
            outcomes = [(task, self._outcome(task, ref)) for task, ref in ended]
        except ConnectionError as e:
            raise WorkerError(
                f"The Ray cluster does not answer any more ({e}). {GOES_ON}"
            ) from e
        for task, outcome in outcomes:
            if outcome is not _AGAIN:
                task.lock.release()
                over.append((task.run, outcome))
        return over

    def _deliver(self):
        """Reads the mail of the runs."""
        tasks = {task.run: task for task in self._tasks.values()}
        for _ in range(self._mail.size()):
            run, kind, *content = self._mail.get()
            # A machine that is taken for lost may still be writing.
            if run not in tasks:
                continue
            if kind == "state":
                tasks[run].checkpoint.write_bytes(*content)
                continue
            if kind == "epoch":
                tasks[run].losses = 0
            getattr(tasks[run].reporter, kind)(*content)

    def _outcome(self, task, ref):
        """What became of a task, once its files are here."""
        from ray.exceptions import RayError, RayTaskError

        try:
            outcome, contents, state = self._ray.get(ref)
        except RayTaskError as e:
            return WorkerError(
                "It could not be made on the cluster "
                f"({_first_line(e.cause)}). Each machine needs Ray and "
                "gar_keras, in the versions of this one."
            )
        except RayError as e:
            return self._lost(task, e)
        for path, content in zip(_files(task.path), contents, strict=True):
            if content is not None:
                files.write_atomically(
                    path, lambda file, c=content: file.write(c), mode="wb"
                )
        if state is not None:
            task.checkpoint.write_bytes(state)
        elif not isinstance(outcome, Exception):
            task.checkpoint.delete()
        return outcome

    def _lost(self, task, error):
        """Has a run go on that lost its worker, unless it always does."""
        task.losses += 1
        if task.losses == MOST_LOSSES:
            return WorkerError(
                f"Its worker was lost {task.losses} times in a row "
                f"({_first_line(error)}). {GOES_ON}"
            )
        task.reporter.say("its worker was lost; it is given to another one")
        self._submit(task)
        return _AGAIN


# In place of the outcome of a run that is not over.
_AGAIN = object()


class _Courier(Relay):
    """Sends home the lines of a run, and its state every so often."""

    def __init__(self, run, mail, checkpoint, interval):
        super().__init__(lambda *message: mail.put((run, *message)))
        self._checkpoint = checkpoint
        self._interval = interval
        self._last = time.monotonic()

    def epoch(self, stage, row, total):
        # The runner has saved the state before it reports the epoch.
        if time.monotonic() - self._last >= self._interval:
            self.send_state()
            self._last = time.monotonic()
        super().epoch(stage, row, total)

    def send_state(self):
        """Sends the run's state home, if it has one."""
        state = self._checkpoint.read_bytes()
        if state is not None:
            self._send("state", state)


def _make(run, state, until, threads, interval, options, mail):
    """Makes a run on a machine of the cluster.

    Returns:
        `(outcome, contents, state)`: what `attempt` returns, those of the
        run's files, and that of its state if it is not finished.
    """
    # What a shell runs in the background ignores interrupts, and so do the
    # workers of a cluster that was started there. Ray cancels tasks by one.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    share_gpu()
    if threads is not None:
        limit_threads(threads)
    from gar_keras.experiments.checkpoint import Checkpoint
    from gar_keras.experiments.placement import path_of

    experiment, seed = run
    with work_folder(tempfile.gettempdir()) as folder:
        path = path_of(experiment, seed, folder)
        checkpoint = Checkpoint.of_run(experiment, seed, folder)
        if state is not None:
            checkpoint.write_bytes(state)
        courier = _Courier(run, mail, checkpoint, interval)
        deadline = time.monotonic() + until - time.time()
        try:
            outcome = attempt(run, folder, deadline, courier, options)
        except KeyboardInterrupt:
            # So Ray cancels a task.
            courier.send_state()
            raise
        contents = [
            f.read_bytes() if f.exists() else None for f in _files(path)
        ]
        return outcome, contents, checkpoint.read_bytes()


@contextlib.contextmanager
def work_folder(parent):
    """A folder for a worker alone, which is gone when the worker is.

    A worker that is killed cannot clear up: the next one on its machine does.

    Args:
        parent: Folder for such folders.
    """
    clear_work_folders(parent)
    folder = Path(parent) / f"{_PREFIX}{uuid.uuid4().hex}"
    # The system lifts it when the worker dies, however it dies.
    with filelock.FileLock(folder.with_suffix(".lock")) as lock:
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            Path(lock.lock_file).unlink(missing_ok=True)


def clear_work_folders(parent):
    """Removes the folders of workers that have died."""
    for path in Path(parent).glob(f"{_PREFIX}*.lock"):
        # Held by a worker that lives, or by another user.
        with contextlib.suppress(filelock.Timeout, OSError):
            with filelock.FileLock(path).acquire(timeout=0):
                shutil.rmtree(path.with_suffix(""), ignore_errors=True)
                path.unlink(missing_ok=True)


def _files(path):
    return [path.with_suffix(suffix) for suffix in _SUFFIXES]


def _first_line(error):
    return next(iter(str(error).splitlines()), type(error).__name__)


def _connect(address):
    """Ray, connected to the cluster; and whether we have to disconnect it."""
    # Nobody is told of it, unless the user wants it so.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # The coming default, of which Ray else warns with every task.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    ray = optional("ray", "A cluster", extra="ray")
    if ray.is_initialized():
        return ray, False
    # Outcomes and epochs come by other ways than the log.
    options = {"log_to_driver": False, "logging_level": "WARNING"}
    if address == "local":
        options["include_dashboard"] = False
    try:
        ray.init(address, **options)
    # Ray raises a bare Exception where its start takes too long.
    except Exception as e:
        raise WorkerError(
            f"There is no reaching a Ray cluster at {address!r} "
            f"({_first_line(e)}). Start one with `ray start --head`, or take "
            "--ray local. A cluster that asks for a token may answer only "
            "with RAY_AUTH_MODE=token in the environment."
        ) from e
    return ray, True
