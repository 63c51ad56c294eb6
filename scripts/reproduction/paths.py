"""Where records are: the results folders, and their files in them."""

import functools
import json
from pathlib import Path

from reproduction.settings import Experiment

# The folder of the clone.
ROOT = Path(__file__).resolve().parents[2]


def of_clone(name):
    """A file or folder of the clone, as it is called from here."""
    path, here = ROOT / name, Path.cwd()
    return path.relative_to(here) if ROOT.is_relative_to(here) else path


def reference():
    """Folder of the records that the project came with."""
    return of_clone("results")


def own():
    """Folder of the user's runs."""
    return of_clone("runs")


def path_of(experiment, seed, results):
    """Path of the record of a run of an `Experiment`, in a results folder.

    It is in the folder of its cell that has runs with all of its settings, and
    else in a new one that bears their fingerprint.

    Example:

    >>> from reproduction.settings import TABLE_1
    >>> path_of(TABLE_1[100], 0, "nowhere").as_posix()
    'nowhere/mnist-100/2000+200_float32_bdb85713/seed0.json'
    """
    e = experiment
    for path in sorted(Path(results, e.cell).glob("*/seed*.json")):
        if _experiment_of(path, path.stat().st_mtime_ns) == e:
            return path.with_name(f"seed{seed}.json")
    how = ["no-network"]
    if e.trains_network:
        backend = [] if e.backend == "tensorflow" else [e.backend]
        how = [f"{e.pretrain_epochs}+{e.epochs}", e.precision, *backend]
    folder = "_".join([*how, e.fingerprint()])
    return Path(results, e.cell, folder, f"seed{seed}.json")


@functools.cache
def _experiment_of(path, _):
    """The `Experiment` of a record, read again when its file has changed."""
    try:
        record = json.loads(path.read_text("utf-8"))
        return Experiment.from_json(record["experiment"])
    # Of what is no record, `records.read` says what is wrong.
    except (ValueError, TypeError, KeyError):
        return None
