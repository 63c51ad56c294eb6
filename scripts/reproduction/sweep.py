"""The runs of a table: one after another, in processes, or on a Ray cluster.

Each way is a function of the tasks, `(experiment, seed)` with the place of
each, the folder and options of `run`. It yields `(task, outcome)` as runs end:
what `run` returns, or a `WorkerError`.
"""

import multiprocessing
import os
import signal
import threading
import traceback
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

from reproduction import environment, processes, progress, records
from reproduction.commands import EXPECTED, GOES_ON
from reproduction.paths import path_of
from reproduction.run import run


class WorkerError(ChildProcessError):
    """A run that failed, while the others of the sweep go on."""


def sweep(experiments, seeds, results, *, jobs=1, ray=None, **options):
    """Runs every experiment with every seed; skips what is finished.

    Each experiment's first seed is run before any experiment's second one. A
    run that fails is told at once, and the others are made all the same; but
    without processes or a cluster only if its numbers are no longer finite.

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
        WorkerError: if such runs failed, once all are over.
    """
    # A run that is named twice must not count twice.
    tasks = list(dict.fromkeys((e, s) for s in seeds for e in experiments))
    here = environment.describe()
    where = f"{here['backend']} {here['backend_version']} on "
    where += f"Ray at {ray}" if ray else environment.device_in_words(here)
    precisions = {e.precision: None for e, _ in tasks if e.trains_network}
    say(f"{', '.join([where, *precisions])}. Runs: {len(tasks)}.")
    found, left = {}, {}
    for number, task in enumerate(tasks, start=1):
        path = path_of(*task, results)
        if path.exists():
            found[task] = records.read(path)
            say(f"{name_of(task)} is finished: {path}")
        else:
            left[task] = f"run {number} of {len(tasks)}"
    if ray is not None:
        from reproduction import cluster

        outcomes = cluster.on_cluster(left, results, options, ray)
    elif jobs > 1:
        outcomes = in_processes(left, results, options, jobs)
    else:
        outcomes = in_turn(left, results, options)
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


def make(task, place, results, options):
    """What `run` returns for a task, of which it tells the progress."""
    reporter = progress.Reporter(name_of(task), place)
    return run(*task, results, reporter=reporter, **options)


def in_turn(tasks, results, options):
    """Makes runs one after another, in this process."""
    for task, place in tasks.items():
        try:
            outcome = make(task, place, results, options)
        # The same command would meet it again.
        except FloatingPointError as e:
            outcome = WorkerError(f"{type(e).__name__}: {e}")
        yield task, outcome


def outcome_of(call, *arguments):
    """What a call returns in another process, or a `WorkerError`."""
    try:
        return call(*arguments)
    except Exception as e:
        # A defect of the program needs its traceback.
        if not isinstance(e, EXPECTED):
            traceback.print_exc()
        return WorkerError(f"{type(e).__name__}: {e}")


def in_processes(tasks, results, options, jobs):
    """Makes runs in so many processes, each with its share of threads."""
    # Neither TensorFlow nor JAX survives a fork.
    context = multiprocessing.get_context("spawn")
    threads = max(1, processes.cores() // jobs)
    waiting, busy = list(tasks), {}
    try:
        while waiting or busy:
            while waiting and len(busy) < jobs:
                task = waiting.pop(0)
                # A pool for each run: a broken pool fails all of its runs.
                pool = ProcessPoolExecutor(1, context, _begin, [threads])
                # The process inherits that Ctrl-C is ignored.
                before = signal.signal(signal.SIGINT, signal.SIG_IGN)
                future = pool.submit(
                    outcome_of, make, task, tasks[task], results, options
                )
                signal.signal(signal.SIGINT, before)
                pool.shutdown(wait=False)
                busy[future] = task
            for future in wait(busy, return_when=FIRST_COMPLETED).done:
                task = busy.pop(future)
                try:
                    outcome = future.result()
                except BrokenProcessPool:
                    outcome = WorkerError(
                        "Its process was killed. If memory was short, take "
                        "fewer --jobs: " + GOES_ON
                    )
                yield task, outcome
    finally:
        for process in multiprocessing.active_children():
            process.kill()
            process.join()


def _begin(threads):
    """What a process does before its run."""

    def end_with_parent():
        multiprocessing.parent_process().join()
        os._exit(1)

    # No process is left behind, however the parent died.
    threading.Thread(target=end_with_parent, daemon=True).start()
    processes.take_part(threads)
