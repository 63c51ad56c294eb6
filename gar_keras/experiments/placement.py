"""Where the record of a run lies in a results folder.

Three folders say what it is: the study or table, the cell, and what differs
from the paper. The name of the file ends in the fingerprint:

```
options/mnist-100/2000+4_bfloat16_shift-2/mnist-100_seed0_5e002914.json
```
"""

import functools
import re
from dataclasses import asdict, replace
from pathlib import Path

from gar_keras.experiments.settings import Experiment, changes, stands_for_paper
from gar_keras.experiments.studies import STUDIES
from gar_keras.methods import METHODS
from gar_keras.paper import COEFFICIENTS

# Of all methods but GAR.
RIVALS_FOLDER = "rivals"

# Of runs that are in no study, by their data; others by their data's name.
_TABLES = {
    "mnist": "table1",
    "infimnist": "table2",
    "norb": "table3",
    "norb-jpeg": "table3",
    "svhn": "table3",
    "svhn-extra": "table3",
    "svhn-grey": "svhn_grey",
}

# Records where a run puts them, and as versions without folders left them.
_PATTERNS = ("*/*/*/{}", "{}")

# Of a path below the results folder.
_MOST_LETTERS = 112


def path_of(experiment, seed, results):
    """Path of the record of a run: where it lies, or where it will.

    A record is found in any study's folder, or in none.

    Args:
        experiment: An `Experiment`.
        seed: Seed of the run.
        results: Folder of the records.
    """
    name = experiment.file_name(seed)
    path = Path(results) / folder_of(experiment) / name
    if path.exists():
        return path
    return next(iter(_found(results, name)), path)


def path_of_record(record, results):
    """Path of a record, a dict, in the folder that it is from."""
    experiment = Experiment(**record["experiment"])
    return path_of(experiment, record["seed"], results)


def all_paths(results):
    """Paths of all records of a folder, in the order of their names."""
    return sorted(
        _found(results, "*_seed*.json"), key=lambda path: (path.name, path)
    )


def _found(results, name):
    return [
        path
        for pattern in _PATTERNS
        for path in Path(results).glob(pattern.format(name))
    ]


def folder_of(experiment):
    """The folders of a run's record, as a path below the results folder.

    Example:

    >>> from gar_keras.experiments.settings import TABLE_1
    >>> folder_of(TABLE_1[100]).as_posix()
    'table1/mnist-100/2000+200'
    >>> folder_of(replace(TABLE_1[600], frobenius_of="Z")).as_posix()
    'table1/mnist-600/2000+200_frobenius-of-Z'
    """
    e = experiment
    parent = Path(shown_in(e), e.cell)
    how = _how(e)
    room = _MOST_LETTERS - len(f"{parent}/{'_'.join(how)}/{e.file_name(0)}")
    return parent / "_".join([*how, *_words(changes(asdict(e)), room)])


def shown_in(experiment):
    """The study or the table that an experiment is in, or its data.

    What is in a study is so in another precision and on another backend, too,
    and, where no other study has it, with other epochs. An arm that is the
    paper's own setting is in the paper's table, but for runs of a single epoch.
    """
    e = experiment
    if e.method != "gar":
        return RIVALS_FOLDER
    data = e.dataset if e.unlabeled == "train" else e.unlabeled
    table = _TABLES.get(data, data)
    if stands_for_paper(asdict(e), e.cell) and not e.is_traced:
        return table
    for alike in (_without_hardware, _without_epochs, _of_any_length):
        if alike(e) in _studied(alike):
            return _studied(alike)[alike(e)]
    return table


@functools.cache
def _studied(alike):
    """The name of the first study of an experiment, by what is alike in it."""
    found = {}
    for study in STUDIES.values():
        for experiment in study.experiments:
            found.setdefault(alike(experiment), study.name)
    return found


def _without_hardware(experiment):
    return replace(experiment, precision="float32", backend="tensorflow")


def _without_epochs(experiment):
    # Runs of a single epoch are of a kind of their own, where a study has it.
    return _of_any_length(experiment, min(experiment.epochs, 2))


def _of_any_length(experiment, epochs=1):
    usual = _without_hardware(experiment)
    return replace(usual, epochs=epochs, pretrain_epochs=1)


def _how(experiment):
    """Epochs, and precision and backend where they are not the usual ones."""
    e = experiment
    if not METHODS[e.method].network:
        return ["no-network"]
    how = [f"{e.pretrain_epochs}+{e.epochs}"]
    how += [e.precision] if e.precision != "float32" else []
    how += [e.backend] if e.backend != "tensorflow" else []
    return how


def _words(changed, room):
    """What differs, as words: with values, if there is room, or cut short."""
    named = {k.replace("_", "-"): v for k, v in sorted(changed.items())}
    # The cell has its name.
    named.pop("method", None)
    if all(changed.get(name) == 0 for name in COEFFICIENTS):
        for name in COEFFICIENTS:
            del named[name]
        named = {"without-gar": (), **named}
    full = [_with_value(*item) for item in named.items()]
    names = [*named]
    short = [
        [*names[:kept], f"and-{len(names) - kept}-more"]
        for kept in range(len(names) - 1, -1, -1)
    ]
    fitting = (w for w in (full, names, *short) if len("_".join(w)) < room)
    return next(fitting, full and short[-1])


def _with_value(name, value):
    """A setting as a word; of a list, its name must do.

    Example:

    >>> _with_value("shift", 2.0), _with_value("rate", "cosine")
    ('shift-2', 'rate-cosine')
    """
    if isinstance(value, tuple | list):
        return name
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return re.sub(r"[^\w.+-]+", "-", f"{name}-{text}")
