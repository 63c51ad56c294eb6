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
    others = {"summary": _summary, "rivals": _baselines}
    written = []
    for name in names:
        table = TABLES.get(name)
        figure = _table(table, frame) if table else others[name](frame)
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


def _summary(frame):
    cells = summary.cell_runs(frame)
    return ours_beside_paper(cells) if cells else None


def _baselines(frame):
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
    longer = {}
    for name, entry in METHODS.items():
        arm = first.experiment.iloc[0].with_method(name)
        same = run_frame.like(frame, arm, ["epochs"])
        same = same[same.epochs > arm.epochs]
        if len(same):
            longer[entry.title] = run_frame.largest(same)
    title = f"{run_frame.task(first)}, {machine}"
    return error_over_time(timed, longer, title)
