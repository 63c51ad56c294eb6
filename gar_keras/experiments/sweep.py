"""The runs of a table, one after another or side by side, within a time limit.

How a run gets to where it is made differs: in this process, in `parallel` or
in `cluster`. Which runs there are, and what becomes of them, is here.
"""

import math
import time
from collections import deque

from gar_keras.experiments import runner
from gar_keras.experiments.options import RunnerOptions
from gar_keras.experiments.placement import path_of
from gar_keras.experiments.recorder import OutOfTime
from gar_keras.experiments.workers.cluster import Cluster
from gar_keras.experiments.workers.processes import GOES_ON, Processes
from gar_keras.utils import terminal
from gar_keras.utils.progress import Reporter


def sweep(
    experiments,
    seeds,
    results,
    options=RunnerOptions(),  # noqa: B008
    *,
    time_limit=None,
    started=None,
    console=None,
    jobs=1,
    ray=None,
):
    """Runs every experiment with every seed; skips what is finished.

    The seeds come first: each experiment's first seed is run before any
    experiment's second one. Side by side, a run that fails is reported at
    once, and the others are made all the same.

    Args:
        experiments: List of `Experiment`.
        seeds: List of seeds.
        results: Folder of the records.
        options: `RunnerOptions` of each run.
        time_limit: Seconds after which to stop, or `None`. What is unfinished
            goes on at the next call.
        started: `time.monotonic()` from which these are counted. That of the
            call by default.
        console: A `rich` console for the progress.
        jobs: Runs to make at once, each in a process of its own. Processes
            are spawned: a script that asks for more than one must call this
            below `if __name__ == "__main__"`.
        ray: Address of a Ray cluster that makes the runs, `"local"` for one
            that is started on this machine, or `None`.

    Returns:
        `(records, complete)`: the records of the finished runs, and whether
        all runs are finished.

    Raises:
        WorkerError: if a worker was lost.
        Exception: what a run raised; side by side the first one of them, once
            all the others are over.
    """
    console = console or terminal.console()
    started = time.monotonic() if started is None else started
    deadline = started + (time_limit or math.inf)
    # A run that is named twice must not count twice.
    runs = list(dict.fromkeys((e, s) for s in seeds for e in experiments))
    found = {}
    for run in runs:
        record = runner.finished(*run, results, options.keep_state)
        if record is not None:
            path = path_of(*run, results)
            console.print(f"{_name(run)} is finished: {path}")
            found[run] = record
            _check_model(path, console, options)
    left = [run for run in runs if run not in found]
    if left:
        with _workers(len(left), results, jobs, ray, options) as workers:
            outcomes = _outcomes(left, workers, deadline, console)
            found |= _finished(outcomes, results, console, time_limit, options)
    return [found[run] for run in runs if run in found], len(found) == len(runs)


def _workers(num_runs, results, jobs, ray, options):
    """Those who make the runs."""
    if ray is not None:
        return Cluster(ray, num_runs, results, options)
    if jobs > 1:
        return Processes(jobs, results, options)
    return _Here(results, options)


class _Here:
    """Makes the runs in this process, with a bar, one after another.

    What a run raises ends the sweep. It has the methods of `Processes`.
    """

    places = 1

    def __init__(self, results, options):
        self._results = results
        self._options = options

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def start(self, run, reporter, deadline):
        self._next = run, reporter, deadline

    def wait(self):
        run, reporter, deadline = self._next
        try:
            with reporter:
                outcome = runner.run(
                    *run,
                    self._results,
                    self._options,
                    deadline=deadline,
                    reporter=reporter,
                )
        except OutOfTime as e:
            outcome = e
        return [(run, outcome)]


def _outcomes(runs, workers, deadline, console):
    """Has the runs made, and yields each `(run, outcome)` as it ends."""
    waiting = deque(runs)
    busy = set()
    while waiting or busy:
        while waiting and len(busy) < workers.places:
            run = waiting.popleft()
            busy.add(run)
            workers.start(run, Reporter(_name(run), console), deadline)
        for run, outcome in workers.wait():
            busy.remove(run)
            if isinstance(outcome, OutOfTime):
                waiting.clear()
            yield run, outcome


def _finished(outcomes, results, console, time_limit, options):
    """The records among the outcomes, by run; says what became of the rest."""
    found, late, failures = {}, [], []
    for run, outcome in outcomes:
        name = _name(run)
        if outcome is None:
            console.print(f"{name} is being run by another process: skipped.")
        elif isinstance(outcome, OutOfTime):
            late.append(name)
        elif isinstance(outcome, Exception):
            # Not a word of it is markup, such as the [ray] of gar_keras[ray].
            console.print(f"{name} failed: {outcome}", markup=False)
            failures.append(outcome)
        else:
            found[run] = outcome
            _check_model(path_of(*run, results), console, options)
    if late:
        console.print(
            f"Time limit of {time_limit:g} s reached in {', '.join(late)}. "
            f"{GOES_ON}"
        )
    if failures:
        raise failures[0]
    return found


def _name(run):
    experiment, seed = run
    return f"{experiment.cell} seed {seed}"


def _check_model(path, console, options):
    """Says so where a model is wanted of a run that was finished without."""
    if options.save_models and not path.with_suffix(".keras").exists():
        console.print(
            f"{path.stem} ran without saving its model. Delete {path} and "
            "run it again to have one."
        )
