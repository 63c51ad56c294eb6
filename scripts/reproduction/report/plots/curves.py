"""Test errors over the epochs, and over the minutes, of stage 2.

Runs are rows of what `reproduction.report.read_runs` gives, of one experiment.
"""

import numpy as np

from reproduction.report.plots import style
from reproduction.report.published import published_error
from reproduction.report.run_frame import without_lost

# Up to the second of them the axis is linear: 0 has no logarithm.
_EPOCHS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
_MINUTES = (0, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)

# Colours and markers of methods: the first four, and then all others.
_LOOKS = (
    *({"color": color, "marker": "o", "ms": 6} for color in style.LINES),
    *({"color": style.MUTED, "marker": m, "ms": 6} for m in "sv^DPX*<>dph"),
)


def errors_of(g):
    """Test errors in percent, `(seeds, 1 + epochs)`.

    That of epoch 0 is of the end of stage 1; NaN where there is no stage 1.
    """
    return 100 * np.array([curve["test_error"] for curve in g.curve], float)


def count_text(g):
    """A number of seeds in words."""
    return "1 seed" if len(g) == 1 else f"{len(g)} seeds"


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


def learning_curves(columns, title=""):
    """The test error over the epochs of stage 2, beside the paper's.

    Each seed has a thin line, their mean a thick one: running means. A run
    that lost a class has a dashed line, and no part in the mean.

    Args:
        columns: Runs of each column of a table, by what a legend calls them.
        title: What they were trained on.

    Returns:
        A Matplotlib `Figure`.
    """
    figure = style.page_figure(5.4)
    ax, side = figure.subplots(1, 2, sharey=True, width_ratios=[8, 1])
    for k, (name, g) in enumerate(columns.items()):
        color, paper = style.LINES[k], published_error(g.cell.iloc[0])
        _draw_seeds(ax, name, g, color)
        if paper:
            look = {"marker": "_", "ms": 10, "mew": 3, "elinewidth": 1.2}
            side.errorbar(k, paper.mean, paper.deviation, color=color, **look)
    style.clear_axes(side)
    side.spines["left"].set_visible(False)
    side.tick_params(left=False, labelleft=False)
    side.set(xticks=[], xlim=(-0.7, len(columns) - 0.3))
    side.set_visible(side.has_data())
    side.set_xlabel("the paper", fontsize=9.5)
    style.clear_axes(ax)
    ax.set_xlabel("epoch of stage 2 (0: end of stage 1)")
    ax.set_title(title, loc="left", fontsize=11)
    _scale(ax, _EPOCHS)
    style.legend_below(figure, 2, "running means; thin: each seed, thick: all")
    return figure


def _draw_seeds(ax, name, g, color):
    """Draws each run, and the mean of those that kept all classes."""
    for errors, lost in zip(errors_of(g), g.lost.eq(True), strict=True):
        look = {"ls": "--", "lw": 1.2} if lost else {"lw": 0.6, "alpha": 0.5}
        ax.plot(running_mean(errors), color=color, **look)
    sound = without_lost(g)
    kept = sound if len(sound) else g
    mean = running_mean(errors_of(kept).mean(axis=0))
    end = f"{mean[-1]:.2f} % around epoch {len(mean) - 1}, {count_text(kept)}"
    label = f"{name}\n{end}"
    if len(kept) < len(g):
        seeds = ", ".join(map(str, g.seed[g.lost.eq(True)]))
        label += f"\ndashed: seed {seeds}, which lost a class"
    ax.plot(mean, color=color, lw=1.8, label=label)


def error_over_time(methods, title=""):
    """The test error of each method over the minutes of its stage 2.

    Longer runs may be of other machines: a thin line has as many minutes an
    epoch as the thick one of its method.

    Args:
        methods: By name, GAR first, a list: the runs of as many epochs as the
            others', drawn thick, and any longer ones.
        title: What they were trained on, and on what machine.

    Returns:
        A Matplotlib `Figure`.
    """
    figure = style.page_figure(5.6)
    ax = figure.subplots()
    gar, *others = methods
    best = sorted(others, key=lambda name: methods[name][0].chosen.mean())
    for name, look in zip([gar, *best], _LOOKS, strict=False):
        short, *longer = methods[name]
        lines = [f"{g.epochs.iloc[0]} epochs: {count_text(g)}" for g in longer]
        label = "\n".join([f"{name}, {count_text(short)}", *lines])
        pace = short.seconds.mean() / 60 / (errors_of(short).shape[1] - 1)
        for g in methods[name]:
            # What trains no network has no start, and so no line.
            mean = running_mean(errors_of(g).mean(axis=0))
            minutes = pace * np.arange(len(mean))
            line = {"lw": 2.2, "label": label} if g is short else {"lw": 0.9}
            ax.plot(minutes, mean, markevery=[-1], **look, **line)
    style.clear_axes(ax)
    ax.set_xlabel("minutes of stage 2 (running means; thin: longer runs)")
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
