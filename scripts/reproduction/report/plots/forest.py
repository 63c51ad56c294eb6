"""Our errors beside the paper's, a row for each cell of its tables."""

from reproduction.report.plots import style
from reproduction.report.published import BASELINE, published_error

_OURS = {"color": style.LINES[0]}
_PAPER = {"color": style.INK}

# Of the two figures of a row, from its middle.
_ABOVE = 0.17


def ours_beside_paper(cells):
    """The errors before and after stage 2 in each cell, ours and the paper's.

    Each seed is a dot, a cross where it lost a class, and the mean of all a
    bar.

    Args:
        cells: Runs by the name of their row, of cells that the paper has.

    Returns:
        A Matplotlib `Figure`.
    """
    figure = style.page_figure(0.46 * len(cells) + 1.3)
    ax = figure.subplots()
    for y, g in enumerate(cells.values()):
        _draw_paper(ax, y - _ABOVE, g.cell.iloc[0])
        _draw_ours(ax, y + _ABOVE, g)
    style.clear_axes(ax)
    ax.spines["left"].set_visible(False)
    ax.grid(visible=False, axis="y")
    ax.set_xscale("log")
    ax.set_ylim(len(cells) - 0.5, -0.5)
    style.log_ticks(ax.xaxis)
    ax.set_xlabel("test error, %, log scale")
    # The data in one line, the number of labels in another.
    names = [",\n".join(name.rsplit(", ", 1)) for name in cells]
    ax.set_yticks(range(len(cells)), names, fontsize=9.5)
    ax.tick_params(axis="y", length=0)
    style.legend_below(figure, ncols=3)
    return figure


def _draw_paper(ax, y, cell):
    paper, start = published_error(cell), published_error(cell, BASELINE)
    if start:
        look = {"marker": "D", "label": "the paper's pretraining", **_PAPER}
        _draw_start(ax, y, start.mean, paper.mean, look)
    look = {"fmt": "D", "ms": 6, "lw": 1.5, "capsize": 3, **_PAPER}
    label = "the paper's GAR, with its ±"
    ax.errorbar(paper.mean, y, xerr=paper.deviation, label=label, **look)


def _draw_ours(ax, y, g):
    mean = g.chosen.mean()
    look = {"marker": "o", "label": "our pretraining, mean", **_OURS}
    _draw_start(ax, y, g.stage_1.mean(), mean, look)
    for error, lost in zip(g.chosen, g.lost.eq(True), strict=True):
        look = {"marker": "o", "alpha": 0.5, "label": "our GAR, a seed"}
        if lost:
            look = {"marker": "X", "label": "a seed that lost a class"}
        ax.plot(error, y, ls="", ms=6.5, mew=0, **_OURS, **look)
    ax.plot(mean, y, "|", ms=13, mew=2, label="our GAR, mean of all", **_OURS)


def _draw_start(ax, y, before, after, look):
    """The way from stage 1, a hollow mark, to the end of stage 2."""
    ax.plot([before, after], [y, y], lw=0.8, alpha=0.5, color=look["color"])
    ax.plot(before, y, ls="", mfc="white", ms=5, **look)
