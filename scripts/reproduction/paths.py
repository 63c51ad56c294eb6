"""Where records are: the results folders, and their files in them."""

from pathlib import Path

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

    Below the folder of its cell, that of an experiment bears the fingerprint
    of its settings: a run has one place, and cannot count twice.

    Example:

    >>> from reproduction.settings import TABLE_1
    >>> path_of(TABLE_1[100], 0, "nowhere").as_posix()
    'nowhere/mnist-100/2000+200_float32_bdb85713/seed0.json'
    """
    e = experiment
    how = ["no-network"]
    if e.trains_network:
        backend = [] if e.backend == "tensorflow" else [e.backend]
        how = [f"{e.pretrain_epochs}+{e.epochs}", e.precision, *backend]
    folder = "_".join([*how, e.fingerprint()])
    return Path(results, e.cell, folder, f"seed{seed}.json")
