"""Runs on small NORB: their last epochs, and the mean of the test images."""

import statistics
from dataclasses import replace

from gar_keras.datasets.registry import NORB
from gar_keras.experiments.data import OWN_MEAN
from gar_keras.experiments.settings import standard_of
from gar_keras.report import layout
from gar_keras.report.claims import curves_by_seed, papers_runs
from gar_keras.report.estimates import Estimate
from gar_keras.report.groups import LATE, group
from gar_keras.report.layout import MISSING
from gar_keras.report.sources import linked

NAME = "norb"

HEADING = (
    "runs",
    "mean subtracted from the test images",
    "seeds",
    "after stage 1",
    "epoch chosen by validation",
    "last epoch",
    f"mean of the last {LATE} epochs",
    "beside",
    "difference",
)

# The curve of the error, by the mean that the test images are without.
MEANS = {"the training images'": "test_error", "their own": OWN_MEAN}

NOTES = (
    "Test errors in percent. The authors' code subtracts their own mean from "
    "the test images: here with the same weights, in the same epochs.",
    f"Mean of the last {LATE} epochs: with another b_U, of as many steps.",
    "Difference: of these means, seed by seed. What changes the paper's "
    "stage 2 is set beside it after as many steps, with the same stage 1 but "
    "for what is changed in the images; the test images less their own mean "
    "beside those less the training images'.",
)


def norb_markdown(records, results=None):
    """All runs of GAR on NORB at the epochs that tell, with both means.

    Args:
        records: Run records.
        results: Folder of the records, to which the runs are linked.

    Returns:
        Markdown: a table with a row for each experiment and mean; empty if
        there is none.
    """
    rows = [
        row
        for g in group(records)
        if g.settings["dataset"] in NORB and g.method == "gar"
        for row in _rows(g, records, results)
    ]
    if not rows:
        return ""
    rules = ["---"] * 3 + ["---:"] * (len(HEADING) - 3)
    lines = layout.markdown_table(HEADING, rows, rules)
    return "\n".join([*lines, "", *(f"- {note}" for note in NOTES), ""])


def _rows(g, records, results):
    s = g.settings
    name = (
        f"{g.data}, m_L = {s['num_labeled']}, {g.epochs_text()} epochs, "
        f"{s['precision']}, {s['backend']}{g.changes_text()}"
    )
    window = _late_epochs(s)
    beside = _papers(g, records) if g.changes else {}
    rows = []
    for mean, key in MEANS.items():
        curves = {
            r["seed"]: r["regularization"]["curve"][key]
            for r in g.records
            if key in r["regularization"]["curve"]
        }
        if not curves:
            continue
        chosen = {r["seed"]: r["result"]["chosen_epoch"] for r in g.records}
        late = _late(curves, window)
        rows.append(
            [
                linked(name, g, results),
                mean,
                ", ".join(map(str, sorted(curves))),
                _text(curve[0] for curve in curves.values()),
                _text(curve[chosen[seed]] for seed, curve in curves.items()),
                _text(curve[-1] for curve in curves.values()),
                _text(late.values()),
                _text(beside[seed] for seed in late if seed in beside),
                str(Estimate.of_differences(beside, late) or MISSING),
            ]
        )
        # The next row is of the same weights.
        beside = late
    return rows


def _papers(g, records):
    """The mean errors of the paper's stage 2 when it was as far, by seed."""
    standard = standard_of(g.settings)
    arm = replace(standard, pretrain_epochs=g.settings["pretrain_epochs"])
    epoch, runs = papers_runs(g, arm, records)
    curves = curves_by_seed(runs)
    errors = {s: c["test_error"][: int(epoch) + 1] for s, c in curves.items()}
    return _late(errors, LATE)


def _late_epochs(settings):
    """Epochs of a run with as many steps as `LATE` of the paper's have."""
    usual = standard_of(settings).unlabeled_per_batch
    return max(1, round(LATE * settings["unlabeled_per_batch"] / usual))


def _late(curves, window):
    """Means over the last epochs by seed, of the curves that have so many."""
    return {
        seed: statistics.mean(curve[-window:])
        for seed, curve in curves.items()
        # Epoch 0 is the end of stage 1.
        if len(curve) > window
    }


def _text(errors):
    """Mean and deviation of errors; of one that is not known, a dash."""
    errors = list(errors)
    known = errors and None not in errors
    return str(Estimate.of(errors)) if known else MISSING
