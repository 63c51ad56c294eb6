"""Our errors beside the paper's, a row for each cell of its tables."""

from dataclasses import dataclass

from matplotlib.lines import Line2D

from gar_keras.report.plots import style
from gar_keras.report.plots.curves import Runs, count_text
from gar_keras.report.published import Published

_OURS = style.LINES[0]
_PAPER = style.INK

# Of the two figures of a row, from its middle.
_ABOVE = 0.17


@dataclass(frozen=True)
class Cell:
    """A cell of the paper's tables.

    Attributes:
        before: The paper's `Published` error of stage 1, or `None`.
        runs: Our `Runs` in it, with the paper's error after stage 2.
    """

    before: Published | None
    runs: Runs

    @property
    def texts(self):
        """What stands beside it: the difference, then seeds and epochs."""
        runs = self.runs
        lost = f", {runs.lost.sum()} lost a class" if runs.lost.any() else ""
        return (
            f"{runs.chosen.mean() - runs.paper.error:+.2f}",
            f"{count_text(len(runs.seeds))}{lost}, "
            f"{runs.last_epoch} of {runs.paper_epochs} epochs",
        )


def ours_beside_paper(cells):
    """The errors before and after stage 2 in each cell, ours and the paper's.

    Each seed is a dot, a cross where it lost a class, and their mean a bar.

    Args:
        cells: List of `Cell`, from top to bottom.

    Returns:
        A Matplotlib `Figure`.
    """
    figure = style.page_figure(0.46 * len(cells) + 1.2)
    ax = figure.subplots()
    for y, cell in enumerate(cells):
        _draw_paper(ax, y - _ABOVE, cell)
        _draw_ours(ax, y + _ABOVE, cell.runs)
        _write_beside(ax, y, cell.texts, style.INK)
    _write_beside(ax, -0.75, ["ours - paper"], style.MUTED)
    style.clear_axes(ax)
    ax.spines["left"].set_visible(False)
    ax.grid(visible=False, axis="y")
    ax.set_xscale("log")
    ax.set_ylim(len(cells) - 0.5, -0.5)
    style.log_ticks(ax.xaxis)
    ax.set_xlabel("test error, %")
    # The data in one line, the number of labels in another.
    names = [",\n".join(c.runs.name.rsplit(", ", 1)) for c in cells]
    ax.set_yticks(range(len(cells)), names, fontsize=9.5)
    ax.tick_params(axis="y", length=0)
    _explain(figure)
    return figure


def _draw_paper(ax, y, cell):
    after = cell.runs.paper
    if cell.before:
        _draw_start(ax, y, cell.before.error, after.error, "D", _PAPER)
    ax.errorbar(
        after.error,
        y,
        xerr=after.spread or 0.0,
        color=_PAPER,
        marker="D",
        ms=6,
        lw=1.5,
        capsize=3,
        zorder=4,
    )


def _draw_ours(ax, y, runs):
    mean = runs.chosen.mean()
    _draw_start(ax, y, runs.errors[:, 0].mean(), mean, "o", _OURS)
    for error, lost in zip(runs.chosen, runs.lost, strict=True):
        marker, alpha = ("X", 1) if lost else ("o", 0.5)
        ax.plot(error, y, marker, color=_OURS, ms=6.5, mew=0, alpha=alpha)
    ax.plot(mean, y, "|", color=_OURS, ms=13, mew=2, zorder=4)


def _draw_start(ax, y, before, after, marker, color):
    """The way from stage 1, a hollow mark, to the end of stage 2."""
    ax.plot([before, after], [y, y], color=color, lw=0.8, alpha=0.5, zorder=1)
    ax.plot(before, y, marker, mfc="white", color=color, ms=5, mew=1)


def _write_beside(ax, y, texts, color):
    for points, text in zip((8, 48), texts, strict=False):
        ax.annotate(
            text,
            (1, y),
            (points, 0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            va="center",
            fontsize=9.5,
            color=color,
            annotation_clip=False,
        )


def _explain(figure):
    """Says above the panel what the marks are."""
    marks = {
        "the paper, ± standard deviation": ("D", _PAPER, _PAPER),
        "a seed of ours": ("o", _OURS, _OURS),
        "one that lost a class": ("X", _OURS, _OURS),
        "our mean": ("|", _OURS, _OURS),
        "after stage 1": ("o", style.MUTED, "white"),
    }
    handles = [
        Line2D([], [], ls="", marker=m, ms=6.5, color=c, mfc=fill, label=text)
        for text, (m, c, fill) in marks.items()
    ]
    figure.legend(
        handles=handles,
        loc="outside upper left",
        ncols=len(handles),
        frameon=False,
        fontsize=9,
        handletextpad=0.3,
        columnspacing=1.1,
    )
