"""What is left of some runs, and how long it takes by the records."""

from collections import defaultdict
from dataclasses import replace
from statistics import median

from reproduction import paths, records
from reproduction.settings import Experiment


def text(experiments, seeds, results):
    """The runs that are left, a line each, with their hours.

    The hours of a run are its epochs times the median seconds of an epoch in
    records of the same settings but for lengths: of these results and of the
    project's, on whatever device they were made.
    """

    def key(e):
        return replace(e, pretrain_epochs=1, epochs=1, restart=0)

    seconds = defaultdict(lambda: ([], []))
    for folder in {results, paths.reference()}:
        for record in records.read_all(folder).values():
            e = Experiment.from_json(record["experiment"])
            # A method without a network has no epochs.
            if e.trains_network:
                first, second = seconds[key(e)]
                # Each epoch counts once, so a long run counts for more.
                spent = records.typical_seconds(record["pretraining"])
                first += [spent / e.pretrain_epochs] * e.pretrain_epochs
                spent = records.typical_seconds(record["regularization"])
                second += [spent / e.epochs] * e.epochs

    tasks = [*dict.fromkeys((e, s) for s in seeds for e in experiments)]
    left = [t for t in tasks if not paths.path_of(*t, results).exists()]
    lines, total, unknown = [], 0.0, 0
    for e, seed in left:
        line = f"{e.cell} seed {seed}"
        if e.trains_network:
            line += f", {e.pretrain_epochs} + {e.epochs} epochs, {e.precision}"
        if key(e) in seconds:
            first, second = map(median, seconds[key(e)])
            hours = (e.pretrain_epochs * first + e.epochs * second) / 3600
            total += hours
            lines.append(f"{line}: about {hours:.2g} hours")
        else:
            unknown += 1
            lines.append(f"{line}: no record tells the hours")
    told = f"Runs: {len(tasks)}. Finished: {len(tasks) - len(left)}. Left: "
    told += f"{len(left)}"
    if total:
        told += f", about {total:.1f} hours one after another"
    if unknown:
        told += f", {unknown} of unknown length"
    return "\n".join([*lines, f"{told}."])
