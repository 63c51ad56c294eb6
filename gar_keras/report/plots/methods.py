"""Other methods: test error over the minutes of stage 2."""

from dataclasses import dataclass

import numpy as np

from gar_keras.methods import METHODS
from gar_keras.report.plots import style
from gar_keras.report.plots.curves import Curve
from gar_keras.report.plots.labels import name_places

# Methods in colour: GAR, and of the others the best ones.
_IN_COLOR = len(style.LINES)

# The last epoch is far worse than the chosen one above this multiple of it.
_FAR = 1.25

# Up to the first of them the axis is linear.
_MINUTES = (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


@dataclass(frozen=True)
class Course:
    """The errors of a method over the time of its stage 2.

    Attributes:
        curve: The `Curve` of its group.
        minutes: Of training, in the mean of the seeds, `(epochs,)`.
    """

    curve: Curve
    minutes: np.ndarray

    @classmethod
    def of(cls, g):
        """From a group of records."""
        curve = Curve.of(g)
        minutes = g.seconds("regularization") / 60
        return cls(curve, minutes * curve.epochs / curve.epochs[-1])

    @property
    def method(self):
        return self.curve.group.method

    @property
    def trains(self):
        """Whether it trains the network of stage 1."""
        return METHODS[self.method].network

    @property
    def chosen(self):
        """Error at the epochs chosen by validation, in percent."""
        return self.curve.group.error("chosen_error").mean

    @property
    def line(self):
        """Minutes and errors, `(epochs, 2)`."""
        return np.stack([self.minutes, self.curve.mean], axis=1)

    @property
    def end(self):
        """Minutes and error of the last epoch."""
        return self.line[-1]

    @property
    def ends_badly(self):
        """Whether the last epoch is far worse than the chosen one."""
        return self.curve.mean[-1] > _FAR * self.chosen


def error_over_time(groups):
    """The test error of each method over the minutes of its stage 2.

    Args:
        groups: Groups of records that differ in their method, and in the
            epochs of stage 2. Those that train a network come first.

    Returns:
        A Matplotlib `Figure`.
    """
    courses = [Course.of(g) for g in groups]
    colors = _colors(courses)
    figure = style.page_figure(5.2)
    ax = figure.subplots()
    style.clear_axes(ax)
    for course, color in zip(courses, colors, strict=True):
        _draw(ax, course, color)
    last = 1.1 * max(course.minutes[-1] for course in courses)
    start = courses[0].curve.mean[0]
    if courses[0].trains:
        _draw_start(ax, start)
    ax.set(xlabel="minutes of stage 2", ylabel="test error, %", yscale="log")
    ax.set_xscale("symlog", linthresh=_MINUTES[0], linscale=0.4)
    ax.set_xlim(0, last)
    style.plain_ticks(ax.yaxis)
    style.fixed_ticks(ax.xaxis, [0, *(x for x in _MINUTES if x <= last)])
    ax.set_title(_title(courses), loc="left", fontsize=10)
    _explain(figure, courses)
    names = [
        (_name(course, courses), [course.end], color)
        for course, color in zip(courses, colors, strict=True)
    ]
    ends = [course.end for course in courses]
    lines = [
        [(0, start), (last, start)],
        *(c.line for c in courses if c.trains),
    ]
    name_places(figure, ax, names, ends, lines)
    return figure


def _colors(courses):
    """A colour for GAR and for each of the best methods, grey for others."""
    order = sorted(courses, key=lambda c: (c.method != "gar", c.chosen))
    found = dict.fromkeys([c.method for c in order], style.MUTED)
    best = [c.method for c in order[:_IN_COLOR]]
    found |= zip(best, style.LINES, strict=False)
    return [found[course.method] for course in courses]


def _draw(ax, course, color):
    muted = color == style.MUTED
    width, order = (1.2, 2) if muted else (2.2, 3)
    if course.trains:
        ax.plot(*course.line.T, color=color, lw=width, zorder=order)
    fill = "white" if course.ends_badly else color
    ax.plot(*course.end, color=color, mfc=fill, zorder=order + 2, **_END)


_END = {"marker": "o", "ms": 6, "mew": 1.5}


def _draw_start(ax, start):
    """Draws a line where all methods begin."""
    ax.axhline(start, color=style.INK, lw=1, ls=":")
    ax.annotate(
        f"after stage 1: {start:.1f} %",
        (1, start),
        (-2, 3),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        ha="right",
        color=style.INK,
        fontsize=9.5,
    )


def _usual_seeds(courses):
    return max((c.curve for c in courses), key=lambda curve: curve.n).seeds


def _title(courses):
    g = courses[0].curve.group
    s = g.settings
    return (
        f"{g.data}, {s['num_labeled']} labels: mean of "
        f"{_usual_seeds(courses)}, {s['precision']}, {g.device_text()}"
    )


def _name(course, courses):
    """The name of a method, with its seeds where they are fewer."""
    title, seeds = METHODS[course.method].title, course.curve.seeds
    return title if seeds == _usual_seeds(courses) else f"{title} ({seeds})"


def _explain(figure, courses):
    """Says above the panel what a hollow end is, if there is one."""
    from matplotlib.lines import Line2D

    if not any(course.ends_badly for course in courses):
        return
    look = {"ls": "", "color": style.MUTED, **_END}
    text = "the last epoch is far worse than the one chosen by validation"
    handles = [
        Line2D([], [], label="end of the runs", **look),
        Line2D([], [], label=text, mfc="white", **look),
    ]
    style.legend_above(figure, handles)
