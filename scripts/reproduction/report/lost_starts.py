"""How many starts lose a class, by the loss of stage 2."""

from dataclasses import replace

import pandas as pd
from scipy import stats

from reproduction.report import run_frame
from reproduction.report.cells import lost_in
from reproduction.report.estimates import MISSING
from reproduction.report.tables import markdown
from reproduction.settings import TABLE_1

PAPER = "the paper's: Frobenius term of B"
_MNIST = TABLE_1[100]
_CLASSES = 10

# MNIST with 100 labels, after all of stage 1.
LOSSES = {
    PAPER: _MNIST,
    "Frobenius term of Z, as in the authors' code": _MNIST.with_term(
        frobenius_of="Z"
    ),
    "column sums of B": _MNIST.with_term(balance_of="column sums"),
    "column sums of B, Frobenius term of Z": _MNIST.with_term(
        balance_of="column sums", frobenius_of="Z"
    ),
    "the paper's, clip of 1 and warm-up": replace(
        _MNIST, global_clipnorm=1.0, warmup_steps=100
    ),
}

# How a run went on from the end of stage 1 is no part of the start.
ANY = [*run_frame.HARDWARE, "epochs", "restart"]

# Runs with the same errors of all networks began with one end of stage 1.
START = ["seed", "stage_1", "val_stage_1"]


def starts(frame, loss):
    """The longest run from each end of stage 1 with a loss of `LOSSES`.

    Their column `lost` says whether a class was lost in its last epoch. Runs
    that do not tell are left out.
    """
    found = run_frame.like(frame, LOSSES[loss], ANY)
    found = found.assign(lost=lost_in(found, _CLASSES)).dropna(subset="lost")
    found = found.sort_values("epochs", kind="stable")
    return found.drop_duplicates(START, keep="last")


def rate(lost):
    """A number of lost starts, and the 95 % interval of their share.

    It is that of Clopper and Pearson.

    Example:

    >>> rate(pd.Series([True] + 9 * [False]))
    ('1 of 10', '0.3 to 44.5 %')
    """
    count = int(lost.sum())
    low, high = stats.binomtest(count, len(lost)).proportion_ci(method="exact")
    return f"{count} of {len(lost)}", f"{100 * low:.1f} to {100 * high:.1f} %"


def lost_line(frame):
    """The rate of the paper's loss as a sentence."""
    lost = starts(frame, PAPER).lost
    if lost.empty:
        return ""
    count, interval = rate(lost)
    return (
        f"MNIST, 100 labels, the paper's loss: {count} starts lost a class "
        f"(95 % interval: {interval}).\n"
    )


def lost_classes(frame):
    """A table in Markdown: the starts that lost a class, a row a loss.

    Losses are compared by the starts that both have.
    """
    usual = starts(frame, PAPER)[[*START, "lost"]]
    names, rows = [], []
    for loss in LOSSES:
        g = starts(frame, loss)
        if g.empty:
            continue
        pairs = g.merge(usual, on=START, suffixes=("", "_paper"))
        beside = {
            f"of those where the paper's {word}": (
                f"{int(both.lost.sum())} of {len(both)}"
                if loss != PAPER and len(both)
                else MISSING
            )
            for word, both in (
                ("loses one", pairs[pairs.lost_paper.eq(True)]),
                ("keeps all", pairs[pairs.lost_paper.eq(False)]),
            )
        }
        # The first epoch is the length that all losses have.
        first = g.curve.map(lambda c: c.get("classes_in_use", [None] * 2)[1])
        first = first.dropna() < _CLASSES
        count, interval = rate(g.lost)
        epochs = dict.fromkeys([g.epochs.min(), g.epochs.max()])
        names.append(run_frame.linked(loss, g))
        rows.append(
            {
                "lost a class": count,
                "95 % interval": interval,
                **beside,
                "after the first epoch": f"{first.sum()} of {len(first)}",
                "seeds": run_frame.seeds(g),
                "epochs of stage 2": " to ".join(map(str, epochs)),
            }
        )
    return markdown(pd.DataFrame(rows, names))
