"""Learning curves of a table: test error over the epochs of stage 2."""

from dataclasses import dataclass

import numpy as np

from gar_keras.experiments.settings import PAPER
from gar_keras.report.plots import style
from gar_keras.report.published import column_of, published_error

# Epoch 0 has no logarithm: from 0 to 1 the axis is linear.
_EPOCHS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)

# Bars of the paper beside each other, as factors of their epoch.
_APART = (0.93, 1.07)


@dataclass(frozen=True)
class Curve:
    """The test errors of a group over the epochs of stage 2, in percent.

    Attributes:
        group: The `Group`.
        epochs: Array of the epochs, from 0, the end of stage 1.
        errors: Array `(seeds, epochs)`.
    """

    group: object
    epochs: np.ndarray
    errors: np.ndarray

    @classmethod
    def of(cls, g):
        """From a group of records."""
        curves = [r["regularization"]["curve"] for r in g.records]
        # Where there is no stage 1, there is no error of epoch 0.
        errors = 100 * np.array([c["test_error"] for c in curves], float)
        return cls(g, np.array(curves[0]["epoch"]), errors)

    @property
    def mean(self):
        """The mean over the seeds, `(epochs,)`."""
        return self.errors.mean(axis=0)

    @property
    def n(self):
        """Number of seeds."""
        return len(self.errors)

    @property
    def seeds(self):
        """Number of seeds in words."""
        return "1 seed" if self.n == 1 else f"{self.n} seeds"

    def smooth(self):
        """The mean over the seeds and over an eighth of the epochs around."""
        last = len(self.mean) - 1
        halves = [min(k // 16, last - k) for k in range(last + 1)]
        means = [
            self.mean[k - half : k + half + 1].mean()
            for k, half in enumerate(halves)
        ]
        return np.array(means)


def draw_curve(ax, xs, curve, color):
    """Draws a curve: the mean and the range of its seeds, or a single seed.

    Args:
        ax: Panel.
        xs: Where the epochs of the curve lie.
        curve: A `Curve`.
        color: Its colour.
    """
    if curve.n == 1:
        ax.plot(xs, curve.mean, color=color, lw=0.7, alpha=0.45)
        ax.plot(xs, curve.smooth(), color=color, lw=1.8, ls="--")
        return
    # Not the deviation: one seed that loses a class would take the lower end
    # of the band below 0, which an axis of logarithms does not have.
    low, high = curve.errors.min(axis=0), curve.errors.max(axis=0)
    ax.fill_between(xs, low, high, color=color, alpha=0.18, lw=0)
    ax.plot(xs, curve.mean, color=color, lw=1.8)


def learning_curves(groups):
    """The test error of some groups over the epochs, beside the paper's.

    Args:
        groups: List of `Group`, one for each column of a table.

    Returns:
        A Matplotlib `Figure`.
    """
    curves = [Curve.of(g) for g in groups]
    lines = list(zip(curves, style.LINES, strict=False))
    figure = style.page_figure(4.8)
    ax = figure.subplots()
    style.clear_axes(ax)
    for curve, color in lines:
        draw_curve(ax, curve.epochs, curve, color)
    for k, (curve, color) in enumerate(lines):
        _draw_published(ax, curve.group, color, _APART[k % 2])
    ax.set(xlabel="epoch of stage 2 (0: end of stage 1)", yscale="log")
    ax.set_ylabel("test error, %")
    ax.set_title(_data_in_all(groups), loc="left", fontsize=11)
    ax.set_xscale("symlog", linthresh=1, linscale=0.3)
    last = ax.dataLim.xmax
    ax.set_xlim(0, last * 1.1)
    style.plain_ticks(ax.yaxis)
    style.fixed_ticks(ax.xaxis, [x for x in _EPOCHS if x <= last])
    _explain(figure, curves)
    _name_ends(figure, ax, lines)
    return figure


def _data_in_all(groups):
    """The data of the groups, if they are the same, or nothing."""
    names = {g.data for g in groups}
    return names.pop() if len(names) == 1 else ""


def _published(g):
    """What the paper has in the column of a group, and after which epochs.

    Returns:
        `(published, epochs)`, or `None`.
    """
    column = column_of(g.records[0]["cell"])
    published = column and published_error(column.cell)
    return published and (published, PAPER[column.cell].epochs)


def _draw_published(ax, g, color, factor):
    found = _published(g)
    if found is None:
        return
    published, epochs = found
    ax.errorbar(
        factor * epochs,
        published.error,
        published.spread or 0.0,
        color=color,
        marker="_",
        ms=10,
        mew=3,
        elinewidth=1.2,
    )


def _explain(figure, curves):
    """Says above the panel what lines, bands and bars are."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    ink = {"color": style.INK, "lw": 1.8}
    handles = []
    if any(curve.n > 1 for curve in curves):
        handles = [
            Line2D([], [], label="mean of the seeds", **ink),
            Patch(color=style.INK, alpha=0.18, label="lowest to highest"),
        ]
    if any(curve.n == 1 for curve in curves):
        text = "1 seed, smoothed (thin: each epoch)"
        handles.append(Line2D([], [], ls="--", label=text, **ink))
    cells = {c.group.records[0]["cell"] for c in curves if _published(c.group)}
    if cells:
        own = all(column_of(cell).cell == cell for cell in cells)
        text = "the paper's" if own else "the paper's, on the original data"
        bar = Line2D([], [], marker="_", ms=10, mew=3, label=text, **ink)
        bar.set_linestyle("")
        handles.append(bar)
    style.legend_above(figure, handles)


def _name_ends(figure, ax, lines):
    """Names the curves to the right of the panel, where they do not touch."""
    alike = _data_in_all([curve.group for curve, _ in lines])
    texts = [_texts(curve, not alike) for curve, _ in lines]
    most = max(text.count("\n") for _, text in texts) + 1
    figure.draw_without_rendering()
    to_axes = (ax.transData - ax.transAxes).transform
    ends = [(c.epochs[-1], c.mean[-1]) for c, _ in lines]
    line_height = 13 / 72 * figure.dpi / ax.bbox.height
    places = style.spread(
        [to_axes(end)[1] for end in ends], (most + 1.3) * line_height
    )
    up = max(0.0, most * line_height - min(places))
    places = [y + up for y in places]
    for (_, color), (name, text), end, y in zip(
        lines, texts, ends, places, strict=True
    ):
        ax.annotate(
            name,
            end,
            (1.02, y),
            textcoords="axes fraction",
            color=color,
            weight="bold",
            va="bottom",
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": color,
                "lw": 0.8,
                "ls": ":",
                "shrinkA": 0,
                "shrinkB": 2,
                "relpos": (0, 0),
            },
        )
        ax.text(
            1.02, y, text, transform=ax.transAxes, va="top", fontsize=9,
            color=style.INK,
        )  # fmt: skip


def _texts(curve, with_data):
    """The name of a curve, and what is told of it in lines below."""
    g = curve.group
    name = f"{g.settings['num_labeled']:,} labels"
    lines = [f"{curve.mean[-1]:.2f} at epoch {curve.epochs[-1]}", curve.seeds]
    if with_data:
        lines.insert(0, g.data)
    found = _published(g)
    if found is not None:
        lines[-1] += f"; paper {found[0].error:.2f}"
    return name, "\n".join(lines)
