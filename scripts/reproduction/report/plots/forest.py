"""Our errors and the paper's, a row for each cell of its tables."""

from matplotlib.figure import Figure

from reproduction.report.cells import cell_runs
from reproduction.report.plots import style
from reproduction.report.published import BASELINE, published_error

# Of the two figures of a row, from its middle.
_ABOVE = 0.17


@style.styled
def ours_and_paper(frame):
    """The errors before and after stage 2 in each cell, ours and the paper's.

    Each seed is a dot, a cross where it lost a class, and the mean of all a
    bar. A thin line leads there from stage 1, a hollow mark.

    Returns:
        A Matplotlib `Figure`; `None` without a run.
    """
    cells = cell_runs(frame)
    if not cells:
        return None
    figure = Figure((style.WIDTH, 0.46 * len(cells) + 1.3))
    ax = figure.subplots()

    def start(y, before, after, **look):
        ax.plot([before, after], [y, y], lw=0.8, alpha=0.5, color=look["color"])
        ax.plot(before, y, ls="", mfc="white", ms=5, **look)

    for row, g in enumerate(cells.values()):
        cell = g.cell.iloc[0]
        paper, baseline = published_error(cell), published_error(cell, BASELINE)
        y, color = row - _ABOVE, style.INK
        if baseline:
            look = {"marker": "D", "label": "the paper's pretraining"}
            start(y, baseline.mean, paper.mean, color=color, **look)
        look = {"fmt": "D", "ms": 6, "lw": 1.5, "capsize": 3, "color": color}
        look["label"] = "the paper's GAR, with its ±"
        ax.errorbar(paper.mean, y, xerr=paper.deviation, **look)
        y, color, mean = row + _ABOVE, style.LINES[0], g.chosen.mean()
        look = {"marker": "o", "label": "our pretraining, mean"}
        start(y, g.stage_1.mean(), mean, color=color, **look)
        for error, lost in zip(g.chosen, g.lost.eq(True), strict=True):
            look = {"marker": "o", "alpha": 0.5, "label": "our GAR, a seed"}
            if lost:
                look = {"marker": "X", "label": "a seed that lost a class"}
            ax.plot(error, y, ls="", ms=6.5, mew=0, color=color, **look)
        look = {"ms": 13, "mew": 2, "label": "our GAR, mean of all"}
        ax.plot(mean, y, "|", color=color, **look)
    ax.spines["left"].set_visible(False)
    ax.grid(visible=False, axis="y")
    ax.set_xscale("log")
    style.log_ticks(ax.xaxis)
    ax.set_xlabel("test error, %, log scale")
    ax.set_ylim(len(cells) - 0.5, -0.5)
    # The data in one line, the number of labels in another.
    names = [",\n".join(name.rsplit(", ", 1)) for name in cells]
    ax.set_yticks(range(len(cells)), names, fontsize=9.5)
    ax.tick_params(axis="y", length=0)
    style.legend_below(figure, ncols=3)
    return figure
