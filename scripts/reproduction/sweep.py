"""The runs of a table: one after another, in processes, or on a Ray cluster.

Each way is a function of the tasks, `(experiment, seed)` with their `(number,
total)`, the folder and options of `run`. It yields `(task, outcome)` as runs
end: what `run` returns, or a `WorkerError`.
"""

import os
import signal
import threading
import traceback
from collections import deque
from multiprocessing import connection, get_context, parent_process

from gar_keras.engine import hardware
from reproduction import environment, progress, records
from reproduction.commands import EXPECTED, GOES_ON
from reproduction.paths import path_of
from reproduction.run import run


class WorkerError(ChildProcessError):
    """A run that failed in another process than that of the sweep."""


def sweep(experiments, seeds, results, *, jobs=1, ray=None, **options):
    """Runs every experiment with every seed; skips what is finished.

    Each experiment's first seed is run before any experiment's second one. In
    processes or on a cluster, a run that fails is told at once, and the others
    are made all the same.

    Args:
        experiments: List of `Experiment`.
        seeds: List of seeds.
        results: Folder of the records.
        jobs, ray: As on the command line. Processes are spawned: a script that
            asks for them must call this below `if __name__ == "__main__"`.
        **options: Further arguments of `run`.

    Returns:
        `(records, complete)`: the records of the finished runs, and whether
        all runs are finished.

    Raises:
        WorkerError: if runs failed in other processes, once all are over.
    """
    # A run that is named twice must not count twice.
    tasks = list(dict.fromkeys((e, s) for s in seeds for e in experiments))
    here = environment.describe()
    where = f"{here['backend']} {here['backend_version']} on "
    where += f"Ray at {ray}" if ray else environment.device_in_words(here)
    precisions = dict.fromkeys(e.precision for e, _ in tasks)
    say(f"{where}, {', '.join(precisions)}. Runs: {len(tasks)}.")
    found, left = {}, {}
    for number, task in enumerate(tasks, start=1):
        path = path_of(*task, results)
        if not path.exists():
            left[task] = number, len(tasks)
            continue
        found[task] = records.read(path)
        say(f"{name_of(task)} is finished: {path}")
        model = path.with_suffix(".keras")
        if options.get("save_models") and not model.exists():
            say(f"Its model was not saved. To have it, delete {path}")
    if ray is not None:
        from reproduction import cluster

        outcomes = cluster.on_cluster(left, results, options, ray)
    elif jobs > 1:
        outcomes = in_processes(left, results, options, jobs)
    else:
        # What one raises ends all.
        outcomes = (
            (task, make(task, place, results, options))
            for task, place in left.items()
        )
    failures = []
    for task, outcome in outcomes:
        if outcome is None:
            say(f"{name_of(task)} is being run by another process.")
        elif isinstance(outcome, WorkerError):
            say(f"{name_of(task)} failed: {outcome}")
            failures.append(outcome)
        else:
            found[task] = outcome
    if failures:
        raise failures[0]
    made = [found[task] for task in tasks if task in found]
    return made, len(made) == len(tasks)


def say(text):
    print(text, flush=True)


def name_of(task):
    """What a run is called in lines of progress."""
    experiment, seed = task
    return f"{experiment.cell} seed {seed}"


def in_processes(tasks, results, options, jobs):
    """Makes runs in so many processes, each with its share of threads.

    A run has a process of its own: one that dies costs its run alone.
    """
    # Neither TensorFlow nor JAX survives a fork.
    context = get_context("spawn")
    threads = max(1, hardware.cores() // jobs)
    waiting, busy = deque(tasks), {}
    try:
        while busy or waiting:
            while waiting and len(busy) < jobs:
                task = waiting.popleft()
                pipe, theirs = context.Pipe(duplex=False)
                given = theirs, threads, make, task, tasks[task]
                process = context.Process(
                    target=_serve, args=(*given, results, options), daemon=True
                )
                # Ctrl-C is not for it: it inherits the deafness.
                before = signal.signal(signal.SIGINT, signal.SIG_IGN)
                process.start()
                signal.signal(signal.SIGINT, before)
                # Now the pipe ends when the process does.
                theirs.close()
                busy[pipe] = process, task
            for pipe in connection.wait(busy):
                process, task = busy[pipe]
                try:
                    outcome = pipe.recv()
                except EOFError:
                    process.join()
                    outcome = WorkerError(
                        f"Its process ended with status {process.exitcode}. "
                        "If memory was short, take fewer --jobs: " + GOES_ON
                    )
                process.join()
                del busy[pipe]
                yield task, outcome
    finally:
        for process, _ in busy.values():
            process.kill()
            process.join()


def make(task, place, results, options):
    """What `run` returns for a task, of which it tells the progress."""
    reporter = progress.Reporter(name_of(task), *place)
    return run(*task, results, reporter=reporter, **options)


def outcome_of(call, *arguments):
    """What a call returns in another process, or a `WorkerError`."""
    try:
        return call(*arguments)
    except Exception as e:
        # A defect of the program is to be found.
        if not isinstance(e, EXPECTED):
            traceback.print_exc()
        return WorkerError(f"{type(e).__name__}: {e}")


def _serve(pipe, threads, call, *arguments):
    """What a process does: one run."""

    def end_with_parent():
        parent_process().join()
        os._exit(1)

    # No process is left behind, however the parent died.
    threading.Thread(target=end_with_parent, daemon=True).start()
    hardware.take_part(threads)
    pipe.send(outcome_of(call, *arguments))
