"""The runs of a table, one after another or side by side."""

from reproduction import cluster, environment, progress, workers
from reproduction.paths import path_of
from reproduction.run import finished, run
from reproduction.workers import WorkerError, name_of


def sweep(
    experiments,
    seeds,
    results,
    *,
    console=None,
    jobs=1,
    ray=None,
    **options,
):
    """Runs every experiment with every seed; skips what is finished.

    The seeds come first: each experiment's first seed is run before any
    experiment's second one. Side by side, a run that fails is told at once,
    and the others are made all the same.

    Args:
        experiments: List of `Experiment`.
        seeds: List of seeds.
        results: Folder of the records.
        jobs, ray: As in `experiment_command.RunOptions`. The
            processes of jobs are spawned: a script that asks for them must call
            this below `if __name__ == "__main__"`.
        console: A `rich` console for the progress.
        **options: Further arguments of `run`.

    Returns:
        `(records, complete)`: the records of the finished runs, and whether
        all runs are finished.

    Raises:
        WorkerError: if runs failed side by side, once all are over.
    """
    console = console or progress.console()
    # A run that is named twice must not count twice.
    tasks = list(dict.fromkeys((e, s) for s in seeds for e in experiments))
    where = environment.in_words() if ray is None else f"Ray at {ray}"
    precisions = dict.fromkeys(e.precision for e, _ in tasks)
    console.print(f"{where}, {', '.join(precisions)}. Runs: {len(tasks)}.")
    found = _finished(tasks, results, options, console)
    left = _places(tasks, found, jobs if ray is None else None)
    given = left, results, options
    if ray is not None:
        outcomes = cluster.outcomes(*given, ray)
    elif jobs > 1:
        outcomes = workers.outcomes(*given, jobs)
    else:
        outcomes = _one_by_one(*given, console)
    failures = []
    for task, outcome in outcomes:
        if outcome is None:
            console.print(f"{name_of(task)} is being run by another process.")
        elif isinstance(outcome, WorkerError):
            console.print(f"{name_of(task)} failed: {outcome}")
            failures.append(outcome)
        else:
            found[task] = outcome
    if failures:
        raise failures[0]
    records = [found[task] for task in tasks if task in found]
    return records, len(records) == len(tasks)


def _finished(tasks, results, options, console):
    """The records of the runs that are finished, by their task."""
    found = {}
    for task in tasks:
        record = finished(*task, results, options.get("data_dir"))
        if record is None:
            continue
        found[task] = record
        path = path_of(*task, results)
        console.print(f"{name_of(task)} is finished: {path}")
        model = path.with_suffix(".keras")
        if options.get("save_models") and not model.exists():
            console.print(f"Its model was not saved. To have it, delete {path}")
    return found


def _places(tasks, found, at_once):
    """The `Place` of each task that is not among those found."""
    left = [task for task in tasks if task not in found]
    return {
        task: progress.Place(
            number=1 + tasks.index(task),
            total=len(tasks),
            behind=tuple(e for e, _ in left[i:]),
            at_once=at_once,
        )
        for i, task in enumerate(left, start=1)
    }


# Runs are made here, in processes or on a cluster, all by functions of one
# form: `(tasks, results, options, how)`, where the tasks are
# `(experiment, seed)` with their `Place`, and the options further arguments of
# `run`. They yield `(task, outcome)` as runs end; see `workers.make`.


def _one_by_one(tasks, results, options, console):
    """Makes runs in this process, with a bar; what one raises ends all."""
    for task, place in tasks.items():
        with progress.Reporter(name_of(task), console, place) as reporter:
            outcome = run(*task, results, reporter=reporter, **options)
        yield task, outcome
