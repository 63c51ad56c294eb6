"""What is left of some runs, and how long it takes by the records."""

from collections import defaultdict
from statistics import median

from reproduction import paths, records
from reproduction.settings import Experiment


def text(experiments, seeds, results):
    """The runs that are left, a line each, with their hours.

    The hours of a run are its epochs times the median seconds of an epoch in
    records of the same network, precision, backend, data and method: of these
    results and of the project's.
    """
    tasks = [*dict.fromkeys((e, s) for s in seeds for e in experiments)]
    left = [t for t in tasks if not paths.path_of(*t, results).exists()]
    known = _seconds_of_epochs({results, paths.reference()}) if left else {}
    lines, total, unknown = [], 0.0, 0
    for e, seed in left:
        line, stages = f"{e.cell} seed {seed}", None
        if e.trains_network:
            line += f", {e.pretrain_epochs} + {e.epochs} epochs, {e.precision}"
            stages = known.get(_key(e))
        if stages is None:
            unknown += 1
            lines.append(f"{line}: no record tells the hours")
            continue
        first, second = map(median, stages)
        hours = (e.pretrain_epochs * first + e.epochs * second) / 3600
        total += hours
        lines.append(f"{line}: about {hours:.2g} hours")
    told = f"Runs: {len(tasks)}. Finished: {len(tasks) - len(left)}. Left: "
    told += f"{len(left)}, about {total:.2g} hours one after another"
    if unknown:
        told += f", and {unknown} of unknown length"
    return "\n".join([*lines, f"{told}."])


def _key(e):
    data = e.dataset, e.unlabeled, e.images_per_epoch
    return e.network, e.filters, e.precision, e.backend, *data, e.method_name


def _seconds_of_epochs(folders):
    """Seconds of epochs of both stages in records, lists by `_key`."""
    known = defaultdict(lambda: ([], []))
    for folder in folders:
        for record in records.read_all(folder).values():
            e = Experiment.from_json(record["experiment"])
            seconds = record["regularization"]["curve"].get("seconds", [])[1:]
            # A method without a network has no epochs.
            if not e.trains_network or not seconds:
                continue
            first, second = known[_key(e)]
            first.append(record["pretraining"]["seconds"] / e.pretrain_epochs)
            second.append(median(seconds))
    return known
