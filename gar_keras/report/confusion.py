"""Confusions of classes, from the predictions that the runs kept."""

import numpy as np

from gar_keras.datasets.norb import CLASSES as NORB_CLASSES
from gar_keras.report import layout
from gar_keras.report.groups import group
from gar_keras.report.lost import kept_predictions
from gar_keras.report.sources import links

# Names of the classes by data set, where they are not digits.
CLASSES = {"norb": NORB_CLASSES, "norb-jpeg": NORB_CLASSES}

HEADING = (
    "run",
    "epoch of stage 2",
    "errors",
    "largest confusion",
    "all other errors",
)


def confusion_matrix(labels, predictions):
    """Counts of the images by true class (rows) and predicted one.

    Example:

    >>> confusion_matrix([0, 0, 1], [0, 1, 1]).tolist()
    [[1, 1], [0, 1]]
    """
    n = 1 + max(np.max(labels), np.max(predictions))
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
    rows = [
        row
        for g in group(records)
        if g.settings["dataset"] in CLASSES
        for r in g.records
        for row in _rows(g, r, results)
    ]
    if not rows:
        return ""
    return "\n".join([*layout.numbers(HEADING, rows), ""])


def _rows(g, record, results):
    kept = kept_predictions(record, results)
    if kept is None:
        return []
    labels, predictions = kept
    matrices = {
        epoch: confusion_matrix(labels, predicted)
        for epoch, predicted in predictions.items()
    }
    true, taken_for = largest_confusion(matrices[max(matrices)])
    names = CLASSES[g.settings["dataset"]]
    run = layout.Linked(
        f"{g.data}, m_L = {g.settings['num_labeled']}, seed {record['seed']}",
        links([record], results),
    )
    rows = []
    for epoch, counts in matrices.items():
        wrong = counts.sum() - counts.trace()
        confused = counts[true, taken_for]
        rows.append(
            [
                run,
                str(epoch),
                f"{wrong} of {counts.sum():,}",
                f"{names[true]} taken for {names[taken_for]}: {confused} of "
                f"{counts[true].sum()}",
                str(wrong - confused),
            ]
        )
    return rows
