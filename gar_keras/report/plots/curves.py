"""Test errors over the epochs, and over the minutes, of stage 2."""

from dataclasses import dataclass

import numpy as np

from gar_keras.report.plots import style
from gar_keras.report.published import Published

# Up to the second of them the axis is linear: 0 has no logarithm.
_EPOCHS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
_MINUTES = (0, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)

# Colours and markers of methods: the first four, and then all others.
_LOOKS = (
    *({"color": color, "marker": "o", "ms": 6} for color in style.LINES),
    *({"color": style.MUTED, "marker": m, "ms": 6} for m in "sv^DPX*<>dph"),
)


@dataclass(frozen=True)
class Runs:
    """The runs of one experiment, as pictures show them; errors in percent.

    Attributes:
        name: What a legend calls them.
        seeds: Their seeds.
        errors: Test errors, `(seeds, 1 + epochs)`. That of epoch 0 is of the
            end of stage 1; NaN where there is no stage 1.
        chosen: Those at the epochs chosen by validation, `(seeds,)`.
        lost: Whether a run lost a class, bool `(seeds,)`.
        minutes: Of stage 2, in the mean.
        paper: The paper's `Published` error, or `None`.
        paper_epochs: After so many epochs of stage 2.
        paper_start: The paper's `Published` error after stage 1, or `None`.
    """

    name: str
    seeds: tuple[int, ...]
    errors: np.ndarray
    chosen: np.ndarray
    lost: np.ndarray
    minutes: float
    paper: Published | None = None
    paper_epochs: int | None = None
    paper_start: Published | None = None

    @classmethod
    def of(cls, name, g, paper=None, paper_epochs=None, paper_start=None):
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
            paper_start,
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
        """Name, error at the end and seeds, in lines for a legend."""
        kept = count_text(int(np.sum(~self.lost)) or len(self.seeds))
        end = f"{running_mean(self.mean)[-1]:.2f} %"
        text = f"{self.name}\n{end} around epoch {self.last_epoch}, {kept}"
        if self.lost.any() and not self.lost.all():
            seeds = ", ".join(str(s) for s in np.array(self.seeds)[self.lost])
            text += f"\ndashed: seed {seeds}, which lost a class"
        return text


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
    for runs, color in zip(columns, style.LINES, strict=False):
        _draw_seeds(ax, runs, color)
    for runs in longer:
        _draw_seeds(ax, runs, style.MUTED)
    _draw_papers(side, columns)
    style.clear_axes(ax)
    ax.set_xlabel("epoch of stage 2 (0: end of stage 1)")
    ax.set_title(title, loc="left", fontsize=11)
    _scale(ax, _EPOCHS)
    text = "thin: each seed; thick: their mean; both running means"
    style.legend_below(figure, ncols=2, title=text)
    return figure


def _draw_seeds(ax, runs, color):
    """Draws each run, and the mean of those that kept all classes."""
    for errors, lost in zip(running_mean(runs.errors), runs.lost, strict=True):
        look = {"ls": "--", "lw": 1.2} if lost else {"lw": 0.6, "alpha": 0.5}
        ax.plot(errors, color=color, **look)
    mean = running_mean(runs.mean)
    ax.plot(mean, color=color, lw=1.8, label=runs.describe())


def _draw_papers(ax, columns):
    """Draws the paper's errors side by side, with their epochs below."""
    look = {"marker": "_", "ms": 10, "mew": 3, "elinewidth": 1.2}
    shown = [(k, runs) for k, runs in enumerate(columns) if runs.paper]
    for k, runs in shown:
        error, spread = runs.paper.error, runs.paper.spread or 0.0
        ax.errorbar(k, error, spread, color=style.LINES[k], **look)
    style.clear_axes(ax)
    ax.spines["left"].set_visible(False)
    ax.tick_params(left=False, labelleft=False)
    ax.set_xticks([])
    ax.set_xlim(-0.7, len(columns) - 0.3)
    epochs = sorted({runs.paper_epochs for _, runs in shown})
    if epochs:
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
    for short, look in zip([*methods[:1], *best], _LOOKS, strict=False):
        longer_ones = [runs for runs in longer if runs.name == short.name]
        label = f"{short.name}, {count_text(len(short.seeds))}"
        for runs in longer_ones:
            seeds = count_text(len(runs.seeds))
            label += f"\n{runs.last_epoch} epochs: {seeds}"
        for runs in (short, *longer_ones):
            # What trains no network has no start, and so no line.
            epochs = np.arange(runs.last_epoch + 1)
            minutes = short.minutes / short.last_epoch * epochs
            mean = running_mean(runs.errors.mean(axis=0))
            line = {"lw": 2.2, "label": label} if runs is short else {"lw": 0.9}
            ax.plot(minutes, mean, markevery=[-1], **look, **line)
    style.clear_axes(ax)
    ax.set_xlabel("minutes of stage 2 (thin: longer runs, at the same pace)")
    ax.set_title(title, loc="left", fontsize=10)
    _scale(ax, _MINUTES)
    style.legend_below(figure, ncols=3)
    return figure


def _scale(ax, ticks):
    """Axes of logarithms, that of epochs or minutes with a 0."""
    last = ax.dataLim.x1
    ax.set_ylabel("test error, %")
    ax.set_yscale("log")
    ax.set_xscale("symlog", linthresh=ticks[1], linscale=0.3)
    ax.set_xlim(0, 1.05 * last)
    style.log_ticks(ax.yaxis)
    style.fixed_ticks(ax.xaxis, [x for x in ticks if x <= last])
