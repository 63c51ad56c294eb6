"""Our figures beside the paper's, a row for each cell of its tables."""

from dataclasses import dataclass

import numpy as np

from gar_keras.report.estimates import Estimate
from gar_keras.report.plots import style
from gar_keras.report.published import Published

_OURS = style.LINES[0]
_PAPER = style.INK

# Of the two figures of a row, from its middle.
_ABOVE = 0.17


@dataclass(frozen=True)
class Cell:
    """A cell of the paper's tables.

    Attributes:
        name: Data and number of labels.
        published: `(before, after)`, the paper's figures of stage 1, which
            may be `None`, and of GAR.
        ours: Our estimates likewise, or `None` where nothing was run.
        runs: What stands beside it: seeds, epochs and the like.
    """

    name: str
    published: tuple[Published | None, Published]
    ours: tuple[Estimate, Estimate] | None
    runs: str

    @property
    def difference(self):
        """Ours less the paper's, in points, as text."""
        if self.ours is None:
            return ""
        return f"{self.ours[1].mean - self.published[1].error:+.2f}"


def ours_beside_paper(cells):
    """The errors before and after stage 2 in each cell, ours and the paper's.

    Args:
        cells: List of `Cell`, from top to bottom.

    Returns:
        A Matplotlib `Figure`.
    """
    figure = style.page_figure(0.42 * len(cells) + 1.2)
    ax = figure.subplots()
    style.clear_axes(ax)
    ax.spines["left"].set_visible(False)
    ax.grid(visible=False, axis="y")
    ax.set_xscale("log")
    ax.set_xlim(*_limits(cells))
    ax.set_ylim(len(cells) - 0.5, -0.5)
    style.plain_ticks(ax.xaxis)
    ax.set_xlabel("test error, %")
    names = [_in_lines(cell.name) for cell in cells]
    ax.set_yticks(range(len(cells)), names, fontsize=9.5)
    ax.tick_params(axis="y", length=0)
    for y, cell in enumerate(cells):
        _draw_paper(ax, y - _ABOVE, cell)
        _draw_ours(ax, y + _ABOVE, cell)
        _write_beside(ax, y, cell)
    _write_beside(ax, -0.75, None)
    _explain(figure)
    return figure


def _in_lines(name):
    """A name with its last part in a line of its own, if it is long."""
    start, _, end = name.rpartition(", ")
    return f"{start},\n{end}" if len(name) > 24 else name


def _limits(cells):
    """Ends of the axis: all figures are inside, intervals need not be."""
    errors = []
    for cell in cells:
        for p in filter(None, cell.published):
            spread = p.spread or 0.0
            errors += [p.error - spread, p.error + spread]
        errors += [estimate.mean for estimate in cell.ours or ()]
    return min(errors) / 1.12, max(errors) * 1.25


def _draw_paper(ax, y, cell):
    before, after = cell.published
    if before:
        _join(ax, y, before.error, after.error, _PAPER)
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


def _draw_ours(ax, y, cell):
    if cell.ours is None:
        return
    before, after = cell.ours
    _join(ax, y, before.mean, after.mean, _OURS)
    interval = after.interval()
    if interval is not None:
        _draw_interval(ax, y, interval)
    ax.plot(after.mean, y, "o", color=_OURS, ms=7, zorder=4)


def _draw_interval(ax, y, interval):
    """An interval, with an arrow where it goes on beyond the panel."""
    low, high = ax.get_xlim()
    ends = np.clip(interval, low, high)
    ax.plot(ends, [y, y], color=_OURS, lw=2, solid_capstyle="butt", zorder=3)
    for end, true, arrow in zip(ends, interval, "<>", strict=True):
        marker = "|" if end == true else arrow
        ax.plot(end, y, marker, color=_OURS, ms=7, mew=1.5, clip_on=False)


def _join(ax, y, before, after, color):
    """The way from stage 1, a hollow mark, to the end of stage 2."""
    ax.plot([before, after], [y, y], color=color, lw=0.8, alpha=0.5, zorder=1)
    ax.plot(
        before,
        y,
        "o" if color == _OURS else "D",
        mfc="white",
        color=color,
        ms=5,
        mew=1,
        zorder=2,
    )


def _write_beside(ax, y, cell):
    texts = (cell.difference, cell.runs) if cell else ("ours - paper", "")
    muted = cell is not None and cell.ours is None
    for points, text in zip((8, 48), texts, strict=True):
        ax.annotate(
            text,
            (1, y),
            (points, 0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            va="center",
            fontsize=9.5 if cell else 9,
            color=style.MUTED if muted or cell is None else style.INK,
            annotation_clip=False,
        )


def _explain(figure):
    """Says above the panel what marks and bars are."""
    from matplotlib.lines import Line2D

    marks = {
        "the paper, ± standard deviation": ("D", _PAPER, _PAPER),
        "ours, with 95 % interval": ("o", _OURS, _OURS),
        "hollow: after stage 1": ("o", style.MUTED, "white"),
    }
    handles = [
        Line2D([], [], ls="", marker=m, ms=6.5, color=c, mfc=fill, label=text)
        for text, (m, c, fill) in marks.items()
    ]
    style.legend_above(figure, handles)
