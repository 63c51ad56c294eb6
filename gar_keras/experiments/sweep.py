"""Several runs, one after another, within a time limit."""

import math
from pathlib import Path
import time

from rich.console import Console

from gar_keras.experiments import runner
from gar_keras.experiments.progress import Reporter


def sweep(
    experiments, seeds, results, *, time_limit=None, console=None, **options
):
    """Runs every experiment with every seed; skips what is finished.

    The seeds come first: each experiment's first seed is run before any
    experiment's second one.

    Args:
        experiments: List of `Experiment`.
        seeds: List of seeds.
        results: Folder of the records.
        time_limit: Seconds after which to stop, or `None`. What is unfinished
            goes on at the next call.
        console: A `rich` console for the progress.
        **options: Arguments of `runner.run`.

    Returns:
        `(records, complete)`: the records of the finished runs, and whether
        all runs are finished.
    """
    console = console or Console(highlight=False, soft_wrap=True)
    deadline = time.monotonic() + (time_limit or math.inf)
    records = []
    # A run that is named twice must not count twice.
    jobs = list(dict.fromkeys((e, s) for s in seeds for e in experiments))
    for experiment, seed in jobs:
        name = f"{experiment.cell} seed {seed}"
        path = Path(results) / experiment.file_name(seed)
        if path.exists():
            console.print(f"{name} is finished: {path}")
        try:
            with Reporter(name, console) as reporter:
                record = runner.run(
                    experiment,
                    seed,
                    results,
                    deadline=deadline,
                    reporter=reporter,
                    **options,
                )
        except runner.OutOfTime:
            console.print(
                f"Time limit of {time_limit:g} s reached in {name}. The same "
                "command goes on from the last finished epoch."
            )
            break
        if record is None:
            console.print(f"{name} is being run by another process: skipped.")
        else:
            records.append(record)
            _check_model(path, console, **options)
    return records, len(records) == len(jobs)


def _check_model(path, console, save_models=False, **_):
    """Says so where a model is wanted of a run that was finished without."""
    if save_models and not path.with_suffix(".keras").exists():
        console.print(
            f"{path.stem} ran without saving its model. Delete {path} and "
            "run it again to have one."
        )
