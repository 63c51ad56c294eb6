"""Our errors beside the paper's, a row for each cell of its tables."""

from gar_keras.report.plots import style
from gar_keras.report.plots.curves import count_text

_OURS = {"color": style.LINES[0]}
_PAPER = {"color": style.INK}

# Of the two figures of a row, from its middle.
_ABOVE = 0.17


def ours_beside_paper(cells):
    """The errors before and after stage 2 in each cell, ours and the paper's.

    Each seed is a dot, a cross where it lost a class, and their mean a bar.

    Args:
        cells: List of `Runs`, all with the paper's error, from top to bottom.

    Returns:
        A Matplotlib `Figure`.
    """
    figure = style.page_figure(0.46 * len(cells) + 1.3)
    ax = figure.subplots()
    for y, runs in enumerate(cells):
        _draw_paper(ax, y - _ABOVE, runs)
        _draw_ours(ax, y + _ABOVE, runs)
        difference = runs.chosen.mean() - runs.paper.error
        _write_beside(ax, y, 8, f"{difference:+.2f}")
        _write_beside(ax, y, 48, _runs_text(runs))
    _write_beside(ax, -0.75, 8, "ours - paper")
    style.clear_axes(ax)
    ax.spines["left"].set_visible(False)
    ax.grid(visible=False, axis="y")
    ax.set_xscale("log")
    ax.set_ylim(len(cells) - 0.5, -0.5)
    style.log_ticks(ax.xaxis)
    ax.set_xlabel("test error, %")
    # The data in one line, the number of labels in another.
    names = [",\n".join(runs.name.rsplit(", ", 1)) for runs in cells]
    ax.set_yticks(range(len(cells)), names, fontsize=9.5)
    ax.tick_params(axis="y", length=0)
    style.legend_below(figure, ncols=3)
    return figure


def _runs_text(runs):
    lost = f", {runs.lost.sum()} lost a class" if runs.lost.any() else ""
    epochs = f"{runs.last_epoch} of {runs.paper_epochs} epochs"
    return f"{count_text(len(runs.seeds))}{lost}, {epochs}"


def _draw_paper(ax, y, runs):
    error, spread = runs.paper.error, runs.paper.spread or 0.0
    if runs.paper_start:
        _draw_start(ax, y, runs.paper_start.error, error, "D", _PAPER)
    look = {"fmt": "D", "ms": 6, "lw": 1.5, "capsize": 3, **_PAPER}
    label = "the paper, ± standard deviation"
    ax.errorbar(error, y, xerr=spread, label=label, **look)


def _draw_ours(ax, y, runs):
    mean = runs.chosen.mean()
    _draw_start(ax, y, runs.errors[:, 0].mean(), mean, "o", _OURS)
    for error, lost in zip(runs.chosen, runs.lost, strict=True):
        look = {"marker": "o", "alpha": 0.5, "label": "a seed of ours"}
        if lost:
            look = {"marker": "X", "label": "one that lost a class"}
        ax.plot(error, y, ls="", ms=6.5, mew=0, **_OURS, **look)
    ax.plot(mean, y, "|", ms=13, mew=2, label="our mean", **_OURS)


def _draw_start(ax, y, before, after, marker, color):
    """The way from stage 1, a hollow mark, to the end of stage 2."""
    ax.plot([before, after], [y, y], lw=0.8, alpha=0.5, **color)
    look = {"mfc": "white", "ms": 5, "label": "after stage 1"}
    ax.plot(before, y, marker, **look, **color)


def _write_beside(ax, y, points, text):
    ax.annotate(
        text,
        (1, y),
        (points, 0),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        va="center",
        fontsize=9.5,
        annotation_clip=False,
    )
