"""All cells of the paper that were run: our errors beside the paper's."""

import math

import pandas as pd

from reproduction.report import run_frame
from reproduction.report.estimates import (
    MISSING,
    Estimate,
    between,
    equivalence,
)
from reproduction.report.published import TABLES, published_error
from reproduction.report.tables import figure, markdown, runs_of_cell

WITHIN = (
    "within the margin, the paper's ± as standard deviation / standard error"
)

# What the README leaves to the page of the cells.
DETAILS = ("seeds", "hours a run")

# Runs that an answer takes. The deviation of two is so rough that a larger ± of
# the paper's could make an answer surer.
FEWEST = 3


def filled_columns(frame):
    """The columns of the paper that we have runs for.

    Returns:
        A list of pairs of a `Column` and what `runs_of_cell` gives for it.
    """
    columns = [c for paper in TABLES.values() for c in paper.columns]
    found = [(column, runs_of_cell(frame, column)) for column in columns]
    return [(column, groups) for column, groups in found if groups]


def cell_runs(frame):
    """The runs that stand for each cell, by its name in words."""
    return {
        run_frame.task(groups[0]): groups[0]
        for _, groups in filled_columns(frame)
    }


def all_cells(frame, error="chosen", without=()):
    """A table in Markdown: each cell of the paper that was run.

    It has a row for each item of `runs_of_cell`, with an `error` of the frame,
    and is `without` some columns. All runs count, but for those that lost a
    class in the column that says so.
    """
    names, rows = [], []
    for column, groups in filled_columns(frame):
        for g in groups:
            lost = g[lost_in(g, column.classes).eq(True)]
            kept = g.drop(lost.index)
            sound = MISSING
            if len(lost):
                parts = ["none is left"]
                if len(kept):
                    mean = figure(error, n=True)(kept)
                    parts = [mean, *beside_paper(kept, column, error)]
                sound = f"without {run_frame.which_seeds(lost)}: "
                sound += ", ".join(parts)
            difference, within = beside_paper(g, column, error)
            names.append(run_frame.linked(run_frame.task(g), g))
            rows.append(
                {
                    "the paper": published_error(column.cell).text(),
                    "ours": figure(error)(g),
                    "n": str(len(g)),
                    "seeds": run_frame.seeds(g),
                    "epochs": run_frame.epochs(g),
                    "device": f"{g.device.iloc[0]}, {g.precision.iloc[0]}",
                    "difference, 90 % interval": difference,
                    "margin": str(column.margin),
                    WITHIN: within,
                    "without runs that lost a class": sound,
                    "hours a run": f"{g.minutes.mean() / 60:.1f}",
                }
            )
    cells = pd.DataFrame(rows, names)
    return markdown(cells.drop(columns=[*without], errors="ignore"))


def beside_paper(g, column, error):
    """How far an error of runs is above that in a `Column` of the paper.

    Returns:
        Two texts: the difference with its 90 % interval, where the paper's ± is
        a standard deviation; and two answers of `equivalence`, with the ± as
        this and as a standard error. Fewer than `FEWEST` runs tell nothing.
    """
    if g[error].isna().any():
        return MISSING, MISSING
    ours, paper = Estimate.of(g[error]), published_error(column.cell)
    if ours.deviation is None:
        return f"{ours.mean - paper.mean:+.2f}", "not told / not told"
    difference, interval, answer = equivalence(ours, paper, column.margin)
    wider = paper._replace(deviation=paper.deviation * math.sqrt(paper.n))
    *_, other = equivalence(ours, wider, column.margin)
    if ours.n < FEWEST:
        answer = other = "not told"
    return f"{difference:+.2f} ({between(interval)})", f"{answer} / {other}"


def lost_in(g, classes):
    """Which runs lost one of some classes; `None` where a run does not tell.

    It has fewer classes in use in the last epoch. Runs of early versions did
    not note these: there it is as `lost` says.
    """
    noted = g.classes_in_use.notna()
    return g.lost.mask(noted, g.classes_in_use < classes)
