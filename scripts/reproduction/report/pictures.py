"""The pictures beside the tables, drawn from the runs of a folder."""

from pathlib import Path

from reproduction.methods import METHODS
from reproduction.report import run_frame, summary
from reproduction.report.plots.curves import error_over_time, learning_curves
from reproduction.report.plots.forest import ours_beside_paper
from reproduction.report.plots.style import save
from reproduction.report.published import TABLES
from reproduction.report.tables import longer_runs, representative


def draw(frame, results, names=(*TABLES, "summary", "rivals")):
    """Draws those pictures into a folder that there are runs for.

    Returns:
        Their paths.
    """
    written = []
    for name in names:
        if name in TABLES:
            figure = _table(TABLES[name], frame)
        elif name == "rivals":
            figure = _rivals(frame)
        else:
            cells = summary.cell_runs(frame)
            figure = ours_beside_paper(cells) if cells else None
        if figure is not None:
            written.append(Path(results) / f"{name}.png")
            save(figure, written[-1])
    return written


def _table(paper, frame):
    """The learning curves of a table, those of longer runs among them."""
    found = [representative(frame, column) for column in paper.columns]
    found = [g for g in found if len(g)]
    if not found:
        return None
    title, *others = {g.title.iloc[0] for g in found}
    columns, longer = {}, {}
    for g in found:
        labels = f"{g.num_labeled.iloc[0]:,} labels"
        name = run_frame.task(g) if others else labels
        columns[name] = g
        more = longer_runs(frame, g)
        if more:
            longer[name] = more[0]
    return learning_curves(columns, "" if others else title, longer)


def _rivals(frame):
    """The error of each method over the minutes of its stage 2.

    Of the comparison with the most methods, those that ran on one machine; and
    of each method the most epochs of longer runs with the same settings.
    """
    found = summary.compare(frame)
    if not found:
        return None
    first, *_ = found[0].values()
    machine = run_frame.hardware(first)
    timed = {
        METHODS[name].title: g
        for name, g in found[0].items()
        if run_frame.hardware(g) == machine
    }
    e = first.experiment.iloc[0]
    more = frame[frame.epochs > e.epochs]
    longer = {
        entry.title: run_frame.largest(
            run_frame.like(more, e.with_method(name), ["epochs"])
        )
        for name, entry in METHODS.items()
    }
    longer = {name: g for name, g in longer.items() if len(g)}
    return error_over_time(timed, longer, f"{run_frame.task(first)}, {machine}")
