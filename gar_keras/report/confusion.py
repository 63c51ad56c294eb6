"""Confusions of classes, from the predictions that the runs kept."""

import numpy as np

from gar_keras.datasets.norb import CLASSES as NORB_CLASSES
from gar_keras.datasets.registry import NORB
from gar_keras.report import layout
from gar_keras.report.groups import group
from gar_keras.report.layout import MISSING
from gar_keras.report.lost import chosen_predictions, kept_predictions
from gar_keras.report.published import TABLE_1
from gar_keras.report.sources import links
from gar_keras.report.tables import representative

# Names of the classes by data set, where they are not digits.
CLASSES = dict.fromkeys(NORB, NORB_CLASSES)

HEADING = (
    "run",
    "epoch of stage 2",
    "errors",
    "largest confusion",
    "all other errors",
)


def confusion_matrix(labels, predictions, num_classes):
    """Counts of the images by true class (rows) and predicted one.

    Example:

    >>> confusion_matrix([0, 0, 1], [0, 1, 1], 2).tolist()
    [[1, 1], [0, 1]]
    """
    n = num_classes
    counts = np.zeros((n, n), int)
    np.add.at(counts, (labels, predictions), 1)
    return counts


def largest_confusion(counts):
    """The two classes, true and predicted, that are confused most often.

    Example:

    >>> largest_confusion(np.array([[5, 1], [2, 4]]))
    (1, 0)
    """
    wrong = counts - np.diag(np.diag(counts))
    row, column = np.unravel_index(wrong.argmax(), wrong.shape)
    return int(row), int(column)


def confusions(records, results):
    """The largest confusion of each run at the epochs that it kept.

    It is the one of the last epoch, followed back to the end of stage 1.

    Args:
        records: Run records; those of data sets without named classes, and
            those that kept no predictions, are left out.
        results: Folder of the records, with what lies beside them.

    Returns:
        Markdown: a table with a row for each run and epoch; empty if there is
        none.
    """
    rows = _rows(_confused, records, results)
    if not rows:
        return ""
    return "\n".join([*layout.numbers(HEADING, rows), ""])


def digits(records, results):
    """The largest confusion of each run that Table 1 shows, where it ended.

    It is of all test images at the epoch chosen by validation. Behind it stands
    how many of the images kept were confused so from stage 1 on.

    Args:
        records: Run records. Those that kept no predictions are left out.
        results: Folder of the records, with what lies beside them.

    Returns:
        Markdown: a table with a row for each run; empty if there is none.
    """
    shown = (representative(records, column) for column in TABLE_1.columns)
    rows = [
        row
        for g in shown
        if g is not None
        for r in sorted(g.records, key=lambda r: r["seed"])
        for row in _digits(g, r, results)
    ]
    if not rows:
        return ""
    heading = (*HEADING, "the same of the images kept")
    return "\n".join([*layout.numbers(heading, rows), ""])


def _digits(g, record, results):
    at_chosen = chosen_predictions(record, results)
    kept = kept_predictions(record, results)
    if at_chosen is None or kept is None:
        return []
    labels, predictions = kept
    names = range(1 + max(map(np.max, at_chosen)))
    counts = confusion_matrix(*at_chosen, len(names))
    true, taken_for = largest_confusion(counts)
    course = {
        epoch: np.count_nonzero((labels == true) & (predicted == taken_for))
        for epoch, predicted in predictions.items()
    }
    first, last = min(course), max(course)
    return [
        [
            layout.Linked(_name(g, record), links([record], results)),
            str(record["result"]["chosen_epoch"]),
            *_cells(counts, (true, taken_for), names),
            f"{course[first]} at epoch {first}, {course[last]} at {last}, "
            f"of {len(labels):,}",
        ]
    ]


def matrices(records, results):
    """The confusion matrix of each run.

    It is of all test images at the epoch chosen by validation or, where a run
    did not keep that, of those that it kept, at the last epoch.

    Args:
        records: Run records, of which some are left out as in `confusions`.
        results: Folder of the records, with what lies beside them.

    Returns:
        Markdown: for each set of classes a table with a row for each run and
        true class; empty if there is none.
    """
    lines = []
    for names in dict.fromkeys(CLASSES.values()):
        alike = [
            r
            for r in records
            if CLASSES.get(r["experiment"]["dataset"]) == names
        ]
        rows = _rows(_matrix, alike, results)
        if rows:
            heading = ["run", "epoch of stage 2", "images of"]
            heading += [f"as {name}" for name in names]
            heading.append("error in percent")
            lines += [*layout.numbers(heading, rows), ""]
    return "\n".join(lines)


def _rows(of_run, records, results):
    """The rows of all runs with named classes.

    Args:
        of_run: Function of a run's name, the names of its classes, its record
            and `results` that returns its rows.
        records: Run records.
        results: Folder of the records, with what lies beside them.
    """
    return [
        row
        for g in group(records)
        if g.settings["dataset"] in CLASSES
        for r in g.records
        for row in of_run(
            layout.Linked(_name(g, r), links([r], results)),
            CLASSES[g.settings["dataset"]],
            r,
            results,
        )
    ]


def _name(g, record):
    s = g.settings
    return (
        f"{g.data}, m_L = {s['num_labeled']}, {g.epochs_text()} epochs"
        f"{g.changes_text()}, seed {record['seed']}"
    )


def _matrix(run, names, record, results):
    epoch = record["result"]["chosen_epoch"]
    kept = chosen_predictions(record, results)
    if kept is None:
        some = kept_predictions(record, results)
        if some is None:
            return []
        labels, by_epoch = some
        epoch = max(by_epoch)
        kept = labels, by_epoch[epoch]
    counts = confusion_matrix(*kept, len(names))
    return [
        [
            run,
            str(epoch),
            name,
            *map(str, row),
            f"{100 * (1 - row[i] / row.sum()):.2f}" if row.any() else MISSING,
        ]
        for i, (name, row) in enumerate(zip(names, counts, strict=True))
    ]


def _confused(run, names, record, results):
    kept = kept_predictions(record, results)
    if kept is None:
        return []
    labels, predictions = kept
    by_epoch = {
        epoch: confusion_matrix(labels, predicted, len(names))
        for epoch, predicted in predictions.items()
    }
    pair = largest_confusion(by_epoch[max(by_epoch)])
    return [
        [run, str(epoch), *_cells(counts, pair, names)]
        for epoch, counts in by_epoch.items()
    ]


def _cells(counts, pair, names):
    """Cells of a confusion matrix: errors, those of a pair, all others."""
    true, taken_for = pair
    wrong = counts.sum() - counts.trace()
    return [
        f"{wrong} of {counts.sum():,}",
        f"{names[true]} taken for {names[taken_for]}: {counts[pair]} of "
        f"{counts[true].sum()}",
        str(wrong - counts[pair]),
    ]
