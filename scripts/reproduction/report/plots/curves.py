"""Test errors over the epochs, and over the minutes, of stage 2.

Runs are rows of what `reproduction.report.read_runs` gives, of one experiment.
"""

import numpy as np
from matplotlib.figure import Figure

from reproduction.methods import METHODS
from reproduction.report.compared_methods import compare
from reproduction.report.plots import style
from reproduction.report.published import published_error
from reproduction.report.run_frame import (
    errors_of,
    hardware,
    largest,
    like,
    sound,
    task,
    which_seeds,
)
from reproduction.report.tables import runs_of_cell

# Up to the second of them the axis is linear: 0 has no logarithm.
_EPOCHS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
_MINUTES = (0, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)

# Of methods, with their colours.
_MARKERS = "osv^DPX*<>dp"


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


def mean_curve(g):
    """The running mean over the epochs of the mean over the seeds."""
    return running_mean(errors_of(g).mean(axis=0))


def count_text(g):
    """A number of seeds in words."""
    return "1 seed" if len(g) == 1 else f"{len(g)} seeds"


@style.styled
def learning_curves(paper, frame):
    """The test error over the epochs of stage 2 in a table of the paper.

    Each seed has a thin line, dashed where it lost a class, and their mean a
    thick one: running means. As in the tables, it is the mean of all seeds.

    Args:
        paper: A `Table`.
        frame: Runs.

    Returns:
        A Matplotlib `Figure`; `None` without a run.
    """
    columns = [
        g for column in paper.columns for g in runs_of_cell(frame, column)[:1]
    ]
    if not columns:
        return None
    title, *others = {g.title.iloc[0] for g in columns}
    figure = Figure((style.WIDTH, 5.4))
    ax, side = figure.subplots(1, 2, sharey=True, width_ratios=[8, 1])
    for k, g in enumerate(columns):
        color, error = style.LINES[k], published_error(g.cell.iloc[0])
        for errors, lost in zip(errors_of(g), g.lost.eq(True), strict=True):
            look = (
                {"ls": "--", "lw": 1.2} if lost else {"lw": 0.6, "alpha": 0.5}
            )
            ax.plot(running_mean(errors), color=color, **look)
        name = f"{g.num_labeled.iloc[0]:,} labels"
        label = f"{task(g) if others else name}\n{_end_in_words(g)}"
        look = {"color": color, "lw": 1.8}
        ax.plot(mean_curve(g), label=label, **look)
        if error:
            look = {"marker": "_", "ms": 10, "mew": 3, "elinewidth": 1.2}
            side.errorbar(k, error.mean, error.deviation, color=color, **look)
    side.spines["left"].set_visible(False)
    side.tick_params(left=False, labelleft=False)
    side.set(xticks=[], xlim=(-0.7, len(columns) - 0.3))
    side.set_xlabel("the paper", fontsize=9.5)
    side.set_visible(side.has_data())
    ax.set_xlabel("epoch of stage 2, log scale (0: end of stage 1)")
    ax.set_title("" if others else title, loc="left", fontsize=11)
    _scale(ax, _EPOCHS)
    what = "running means; thin: each seed, dashed if it lost a class"
    what += "; thick: the mean of all seeds"
    style.legend_below(figure, 2, what)
    return figure


def _end_in_words(g):
    """Where the mean ends, and what the runs that lost a class do to it."""
    mean = mean_curve(g)
    text = f"{mean[-1]:.2f} % around epoch {len(mean) - 1}, {count_text(g)}"
    lost = g[g.lost.eq(True)]
    if lost.empty:
        return text
    if len(lost) == len(g):
        return f"{text}\nlost a class: {which_seeds(lost)}"
    without = f"{mean_curve(sound(g))[-1]:.2f} % without {which_seeds(lost)}"
    return f"{text}\n{without}, which lost a class"


@style.styled
def error_over_time(frame):
    """The test error of each method over the minutes of its stage 2.

    Of the comparison with the most methods, thick lines are means of the runs
    on one machine, all seeds. Thin ones are of the most epochs of longer runs
    with the same settings, which may be of other machines: they have as many
    minutes an epoch as the thick one of the method, or as GAR's.

    Returns:
        A Matplotlib `Figure`; `None` if there is nothing to compare.
    """
    compared = compare(frame)
    if not compared:
        return None
    first, *_ = compared[0].values()
    e, machine = first.experiment.iloc[0], hardware(first)
    timed = {
        name: g for name, g in compared[0].items() if hardware(g) == machine
    }
    more = frame[frame.epochs > e.epochs]
    longer = {
        name: largest(like(more, e.with_method(name), ["epochs"]))
        for name in METHODS
    }
    longer = {name: g for name, g in longer.items() if len(g)}
    figure = Figure((style.WIDTH, 6.6))
    ax = figure.subplots()
    shown = longer | timed
    gar = next(iter(timed))
    best = sorted({*shown} - {gar}, key=lambda name: shown[name].chosen.mean())
    looks = zip(style.LINES, _MARKERS, strict=True)
    for name, (color, marker) in zip([gar, *best], looks, strict=False):
        paced = timed.get(name, first)
        minutes = paced.seconds.mean() / 60 / (errors_of(paced).shape[1] - 1)
        for runs, width in ((timed, 2.2), (longer, 0.9)):
            if name not in runs:
                continue
            g, label = runs[name], METHODS[name].title
            mean = mean_curve(g)
            # What trains no network has no start, and no epochs.
            if not np.isnan(mean[0]):
                label += f", {g.epochs.iloc[0]} epochs"
            label += f", {count_text(g)}"
            if g.lost.eq(True).any():
                label += f", {g.lost.eq(True).sum()} lost a class"
            if name not in timed:
                label += f", timed as {METHODS[gar].title}"
            ax.plot(
                minutes * np.arange(len(mean)),
                mean,
                color=color,
                marker=marker,
                markevery=[-1],
                lw=width,
                label=label,
            )
    ax.set_xlabel("minutes of stage 2, log scale (0: end of stage 1)")
    ax.set_title(f"{task(first)}, {machine}", loc="left", fontsize=10)
    _scale(ax, _MINUTES)
    thick = "running means of all seeds; thick: timed on this machine"
    thin = "thin: longer runs, an epoch as long as in the method's timed runs"
    style.legend_below(figure, 2, f"{thick};\n{thin}")
    return figure


def _scale(ax, ticks):
    """Axes of logarithms, that of epochs or minutes with a 0."""
    last = ax.dataLim.x1
    ax.set_ylabel("test error, %, log scale")
    ax.set_yscale("log")
    style.log_ticks(ax.yaxis)
    ax.set_xscale("symlog", linthresh=ticks[1], linscale=0.3)
    ax.set_xlim(0, 1.05 * last)
    shown = [x for x in ticks if x <= last]
    ax.set_xticks(shown, [f"{x:g}" for x in shown])
    ax.set_xticks([], minor=True)
