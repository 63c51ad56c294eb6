"""How a class is lost in the first epoch of stage 2, step by step."""

import tempfile
from pathlib import Path

import numpy as np

from gar_keras.experiments.settings import KEPT_IMAGES
from gar_keras.report.plots.style import (
    BAD,
    FAINT,
    LINES,
    new_figure,
    percent,
    wide_figure,
)
from gar_keras.utils import files

# Of the energy of all classes, where none is left.
FLOOR = 1e-5

FRAMES_PER_SECOND = 8
# Frames for which the last one stays.
PAUSE = 16

_MUTED = FAINT
_LOST = BAD
_TERM = LINES[0]
_OTHER = LINES[2]


def shares(record):
    """The share of each class in the energies `v`, by step, `(steps, n)`.

    Args:
        record: Record of a run whose first epoch was noted by step.
    """
    v = np.array(record["first_epoch"]["v"])
    return v / v.sum(axis=1, keepdims=True).clip(min=1e-30)


def anatomy(paper, cured):
    """Two runs from one start side by side, of which the first loses a class.

    A class whose share falls below `FLOOR` at some step is drawn in colour.

    Args:
        paper: Record of the paper's stage 2.
        cured: That of the same, clipped and with a warm-up.

    Returns:
        A Matplotlib `Figure`.
    """
    figure = wide_figure(10, 9)
    axes = figure.subplots(4, 2, sharex=True, sharey="row")
    lost = np.flatnonzero(shares(paper).min(axis=0) < FLOOR)
    runs = {"the paper's stage 2": paper, "clipped, with a warm-up": cured}
    for column, (text, record) in zip(axes.T, runs.items(), strict=True):
        column[0].set_title(f"{text}\n{_errors_text(record)}", fontsize=11)
        _draw_shares(column[0], record, lost)
        _draw_scale(column[1], record)
        _draw_terms(column[2], record)
        _draw_error(column[3], record)
        column[3].set(xscale="log", xlabel="step of the first epoch")
    axes[0, 0].set(yscale="log", ylim=(FLOOR, 1), ylabel="share of the energy")
    axes[1, 0].set(yscale="log", ylabel="scale")
    for axis in (axes[0, 0].yaxis, axes[1, 0].yaxis, axes[3, 0].xaxis):
        axis.set_major_formatter("{x:g}")
    axes[2, 0].set(ylim=(0, 1), ylabel="terms")
    axes[3, 0].set(
        ylim=(0, None), ylabel=f"error of {KEPT_IMAGES:,}\ntest images [%]"
    )
    settings = paper["experiment"]
    figure.suptitle(
        f"A class is lost: {paper['data']['title']}, "
        f"m_L = {settings['num_labeled']}, seed {paper['seed']}, restart "
        f"{settings['restart']}, {settings['pretrain_epochs']:,} epochs of "
        "stage 1",
        fontsize=12,
    )
    return figure


def animate(paper, cured, path):
    """Writes an animation of the same: the energies of the classes by step.

    Args:
        paper: Record of the paper's stage 2.
        cured: That of the same, clipped and with a warm-up.
        path: Path of the GIF.
    """
    from matplotlib.animation import FuncAnimation, PillowWriter

    runs = {"the paper's stage 2": paper, "clipped, with a warm-up": cured}
    figure = new_figure(8, 3.2)
    panels = [
        _Bars(ax, text, record)
        for ax, (text, record) in zip(
            figure.subplots(1, 2, sharey=True), runs.items(), strict=True
        )
    ]
    panels[0].ax.set_ylabel("share of the energy")
    frames = len(paper["first_epoch"]["step"])
    movie = FuncAnimation(
        figure,
        lambda k: [bars for panel in panels for bars in panel.show(k)],
        frames=[*range(frames), *[frames - 1] * PAUSE],
    )
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "first_epoch.gif"
        movie.save(made, PillowWriter(fps=FRAMES_PER_SECOND), dpi=80)
        content = made.read_bytes()
    files.write_atomically(path, lambda f: f.write(content), mode="wb")


class _Bars:
    """A panel of the animation: a bar for each class."""

    def __init__(self, ax, text, record):
        self.ax = ax
        self.text = text
        self.first = record["first_epoch"]
        self.shares = shares(record)
        n = self.shares.shape[1]
        lost = self.shares.min(axis=0) < FLOOR
        self.bars = ax.bar(
            range(n),
            self.shares[0],
            color=[_LOST if is_lost else _TERM for is_lost in lost],
        )
        ax.axhline(1 / n, color="0.6", lw=0.8, ls="--")
        ax.set(xticks=range(n), xlabel="class", ylim=(0, 3 / n))

    def show(self, k):
        """Draws the k-th of the steps noted."""
        for bar, share in zip(self.bars, self.shares[k], strict=True):
            bar.set_height(share)
        step = self.first["step"][k]
        error = np.interp(
            step, self.first["error_step"], self.first["test_error"]
        )
        wrong = f"{percent(error)} of {KEPT_IMAGES:,} test images wrong"
        self.ax.set_title(f"{self.text}\nstep {step}: {wrong}", fontsize=10)
        return self.bars


def _from_one(steps):
    """Steps counted from 1, for an axis of logarithms."""
    return np.array(steps) + 1


def _errors_text(record):
    result = record["result"]
    return (
        f"error of all test images: {100 * result['baseline_error']:.1f} → "
        f"{100 * result['last_error']:.1f} %"
    )


def _draw_shares(ax, record, lost):
    steps = _from_one(record["first_epoch"]["step"])
    for j, share in enumerate(shares(record).clip(min=FLOOR).T):
        is_lost = j in lost
        ax.plot(
            steps,
            share,
            color=_LOST if is_lost else _MUTED,
            lw=2 if is_lost else 1,
            zorder=3 if is_lost else 2,
            label=f"class {j}" if is_lost else None,
        )
    ax.plot([], [], color=_MUTED, label="other classes")
    ax.legend(frameon=False, fontsize=9, loc="lower left")


def _draw_scale(ax, record):
    first = record["first_epoch"]
    ax.plot(_from_one(first["step"]), first["top_logit"], color=_TERM)
    ax.plot(_from_one(first["step"]), first["gradient_norm"], color=_OTHER)
    names = {"largest logit, mean": _TERM, "gradient norm": _OTHER}
    _name_lines(ax, names, "upper right")


def _draw_terms(ax, record):
    first = record["first_epoch"]
    ax.plot(_from_one(first["step"]), first["balance"], color=_TERM)
    ax.plot(_from_one(first["step"]), first["affinity"], color=_OTHER)
    _name_lines(ax, {"balance": _TERM, "affinity": _OTHER}, "center left")


def _draw_error(ax, record):
    first = record["first_epoch"]
    errors = 100 * np.array(first["test_error"])
    ax.plot(
        _from_one(first["error_step"]), errors, color="black", marker="o", ms=3
    )


def _name_lines(ax, colors, loc):
    for text, color in colors.items():
        ax.plot([], [], color=color, label=text)
    ax.legend(frameon=False, fontsize=9, loc=loc)
