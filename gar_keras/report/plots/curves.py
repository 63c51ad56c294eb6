"""Learning curves of all seeds, with affinity and balance."""

import statistics
import textwrap

from gar_keras.report.plots.style import new_figure
from gar_keras.report.plots.style import save
from gar_keras.report.published import published_error


def plot_curves(groups, title, path):
    """Draws error, affinity and balance over the epochs, all seeds.

    Each seed is a thin line, their mean a thick one. Dots are the seeds' test
    errors at the epoch chosen by validation, the dashed line is the paper's.

    Args:
        groups: List of `Group`, a column of panels for each.
        title: Title of the picture.
        path: Where to write the PNG.
    """
    figure = new_figure(4.2 * len(groups) + 1, 8)
    figure.suptitle(textwrap.fill(title, 50 * len(groups)))
    panels = figure.subplots(
        3, len(groups), squeeze=False, sharex="col", height_ratios=(2, 1, 1)
    )
    for g, column in zip(groups, panels.T, strict=True):
        _draw_group(g, *column)
    save(figure, path)


def _draw_group(g, error, affinity, balance):
    from matplotlib.ticker import LogLocator
    from matplotlib.ticker import NullFormatter

    error.set_title(
        f"{g.data}, m_L = {g.settings['num_labeled']} (n = {len(g.records)})",
        fontsize=10,
    )
    error.set(ylabel="error, %", yscale="log")
    error.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    error.yaxis.set_major_formatter("{x:g}")
    error.yaxis.set_minor_formatter(NullFormatter())
    affinity.set(ylabel="affinity α(B)", yscale="log")
    balance.set(ylabel="balance β(B)", xlabel="epoch of stage 2")
    # Validation errors are noisy: the test errors go on top of them.
    _draw_seeds(error, g, "val_error", "validation", "tab:orange", 0.2)
    _draw_seeds(error, g, "test_error", "test", "tab:blue", 0.6)
    _draw_chosen(error, g)
    _draw_seeds(affinity, g, "affinity", None, "tab:blue", 0.6)
    _draw_seeds(balance, g, "balance", None, "tab:blue", 0.6)
    error.legend(fontsize=8, loc="best")
    for panel in (error, affinity, balance):
        panel.grid(alpha=0.3)
        panel.xaxis.get_major_locator().set_params(integer=True)


def _draw_seeds(panel, g, name, label, color, alpha):
    """The curves of all seeds, and their mean with the label."""
    curves = [r["regularization"]["curve"] for r in g.records]
    # Epoch 0, after pretraining, has errors alone.
    first = 0 if curves[0][name][0] is not None else 1
    percent = 100 if name.endswith("error") else 1
    epochs = curves[0]["epoch"][first:]
    seeds = [[percent * y for y in curve[name][first:]] for curve in curves]
    # A lone epoch is a point, which a line does not show.
    style = {"color": color, "marker": "." if len(epochs) == 1 else None}
    if len(seeds) > 1:
        for ys in seeds:
            panel.plot(epochs, ys, lw=0.5, alpha=alpha, **style)
        label = label and f"{label}, mean"
    means = [statistics.mean(ys) for ys in zip(*seeds, strict=True)]
    panel.plot(epochs, means, lw=1.5, label=label, **style)


def _draw_chosen(panel, g):
    """The chosen epochs' test error, and the paper's where it has one."""
    results = [r["result"] for r in g.records]
    panel.plot(
        [r["chosen_epoch"] for r in results],
        [100 * r["chosen_error"] for r in results],
        "o",
        color="black",
        ms=3,
        zorder=3,
        label=f"test, chosen by validation: {g.error('chosen_error')}",
    )
    published = published_error(g.records[0]["cell"])
    if published is not None:
        panel.axhline(
            published.error,
            color="black",
            ls="--",
            lw=1,
            label=f"paper: {published}",
        )
