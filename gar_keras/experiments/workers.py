"""Runs in processes of this machine, side by side."""

import contextlib
import os
import signal
import threading
import time
import traceback
from collections import deque
from multiprocessing import connection, get_context, parent_process

from gar_keras.engine import resources
from gar_keras.experiments.run import OutOfTime, run
from gar_keras.utils import cli, progress

GOES_ON = "The same command goes on from the last finished epoch."


class WorkerError(ChildProcessError):
    """A run that failed in another process than that of the sweep."""


def name_of(task):
    """What a run is called in lines of progress."""
    experiment, seed = task
    return f"{experiment.cell} seed {seed}"


def make(task, results, deadline, options):
    """Makes a run in a worker, with lines on standard output as progress.

    Returns:
        What `run` does, or an `OutOfTime` or `WorkerError`.
    """
    console = progress.console(force_terminal=False)
    reporter = progress.Reporter(name_of(task), console)
    try:
        return run(
            *task, results, deadline=deadline, reporter=reporter, **options
        )
    except OutOfTime as e:
        return e
    except Exception as e:
        # A defect of the program is to be found.
        if not isinstance(e, cli.EXPECTED):
            traceback.print_exc()
        return WorkerError(f"{type(e).__name__}: {e}")


def outcomes(jobs, tasks, results, deadline, options, make=make):
    """Makes runs in processes, each bound to its share of the cores.

    Args:
        jobs: Runs to make at once.
        tasks: List of `(experiment, seed)`.
        results: Folder of the records.
        deadline: `time.monotonic()` at which the runs must have stopped.
        options: Dict of further arguments of `run`.
        make: Function that makes a run.

    Yields:
        `(task, outcome)` of each run that ended; see `make`.
    """
    threads = max(1, resources.cores() // jobs)
    shares = resources.shares_of_cores(jobs)
    # Neither TensorFlow nor JAX survives a fork.
    context = get_context("spawn")
    waiting, busy = deque(tasks), {}
    try:
        while busy or waiting and time.monotonic() < deadline:
            while shares and waiting and time.monotonic() < deadline:
                task, share = waiting.popleft(), shares.pop(0)
                pipe, theirs = context.Pipe(duplex=False)
                arguments = task, results, deadline, options
                process = context.Process(
                    target=_serve,
                    args=(theirs, threads, make, *arguments),
                    daemon=True,
                )
                with _inherited(share):
                    process.start()
                # Now the pipe ends when the process does.
                theirs.close()
                busy[pipe] = process, task, share
            for pipe in connection.wait(busy):
                process, task, share = busy[pipe]
                try:
                    outcome = pipe.recv()
                except EOFError:
                    process.join()
                    outcome = WorkerError(
                        "Its process ended with status "
                        f"{process.exitcode}. If memory was short, take fewer "
                        f"--jobs. {GOES_ON}"
                    )
                del busy[pipe]
                process.join()
                shares.append(share)
                yield task, outcome
    finally:
        for process, *_ in busy.values():
            process.kill()
            process.join()


@contextlib.contextmanager
def _inherited(share):
    """What a process takes over: its cores, and that Ctrl-C is not for it."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    (mine,) = resources.shares_of_cores(1)
    resources.keep_to(share)
    try:
        yield
    finally:
        resources.keep_to(mine)
        signal.signal(signal.SIGINT, before)


def _serve(pipe, threads, make, *arguments):
    """What a process does: one run."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    resources.share_gpu()
    resources.limit_threads(threads)
    pipe.send(make(*arguments))


def _end_with_parent():
    """Leaves no process behind, however the parent died."""
    parent_process().join()
    os._exit(1)
