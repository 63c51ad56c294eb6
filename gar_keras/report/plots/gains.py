"""Error before and after stage 2, a dot for each run."""

from dataclasses import dataclass

import numpy as np

from gar_keras.report.plots import style
from gar_keras.report.plots.labels import name_places

# Kinds of data, with their colours.
MNIST, ALTERED, OTHER = "MNIST", "MNIST, altered", "other data"
KINDS = {
    MNIST: style.LINES[0],
    ALTERED: style.LINES[2],
    OTHER: style.LINES[3],
}

# What became of a run, with its marker if that is not a dot.
KEPT = ""
BRIEF = "one epoch of stage 2"
LOST = "lost a class"
COLLAPSED = "at chance"

_EDGE = {"mec": "white", "mew": 0.6}
_LOOKS = {
    BRIEF: {"marker": "o", "ms": 5.5, "mfc": "white", "mew": 1.3},
    LOST: {"marker": "X", "ms": 8, "color": style.BAD, **_EDGE},
    COLLAPSED: {"marker": "s", "ms": 6.5, "color": style.INK, **_EDGE},
}


@dataclass(frozen=True)
class Point:
    """A run: its test errors after stage 1 and at the end, in percent.

    Attributes:
        kind: One of `KINDS`.
        name: Which data and labels these are, within the kind.
        before: Error after stage 1.
        after: Error after the last epoch of stage 2.
        fate: What became of it, e.g. `KEPT`.
    """

    kind: str
    name: str
    before: float
    after: float
    fate: str = KEPT

    @property
    def place(self):
        return self.before, self.after

    @property
    def look(self):
        """How it is drawn, for `ax.plot`."""
        dot = {"marker": "o", "ms": 6.5, "color": KINDS[self.kind], **_EDGE}
        if self.fate == BRIEF:
            dot["mec"] = dot["color"]
        return dot | _LOOKS.get(self.fate, {})


def before_and_after(points):
    """The error of each run after stage 2 against that before.

    Args:
        points: List of `Point`.

    Returns:
        A Matplotlib `Figure`.
    """
    figure = style.page_figure(6.6)
    ax = figure.subplots()
    style.clear_axes(ax)
    places = np.array([p.place for p in points])
    low, high = places.min() / 1.25, min(100.0, places.max() * 1.25)
    for p in points:
        ax.plot(*p.place, ls="", clip_on=False, zorder=3, **p.look)
    _draw_diagonal(ax, low, high)
    ax.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high))
    ax.set(
        xlabel="test error after stage 1, %",
        ylabel="test error at the end of stage 2, %",
    )
    for axis in (ax.xaxis, ax.yaxis):
        style.plain_ticks(axis)
    _explain(figure, points)
    diagonal = np.array([[low, low], [high, high]])
    name_places(figure, ax, _names(points), places, [diagonal])
    return figure


def _draw_diagonal(ax, low, high):
    ends = [low, high]
    ax.plot(ends, ends, color=style.INK, lw=1, zorder=1)
    ax.fill_between(ends, ends, high, color=style.BAD, alpha=0.06, lw=0)
    corners = {
        "worse after stage 2": (0.02, 0.98, "left", "top", style.BAD),
        "better after stage 2": (0.98, 0.02, "right", "bottom", style.INK),
    }
    for text, (x, y, ha, va, color) in corners.items():
        ax.text(
            x, y, text, transform=ax.transAxes, ha=ha, va=va, color=color,
            fontsize=11,
        )  # fmt: skip


def _explain(figure, points):
    """Says above the panel what colours and markers are."""
    from matplotlib.lines import Line2D

    looks = {kind: Point(kind, "", 1, 1).look for kind in KINDS}
    looks |= {fate: Point(MNIST, "", 1, 1, fate).look for fate in _LOOKS}
    shown = {p.kind for p in points} | {p.fate for p in points}
    handles = [
        Line2D([], [], ls="", label=text, **look)
        for text, look in looks.items()
        if text in shown
    ]
    style.legend_above(figure, handles)


def _names(points):
    """The names of the groups of runs, those with the fewest runs first."""
    groups = {}
    for p in points:
        groups.setdefault((p.kind, p.name), []).append(p.place)
    return [
        (name, places, KINDS[kind])
        for (kind, name), places in sorted(
            groups.items(), key=lambda item: len(item[1])
        )
    ]
