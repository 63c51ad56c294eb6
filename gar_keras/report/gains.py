"""Every run of plain GAR: its error before stage 2 and after."""

from collections import Counter
from dataclasses import fields
from pathlib import Path

from gar_keras.datasets.registry import DATASETS, NORB
from gar_keras.experiments import records as record_files
from gar_keras.experiments.settings import DataConditions, changes
from gar_keras.report import layout
from gar_keras.report.groups import Group, but_for
from gar_keras.report.lost import lost_class
from gar_keras.report.plots.gains import (
    ALTERED,
    BRIEF,
    COLLAPSED,
    KEPT,
    KINDS,
    LOST,
    MNIST,
    OTHER,
    Point,
    before_and_after,
)
from gar_keras.report.plots.style import save
from gar_keras.report.sources import links
from gar_keras.utils import terminal

NAME = "gains"

HEADING = (
    "plain GAR on",
    "runs",
    "error lower at the last epoch than after stage 1",
    "not lower",
    "at chance",
    "lost a class, but not at chance",
)

# What plain GAR may differ in from the paper's runs: data and batches.
_FREE = {f.name for f in fields(DataConditions)} | {
    "labeled_per_batch",
    "unlabeled_per_batch",
    "restart",
}

# Of the error of a guess: from there on a network is at chance.
_CHANCE = 0.98

# Numbers of classes where they are not ten.
_CLASSES = {"mnist-pairs": 100, **dict.fromkeys(NORB, 5)}

# A shorter stage 1 is told of.
_SHORT_STAGE_1 = 100


def show_gains(records, results):
    """Prints how many runs gain, and draws those of a folder.

    Args:
        records: The records to print.
        results: Folder of the records, where `gains.png` goes.
    """
    console = terminal.console()
    title = "Plain GAR: error at the last epoch, against that after stage 1"
    rows = gains_rows(records, results)
    console.print(layout.terminal_table(title, HEADING, rows))
    path = Path(results) / f"{NAME}.png"
    found = gains(record_files.read_all(results), results)
    save(before_and_after(found), path)
    console.print(f"Written: {path}")


def gains_markdown(records, results=None):
    """The same as Markdown; empty if there is no run of plain GAR."""
    rows = gains_rows(records, results)
    return "\n".join([*layout.numbers(HEADING, rows), ""]) if rows else ""


def gains_rows(records, results=None):
    """How many runs of plain GAR end below the error that they began with.

    Args:
        records: Run records.
        results: Folder of the records, to which the names are linked, or
            `None`.

    Returns:
        Rows of strings, one for each name in the picture.
    """
    by_data = {}
    for record in _runs(records):
        by_data.setdefault(_data(record["experiment"]), []).append(record)
    order = sorted(by_data, key=lambda data: _place(*data, by_data[data]))
    return [_row(*data, by_data[data], results) for data in order]


def _place(kind, name, records):
    """By kind, then by the error after stage 1."""
    start = Group(tuple(records)).error("baseline_error")
    return [*KINDS].index(kind), start.mean, name


def _row(kind, name, records, results):
    points = gains(records, results)
    fates = Counter(p.fate for p in points)
    ends = [p.after < p.before for p in points if p.fate != COLLAPSED]
    counts = len(points), sum(ends), len(ends) - sum(ends)
    text = name if kind == OTHER else f"MNIST, {name}"
    if results is not None:
        text = layout.Linked(text, links(records, results))
    return [text, *map(str, (*counts, fates[COLLAPSED], fates[LOST]))]


def gains(records, results=None):
    """The runs of plain GAR, as points of the picture.

    Args:
        records: Run records.
        results: Folder of the records, with what lies beside them, if at hand.

    Returns:
        A list of `Point`.
    """
    return [
        Point(
            *_data(record["experiment"]),
            100 * record["result"]["baseline_error"],
            100 * record["result"]["last_error"],
            _fate(record, results),
        )
        for record in _runs(records)
    ]


def _runs(records):
    """The records of plain GAR; of a run at several lengths the longest."""
    plain = [record for record in records if is_plain(record)]
    longest = {}
    for record in plain:
        run, epochs = _run(record), record["experiment"]["epochs"]
        longest[run] = max(epochs, longest.get(run, 0))
    return [r for r in plain if r["experiment"]["epochs"] == longest[_run(r)]]


def _run(record):
    """What the records of one run at several lengths have in common."""
    settings = but_for(Group((record,)), {"epochs"})
    return settings, record["seed"], record["result"]["baseline_error"]


def is_plain(record):
    """Whether a run is of plain GAR: with any data, and batches of any size."""
    settings = record["experiment"]
    return settings["method"] == "gar" and changes(settings).keys() <= _FREE


def _fate(record, results):
    s = record["experiment"]
    n = s["world"]["known_classes"] or _CLASSES.get(s["dataset"], 10)
    if record["result"]["last_error"] >= _CHANCE * (1 - 1 / n):
        return COLLAPSED
    if lost_class(record, results):
        return LOST
    return BRIEF if s["epochs"] == 1 else KEPT


def _data(settings):
    """Kind and name of a run's data, as in `Point`."""
    world = settings["world"]
    if world["shares"]:
        return ALTERED, "imbalanced classes"
    if world["wrong_labels"]:
        share = 100 * world["wrong_labels"]
        return ALTERED, f"{share:g} % label noise"
    if world["known_classes"]:
        return ALTERED, f"digits 0 to {world['known_classes'] - 1}"
    if settings["dataset"] == "mnist-pairs":
        m = settings["labeled_per_batch"] + settings["unlabeled_per_batch"]
        return ALTERED, f"100 classes, batches of {m:,}"
    if settings["unlabeled"] == "infimnist":
        return OTHER, "InfiMNIST"
    labels = f"{settings['num_labeled']:,} labels"
    if settings["dataset"] != "mnist":
        title = DATASETS[settings["dataset"]].title
        return OTHER, f"{title}, {labels}"
    if settings["pretrain_epochs"] < _SHORT_STAGE_1:
        return MNIST, f"{settings['pretrain_epochs']} epochs of stage 1"
    return MNIST, labels
