"""The pictures of the tables, drawn from the runs of a folder."""

from functools import partial
from pathlib import Path

from reproduction.report.plots.curves import error_over_time, learning_curves
from reproduction.report.plots.forest import ours_and_paper
from reproduction.report.plots.style import save
from reproduction.report.published import TABLES

# Functions of runs by the name of the PNG; they draw nothing without a run.
PICTURES = {
    **{name: partial(learning_curves, paper) for name, paper in TABLES.items()},
    "summary": ours_and_paper,
    "rivals": error_over_time,
}


def draw(frame, results, names=PICTURES):
    """Draws those pictures that there are runs for, and returns their paths."""
    written = []
    for name in names:
        figure = PICTURES[name](frame)
        if figure is not None:
            written.append(Path(results) / f"{name}.png")
            save(figure, written[-1])
    return written
