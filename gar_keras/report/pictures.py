"""The pictures beside the tables, drawn from the runs of a folder."""

from functools import partial
from pathlib import Path

from gar_keras.experiments.settings import PAPER
from gar_keras.methods import METHODS
from gar_keras.report import runs, summary
from gar_keras.report.plots.curves import (
    Runs,
    error_over_time,
    learning_curves,
)
from gar_keras.report.plots.forest import ours_beside_paper
from gar_keras.report.plots.style import save
from gar_keras.report.published import BASELINE, TABLES, published_error
from gar_keras.report.tables import representative


def draw(frame, results, names=(*TABLES, "summary", "rivals")):
    """Draws those pictures into a folder that there are runs for.

    Returns:
        Their paths.
    """
    others = {"summary": _summary, "rivals": _rivals}
    written = []
    for name in names:
        draws = others.get(name) or partial(_table, TABLES[name])
        figure = draws(frame)
        if figure is not None:
            written.append(Path(results) / f"{name}.png")
            save(figure, written[-1])
    return written


def _table(paper, frame):
    """The learning curves of a table, longer runs of its cells in grey."""
    found = [representative(frame, column) for column in paper.columns]
    columns = [g for g in found if len(g)]
    if not columns:
        return None
    title, *others = {g.title.iloc[0] for g in columns}
    longer = [
        _drawn(g, f"{g.epochs.iloc[0]} epochs {g.differs.iloc[0]}".strip())
        for shown in columns
        for g in _longer(shown, frame[frame.cell == shown.cell.iloc[0]])
    ]
    names = [f"{g.num_labeled.iloc[0]:,} labels" for g in columns]
    curves = map(_drawn, columns, names)
    return learning_curves([*curves], "" if others else title, longer)


def _longer(g, frame):
    return runs.groups(frame[frame.epochs > g.epochs.iloc[0]])


def _drawn(g, name):
    cell = g.cell.iloc[0]
    paper = published_error(cell)
    epochs = PAPER[cell].epochs if paper else None
    return Runs.of(name, g, paper, epochs, published_error(cell, BASELINE))


def _summary(frame):
    rows = summary.cell_runs(frame)
    cells = [_drawn(g, name) for name, g in rows.items() if len(g)]
    return ours_beside_paper(cells) if cells else None


def _rivals(frame):
    """The error of each method over the minutes of its stage 2.

    Of the comparison with the most methods, those that ran on one machine.
    """
    found = summary.compare(frame)
    if not found:
        return None
    first = next(iter(found[0].values()))
    machine = runs.hardware(first)
    shown = {
        METHODS[name].title: g
        for name, g in found[0].items()
        if runs.hardware(g) == machine
    }
    longer = []
    for name, g in shown.items():
        alike = runs.like(frame, g.experiment.iloc[0], ["epochs"])
        longer += [_drawn(more, name) for more in _longer(g, alike)]
    methods = [_drawn(g, name) for name, g in shown.items()]
    return error_over_time(methods, longer, f"{runs.task(first)}, {machine}")
