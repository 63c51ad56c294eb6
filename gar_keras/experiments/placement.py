"""Where the record of a run lies in a results folder.

Its folders are named by the cell and by how it was made, and the file by the
seed:

```
mnist-100/2000+4_bfloat16_5e002914/seed0.json
```
"""

import functools
import re
from dataclasses import asdict, replace
from pathlib import Path

from gar_keras.experiments.settings import Experiment, stands_for_paper
from gar_keras.experiments.studies import STUDIES
from gar_keras.methods import METHODS

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


def path_of(experiment, seed, results):
    """Path of the record of a run.

    Args:
        experiment: An `Experiment`.
        seed: Seed of the run.
        results: Folder of the records.

    Example:

    >>> from gar_keras.experiments.settings import TABLE_1
    >>> path_of(TABLE_1[100], 0, "results").as_posix()
    'results/mnist-100/2000+200_float32_694a14ec/seed0.json'
    """
    return Path(results, experiment.cell, _how(experiment), f"seed{seed}.json")


def path_of_record(record, results):
    """Path of a record, a dict, in the folder that it is from."""
    return path_of(Experiment(**record["experiment"]), record["seed"], results)


def path_of_benchmark(kind, environment, results):
    """Path of the record of the benchmarks of a kind on a machine.

    Args:
        kind: `"benchmark"` or `"overhead"`.
        environment: What `environment.describe` returns.
        results: Folder of the records.

    Example:

    >>> path_of_benchmark("overhead", {"device": "AMD EPYC (R)", "cores": 2,
    ...     "device_kind": "cpu", "backend": "jax"}, "results").as_posix()
    'results/overhead_amd-epyc-r-2-cores_jax.json'
    """
    device = environment["device"]
    if environment["device_kind"] == "cpu":
        # The name of a processor does not say how many of its cores there are.
        device += f" {environment['cores'] or 'some'} cores"
    slug = re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-")
    return Path(results, f"{kind}_{slug}_{environment['backend']}.json")


def all_paths(results):
    """Paths of all records of a folder, by cell, experiment and seed."""
    return sorted(
        Path(results).glob("*/*/seed*.json"),
        key=lambda path: (path.parent, len(path.name), path.name),
    )


def _how(experiment):
    """Epochs, precision, backend where it is another one, and fingerprint."""
    e = experiment
    if not METHODS[e.method].network:
        return f"no-network_{e.fingerprint()}"
    backend = [] if e.backend == "tensorflow" else [e.backend]
    epochs = f"{e.pretrain_epochs}+{e.epochs}"
    return "_".join([epochs, e.precision, *backend, e.fingerprint()])


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
    if stands_for_paper(asdict(e), e.cell) and e.epochs > 1:
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
