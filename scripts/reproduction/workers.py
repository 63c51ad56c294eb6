"""Runs in processes of this machine, side by side."""

import os
import signal
import threading
import traceback
from collections import deque
from multiprocessing import connection, get_context, parent_process

from gar_keras.engine import hardware
from reproduction import cli, progress
from reproduction.run import run

GOES_ON = "The same command goes on from the last finished epoch."


class WorkerError(ChildProcessError):
    """A run that failed in another process than that of the sweep."""


def name_of(task):
    """What a run is called in lines of progress."""
    experiment, seed = task
    return f"{experiment.cell} seed {seed}"


def make(task, place, results, options):
    """The outcome of a task: what `run` returns, or a `WorkerError`.

    The task is `(experiment, seed)`.
    """
    console = progress.console(force_terminal=False)
    reporter = progress.Reporter(name_of(task), console, place)
    try:
        return run(*task, results, reporter=reporter, **options)
    except Exception as e:
        # A defect of the program is to be found.
        if not isinstance(e, cli.EXPECTED):
            traceback.print_exc()
        return WorkerError(f"{type(e).__name__}: {e}")


def outcomes(tasks, results, options, jobs):
    """Makes runs in so many processes, each with its share of threads."""
    threads = max(1, hardware.cores() // jobs)
    waiting, busy = deque(tasks), {}
    try:
        while busy or waiting:
            while waiting and len(busy) < jobs:
                task = waiting.popleft()
                given = task, tasks[task], results, options
                process, pipe = _started(threads, make, *given)
                busy[pipe] = process, task
            for pipe in connection.wait(busy):
                process, task = busy[pipe]
                outcome = _received(pipe, process)
                del busy[pipe]
                yield task, outcome
    finally:
        for process, _ in busy.values():
            process.kill()
            process.join()


def _started(*arguments):
    """A process that calls `_serve`, and the pipe from it."""
    # Neither TensorFlow nor JAX survives a fork.
    context = get_context("spawn")
    pipe, theirs = context.Pipe(duplex=False)
    process = context.Process(
        target=_serve, args=(theirs, *arguments), daemon=True
    )
    # Ctrl-C is not for it, which it inherits.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    process.start()
    signal.signal(signal.SIGINT, before)
    # Now the pipe ends when the process does.
    theirs.close()
    return process, pipe


def _received(pipe, process):
    """The outcome that a process sends, or that it has died."""
    try:
        return pipe.recv()
    except EOFError:
        process.join()
        return WorkerError(
            f"Its process ended with status {process.exitcode}. If memory was "
            f"short, take fewer --jobs. {GOES_ON}"
        )
    finally:
        process.join()


def _serve(pipe, threads, make, *arguments):
    """What a process does: one run."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    hardware.take_part(threads)
    pipe.send(make(*arguments))


def _end_with_parent():
    """Leaves no process behind, however the parent died."""
    parent_process().join()
    os._exit(1)
