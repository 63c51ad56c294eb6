"""Which loss frees a large confusion, from the same ends of stage 1."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import confusion_matrix

from reproduction import records
from reproduction.report import lost_starts, run_frame
from reproduction.report.cells import lost_in
from reproduction.report.estimates import MISSING
from reproduction.report.tables import markdown

# A run is stuck if one confusion has STUCK of the images kept at epoch EARLY.
STUCK, EARLY = 10, 10
# Epochs after which losses are compared.
LATER = 20
# Test images of MNIST.
TEST_IMAGES = 10_000

PAPER = "the paper's"
LOSSES = {
    PAPER: lost_starts.MNIST,
    "Frobenius term of Z": lost_starts.OF_Z,
    "of Z, and column sums": lost_starts.SUMS_OF_Z,
    "learning rate of 0.005": replace(lost_starts.MNIST, stage_2_rate=0.005),
}


def largest_confusion(true, predicted):
    """How many images of one class are taken for one other, at most.

    Returns:
        Their number, their class, and the class that is predicted.

    Example:

    >>> largest_confusion([0, 1, 1, 1], [0, 0, 0, 1])
    (2, 1, 0)
    """
    counts = confusion_matrix(
        true, predicted, labels=range(lost_starts.CLASSES)
    )
    np.fill_diagonal(counts, 0)
    class_, prediction = np.unravel_index(counts.argmax(), counts.shape)
    return int(counts.max()), int(class_), int(prediction)


def state_of(run, epoch, results):
    """The test error of a run after an epoch, and its largest confusion.

    Of the 2,000 test images that runs keep, whether they keep others or not;
    `None` in place of a confusion where the run kept no classes of that epoch.
    """
    path = Path(results, run.path)
    arrays = records.read_arrays(path, records.read(path))
    found = None
    if arrays is not None and epoch in arrays.predicted:
        kept = records.kept_images(run.seed, TEST_IMAGES)
        among = np.isin(arrays.indices, kept)
        found = largest_confusion(
            arrays.labels[among], arrays.predicted[epoch][among]
        )
    return 100 * run.curve["test_error"][epoch], found


def in_words(error, confusion):
    """What `state_of` returns, as a cell, e.g. `3.18, 12 (4 → 9)`."""
    if confusion is None:
        return f"{error:.2f}"
    count, true, predicted = confusion
    return f"{error:.2f}, {count} ({true} → {predicted})"


def confusions(frame, results):
    """A table in Markdown: starts that get stuck, a column for each loss.

    It has the starts from which another loss than the paper's ran as well.
    """
    ran = {
        name: run_frame.like(frame, loss, lost_starts.ANY)
        for name, loss in LOSSES.items()
    }
    usual = ran[PAPER][ran[PAPER].epochs >= EARLY]
    usual = usual.sort_values(lost_starts.START)
    names, rows = [], []
    for start, runs in usual.groupby(lost_starts.START, sort=False):
        run = runs.iloc[0]
        early = state_of(run, EARLY, results)
        is_stuck = early[1] is not None and early[1][0] >= STUCK
        if not is_stuck or lost_in(runs, lost_starts.CLASSES).eq(True).any():
            continue
        row = {"after stage 1": f"{run.stage_1:.2f}"}
        row[f"{PAPER}, epoch {EARLY}"] = in_words(*early)
        for name, others in ran.items():
            of_start = (others[lost_starts.START] == start).all(axis=1)
            long_enough = others[of_start & (others.epochs >= LATER)]
            cell = MISSING
            if len(long_enough):
                # A run that ends with epoch LATER kept the classes then.
                shortest = long_enough.sort_values("epochs").iloc[0]
                cell = in_words(*state_of(shortest, LATER, results))
            row[f"{name}, epoch {LATER}"] = cell
        compared = [row[f"{name}, epoch {LATER}"] for name in LOSSES]
        if any(cell != MISSING for cell in compared[1:]):
            names.append(f"seed {run.seed}")
            rows.append(row)
    return markdown(pd.DataFrame(rows, names))
