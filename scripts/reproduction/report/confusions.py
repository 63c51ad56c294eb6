"""Which loss frees a large confusion, from one end of stage 1."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from reproduction import records
from reproduction.report import lost_starts, run_frame
from reproduction.report.estimates import MISSING
from reproduction.report.tables import markdown
from reproduction.settings import TABLE_1

# A run is stuck that has so many of the images kept in one confusion, early.
STUCK, EARLY = 10, 10
# All losses are compared after so many epochs.
LATER = 20

LOSSES = {
    "the paper's": lost_starts.LOSSES[lost_starts.PAPER],
    "Frobenius term of Z": TABLE_1[100].with_term(frobenius_of="Z"),
    "of Z, and column sums": TABLE_1[100].with_term(
        balance_of="column sums", frobenius_of="Z"
    ),
    "rate of 0.005": replace(TABLE_1[100], stage_2_rate=0.005),
}


def largest_confusion(arrays, epoch, seed, num_images=10_000):
    """The most images of one class that another is predicted for.

    Of the 2,000 test images that every run kept.

    Returns:
        Their number, the class, and the one predicted.
    """
    kept = records.kept_images(seed, num_images)
    among = np.isin(arrays.indices, kept)
    true = arrays.labels[among].astype(int)
    predicted = np.asarray(arrays.predicted[epoch])[among].astype(int)
    matrix = np.zeros([max(true.max(), predicted.max()) + 1] * 2, int)
    np.add.at(matrix, (true, predicted), 1)
    np.fill_diagonal(matrix, 0)
    at = np.unravel_index(matrix.argmax(), matrix.shape)
    return int(matrix[at]), *map(int, at)


def state(run, epoch, results):
    """A run after an epoch: its test error, and its largest confusion.

    Returns:
        A text, and the number of images in the confusion; `None` where the run
        did not keep the classes of that epoch.
    """
    text = f"{100 * run.curve['test_error'][epoch]:.2f}"
    path = Path(results, run.path)
    arrays = records.read_arrays(path, records.read(path))
    if epoch not in arrays.predicted:
        return text, None
    count, true, predicted = largest_confusion(arrays, epoch, run.seed)
    return f"{text}, {count} ({true} → {predicted})", count


def confusions(frame, results):
    """A table in Markdown of the starts that get stuck, a column a loss.

    A cell has the test error, and the largest confusion of the images kept.
    """
    ran = {
        name: run_frame.like(frame, loss, lost_starts.ANY)
        for name, loss in LOSSES.items()
    }
    usual = ran["the paper's"]
    usual = usual[usual.epochs >= EARLY].drop_duplicates(lost_starts.START)
    rows, names = [], []
    for run in usual.sort_values("seed", kind="stable").itertuples():
        early, count = state(run, EARLY, results)
        lost = run.curve.get("classes_in_use", [None, 10])[-1] != 10
        if lost or count is None or count < STUCK:
            continue
        row = {
            "after stage 1": f"{run.stage_1:.2f}",
            f"the paper's, epoch {EARLY}": early,
        }
        found = 0
        for name, runs in ran.items():
            same = (
                runs[lost_starts.START]
                == pd.Series(run._asdict())[lost_starts.START]
            ).all(axis=1)
            runs = runs[same & (runs.epochs >= LATER)]
            texts = [state(r, LATER, results) for r in runs.itertuples()]
            # The run that ended there kept its classes.
            texts.sort(key=lambda told: told[1] is None)
            found += name != "the paper's" and bool(texts)
            row[f"{name}, epoch {LATER}"] = texts[0][0] if texts else MISSING
        if found:
            names.append(f"seed {run.seed}")
            rows.append(row)
    return markdown(pd.DataFrame(rows, names))
