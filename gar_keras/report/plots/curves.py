"""Test errors over the epochs, and over the minutes, of stage 2."""

from dataclasses import dataclass

import numpy as np
from matplotlib.lines import Line2D

from gar_keras.report.plots import style
from gar_keras.report.published import Published

# Up to the second of them the axis is linear: 0 has no logarithm.
_EPOCHS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
_MINUTES = (0, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)

# Ends of the lines that have no colour of their own.
_MARKERS = "sv^DPX*<>dph"


@dataclass(frozen=True)
class Runs:
    """The runs of one experiment, as pictures show them.

    Attributes:
        name: What a legend calls them.
        seeds: Their seeds.
        errors: Test errors in percent, `(seeds, 1 + epochs)`. That of epoch 0
            is of the end of stage 1; NaN where there is no stage 1.
        chosen: Those at the epochs chosen by validation, `(seeds,)`.
        lost: Whether a run lost a class, bool `(seeds,)`.
        minutes: Of stage 2, in the mean.
        paper: The paper's `Published` error, or `None`.
        paper_epochs: After so many epochs of stage 2.
    """

    name: str
    seeds: tuple[int, ...]
    errors: np.ndarray
    chosen: np.ndarray
    lost: np.ndarray
    minutes: float
    paper: Published | None = None
    paper_epochs: int | None = None

    @classmethod
    def of(cls, name, g, paper=None, paper_epochs=None):
        """From the runs of one experiment, as `read_runs` gives them."""
        errors = [curve["test_error"] for curve in g.curve]
        return cls(
            name,
            tuple(g.seed),
            100 * np.array(errors, float),
            g.chosen.to_numpy(),
            g.lost.eq(True).to_numpy(),
            g.seconds.mean() / 60,
            paper,
            paper_epochs,
        )

    @property
    def last_epoch(self):
        """The last epoch of stage 2."""
        return self.errors.shape[1] - 1

    @property
    def mean(self):
        """The mean of the runs that kept all classes, or else of all."""
        kept = self.errors[~self.lost]
        return (kept if len(kept) else self.errors).mean(axis=0)

    def describe(self):
        """Name, errors at the end and seeds, in lines for a legend."""
        kept = count_text(int(np.sum(~self.lost)) or len(self.seeds))
        end = running_mean(self.mean)[-1]
        lines = [
            self.name,
            f"{end:.2f} % around epoch {self.last_epoch}, {kept}",
        ]
        if 0 < self.lost.sum() < len(self.lost):
            seeds = ", ".join(str(s) for s in np.array(self.seeds)[self.lost])
            end = running_mean(self.errors[self.lost].mean(axis=0))[-1]
            lines.append(f"{end:.2f} %: seed {seeds}, lost a class (dashed)")
        return "\n".join(lines)


def count_text(seeds):
    """A number of seeds in words."""
    return "1 seed" if seeds == 1 else f"{seeds} seeds"


def running_mean(errors):
    """The mean over an eighth of the epochs around each, as far as there are.

    Args:
        errors: Array `(..., epochs)`.

    Example:

    >>> running_mean(np.array([9., 1., 2.])).tolist()
    [9.0, 1.0, 2.0]
    """
    epochs = range(errors.shape[-1])
    windows = [slice(k - k // 16, k + k // 16 + 1) for k in epochs]
    means = [errors[..., window].mean(axis=-1) for window in windows]
    return np.stack(means, axis=-1)


def learning_curves(columns, title="", longer=()):
    """The test error over the epochs of stage 2, beside the paper's.

    Each seed has a thin line, their mean a thick one: running means. A run
    that lost a class has a dashed line, and no part in the mean.

    Args:
        columns: List of `Runs`, one for each column of a table.
        title: What they were trained on.
        longer: List of `Runs` to draw in grey.

    Returns:
        A Matplotlib `Figure`.
    """
    figure = style.page_figure(5.4)
    ax, side = figure.subplots(1, 2, sharey=True, width_ratios=[8, 1])
    colors = [*style.LINES[: len(columns)], *[style.MUTED] * len(longer)]
    handles = []
    for runs, color in zip([*columns, *longer], colors, strict=True):
        _draw_seeds(ax, runs, color)
        handles.append(
            Line2D([], [], color=color, lw=1.8, label=runs.describe())
        )
    _draw_papers(side, columns)
    style.clear_axes(ax)
    ax.set_xlabel("epoch of stage 2 (0: end of stage 1)")
    ax.set_ylabel("test error, %")
    ax.set_title(title, loc="left", fontsize=11)
    _scale(ax, 1, _EPOCHS, max(r.last_epoch for r in [*columns, *longer]))
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=2,
        frameon=False,
        fontsize=9.5,
        title="thin: each seed; thick: their mean; both running means",
        title_fontsize=9.5,
    )
    return figure


def _draw_seeds(ax, runs, color):
    """Draws each run, and the mean of those that kept all classes."""
    epochs = np.arange(runs.last_epoch + 1)
    for errors, lost in zip(running_mean(runs.errors), runs.lost, strict=True):
        look = {"ls": "--", "lw": 1.2} if lost else {"lw": 0.6, "alpha": 0.5}
        ax.plot(epochs, errors, color=color, **look)
    if not runs.lost.all():
        ax.plot(epochs, running_mean(runs.mean), color=color, lw=1.8)


def _draw_papers(ax, columns):
    """Draws the paper's errors side by side, each with its epochs below."""
    shown = [(k, runs) for k, runs in enumerate(columns) if runs.paper]
    for k, runs in shown:
        ax.errorbar(
            k,
            runs.paper.error,
            runs.paper.spread or 0.0,
            color=style.LINES[k],
            marker="_",
            ms=10,
            mew=3,
            elinewidth=1.2,
        )
    style.clear_axes(ax)
    ax.spines["left"].set_visible(False)
    ax.tick_params(left=False, labelleft=False)
    ax.set_xticks([])
    ax.set_xlim(-0.7, len(columns) - 0.3)
    if shown:
        epochs = sorted({runs.paper_epochs for _, runs in shown})
        text = " or ".join(map(str, epochs))
        ax.set_xlabel(f"paper,\nepoch {text}", fontsize=9.5)


def error_over_time(methods, longer=(), title=""):
    """The test error of each method over the minutes of its stage 2.

    Longer runs may be of other machines: a thin line has as many minutes an
    epoch as the thick one of its method.

    Args:
        methods: List of `Runs` of as many epochs, GAR first.
        longer: List of `Runs` of the same names over more epochs, drawn thin.
        title: What they were trained on, and on what machine.

    Returns:
        A Matplotlib `Figure`.
    """
    figure = style.page_figure(5.6)
    ax = figure.subplots()
    best = sorted(methods[1:], key=lambda runs: runs.chosen.mean())
    order = [*methods[:1], *best]
    minutes = {runs.name: runs.minutes / runs.last_epoch for runs in order}
    looks = {runs.name: _look(place) for place, runs in enumerate(order)}
    for group, line in (
        (longer, {"lw": 0.9, "alpha": 0.8}), (order, {"lw": 2.2})
    ):  # fmt: skip
        for runs in group:
            times = minutes[runs.name] * np.arange(runs.last_epoch + 1)
            mean = running_mean(runs.errors.mean(axis=0))
            # What trains no network has no start, and so no line.
            ax.plot(times, mean, markevery=[-1], **looks[runs.name], **line)
    style.clear_axes(ax)
    ax.set_ylabel("test error, %")
    ax.set_xlabel("minutes of stage 2 (thin: longer runs, at the same pace)")
    ax.set_title(title, loc="left", fontsize=10)
    _scale(ax, _MINUTES[1], _MINUTES, ax.dataLim.x1)
    figure.legend(
        handles=[_entry(runs, longer, looks[runs.name]) for runs in order],
        loc="outside lower center",
        ncols=3,
        frameon=False,
        fontsize=9.5,
    )
    return figure


def _look(place):
    """Colour and marker of the first methods, grey and a marker of others."""
    if place < len(style.LINES):
        return {"color": style.LINES[place], "marker": "o", "ms": 6}
    marker = _MARKERS[place - len(style.LINES)]
    return {"color": style.MUTED, "marker": marker, "ms": 6}


def _entry(runs, longer, look):
    """A method in the legend, with its seeds, and longer runs below it."""
    thin = [r for r in longer if r.name == runs.name]
    lines = [f"{runs.name}, {count_text(len(runs.seeds))}"]
    for r in thin:
        lines.append(f"{r.last_epoch} epochs: {count_text(len(r.seeds))}")
    return Line2D([], [], lw=1.8, label="\n".join(lines), **look)


def _scale(ax, linear, ticks, last):
    """Axes of logarithms, that of epochs or minutes with a 0."""
    ax.set_yscale("log")
    ax.set_xscale("symlog", linthresh=linear, linscale=0.3)
    ax.set_xlim(0, 1.05 * last)
    style.log_ticks(ax.yaxis)
    style.fixed_ticks(ax.xaxis, [x for x in ticks if x <= last])
