"""The pictures of the tables, drawn from the runs of a folder."""

from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from reproduction.report.cells import filled_columns
from reproduction.report.plots import style
from reproduction.report.published import BASELINE, TABLES, published_error
from reproduction.report.run_frame import epochs, errors_of, task
from reproduction.report.tables import runs_of_cell


def draw(frame, results, names=None):
    """Draws those pictures that there are runs for, and returns their paths."""
    written = []
    for name in names or PICTURES:
        figure = PICTURES[name](frame)
        if figure is not None:
            written.append(Path(results) / f"{name}.png")
            style.save(figure, written[-1])
    return written


@style.styled
def learning_curves(paper, frame):
    """The test error over the epochs of stage 2 in a `Table` of the paper.

    Each run has a line, a running mean, with a mark at its end; one that lost
    a class is dashed. The paper's errors stand beside them.
    """
    found = [
        g for column in paper.columns for g in runs_of_cell(frame, column)[:1]
    ]
    if not found:
        return None
    figure = Figure((style.WIDTH, 5.0))
    ax, side = figure.subplots(1, 2, sharey=True, width_ratios=[8, 1])
    for k, g in enumerate(found):
        color = style.LINES[k]
        error = published_error(g.cell.iloc[0])
        runs = "1 run" if len(g) == 1 else f"{len(g)} runs"
        look = {"color": color, "lw": 0.8, "ms": 5}
        ax.plot([], [], "o-", label=f"{task(g)}, {runs}", **look)
        for errors, lost in zip(errors_of(g), g.lost.eq(True), strict=True):
            marks = {"marker": "o"}
            if lost:
                marks = {"marker": "X", "ls": "--", "label": "lost a class"}
            ax.plot(running_mean(errors), markevery=[-1], **look, **marks)
        look = {"marker": "_", "ms": 10, "mew": 3, "elinewidth": 1.2}
        side.errorbar(k, error.mean, error.deviation, color=color, **look)
    # Up to epoch 1 the axis is linear: 0 has no logarithm.
    ax.set_xscale("symlog", linthresh=1, linscale=0.3)
    last = ax.dataLim.x1
    shown = [0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]
    shown = [epoch for epoch in shown if epoch <= last]
    ax.set(xlim=(0, 1.05 * last), yscale="log")
    ax.set_xticks(shown, [f"{epoch}" for epoch in shown])
    ax.set_xticks([], minor=True)
    ax.set_xlabel("epoch of stage 2, log scale (0: end of stage 1)")
    style.log_ticks(ax.yaxis)
    ax.set_ylabel("test error, %, running mean, log scale")
    side.spines["left"].set_visible(False)
    side.tick_params(left=False, labelleft=False)
    side.set(xticks=[], xlim=(-0.7, len(found) - 0.3))
    side.set_xlabel("the paper", fontsize=9.5)
    style.legend_below(figure, 2)
    return figure


def running_mean(errors):
    """The mean over an eighth of the epochs around each, as far as there are.

    Example:

    >>> running_mean(np.array([9., 1., 2.])).tolist()
    [9.0, 1.0, 2.0]
    """
    windows = [slice(k - k // 16, k + k // 16 + 1) for k in range(len(errors))]
    return np.array([errors[window].mean() for window in windows])


@style.styled
def ours_and_paper(frame):
    """The errors before and after stage 2 in each cell, ours and the paper's.

    A cell has a row for each device. Each run is a dot, a cross where it lost a
    class, and the mean of all a bar. A thin line leads there from stage 1, a
    hollow mark.
    """
    rows = [g for _, groups in filled_columns(frame) for g in groups]
    if not rows:
        return None
    figure = Figure((style.WIDTH, 0.46 * len(rows) + 1.3))
    ax = figure.subplots()

    def start(y, before, after, **look):
        ax.plot([before, after], [y, y], lw=0.8, alpha=0.5, color=look["color"])
        ax.plot(before, y, ls="", mfc="white", ms=5, **look)

    for row, g in enumerate(rows):
        cell = g.cell.iloc[0]
        paper = published_error(cell)
        baseline = published_error(cell, BASELINE)
        y = row - 0.17
        color = style.INK
        if baseline:
            look = {"marker": "D", "label": "the paper's pretraining"}
            start(y, baseline.mean, paper.mean, color=color, **look)
        look = {"fmt": "D", "ms": 6, "lw": 1.5, "capsize": 3, "color": color}
        look["label"] = "the paper's GAR, with its ±"
        ax.errorbar(paper.mean, y, xerr=paper.deviation, **look)
        y = row + 0.17
        color = style.LINES[0]
        mean = g.chosen.mean()
        look = {"marker": "o", "label": "our pretraining, mean"}
        start(y, g.stage_1.mean(), mean, color=color, **look)
        for error, lost in zip(g.chosen, g.lost.eq(True), strict=True):
            look = {"marker": "o", "alpha": 0.5, "label": "our GAR, a run"}
            if lost:
                look = {"marker": "X", "label": "a run that lost a class"}
            ax.plot(error, y, ls="", ms=6.5, mew=0, color=color, **look)
        look = {"ms": 13, "mew": 2, "label": "our GAR, mean of all"}
        ax.plot(mean, y, "|", color=color, **look)
    ax.spines["left"].set_visible(False)
    ax.grid(visible=False, axis="y")
    ax.set_xscale("log")
    style.log_ticks(ax.xaxis)
    ax.set_xlabel("test error, %, log scale")
    ax.set_ylim(len(rows) - 0.5, -0.5)
    names = [f"{task(g)}\n{epochs(g)} epochs, {g.device.iloc[0]}" for g in rows]
    ax.set_yticks(range(len(rows)), names, fontsize=9.5)
    ax.tick_params(axis="y", length=0)
    style.legend_below(figure, ncols=3)
    return figure


# Functions of runs by the name of the PNG: a Matplotlib `Figure`, or `None`
# without a run.
PICTURES = {
    **{name: partial(learning_curves, paper) for name, paper in TABLES.items()},
    "summary": ours_and_paper,
}
