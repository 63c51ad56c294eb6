"""How a class is lost: the first epoch of stage 2 by step, from the records.

    python scripts/first_epoch.py

writes runs/first_epoch.png and runs/first_epoch.gif: two runs of the study
first-epoch from one initialization, with the authors' optimizer and with the
clip and warm-up of the default.
"""

import sys
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter

from reproduction import cli, paths, records
from reproduction.report.lost_classes import dead_outputs
from reproduction.report.plots import style
from reproduction.report.plots.results import title_of
from reproduction.studies import STUDIES

ARMS = {
    "the authors' optimizer": "the paper's stage 2",
    "clip and warm-up, as by default": "both, the rate over 100 steps",
}
# Of the energy of all classes, where none is left.
FLOOR = 1e-5
FRAMES_PER_SECOND = 8
# Frames for which the last one stays.
PAUSE = 16


@dataclass(frozen=True)
class Options:
    """Options of this script."""

    seed: Literal[0, 1, 2] = 2
    """Seed of the runs."""
    output: cli.Folder = field(default_factory=paths.own)
    """Folder of the pictures."""

    def __post_init__(self):
        cli.check_folder("--output", self.output)


def noted_runs(folder, seed):
    """The records of a seed by the names of `ARMS`."""
    arms = STUDIES["first-epoch"].arms
    found = {}
    for name, row in ARMS.items():
        arm = arms[f"{row}, after 2000 epochs of stage 1"]
        arm = replace(arm, precision="bfloat16")
        path = paths.path_of(arm, seed, folder)
        found[name] = records.read(path)
        if not found[name].get("first_epoch"):
            raise ValueError(
                f"{path} is of a version that does not note the first epoch by "
                "step. The pictures are of the records that the project came "
                "with"
            )
    return found


def shares(record):
    """The share of each class in the energies `v`, by step, `(steps, n)`."""
    v = np.array(record["first_epoch"]["v"])
    return v / v.sum(axis=1, keepdims=True).clip(min=1e-30)


def picture(found):
    """The energies of the classes, and the scale of the logits, by step."""
    figure = style.page_figure(6.4, 10)
    axes = figure.subplots(2, 2, sharex=True, sharey="row")
    dead = dead_in(found)
    columns = zip(axes.T, found.items(), strict=True)
    for (above, below), (name, record) in columns:
        result, noted = record["result"], record["first_epoch"]
        errors = [result["baseline_error"], result["last_error"]]
        text = " → ".join(map(style.percent, errors))
        heading = f"{name}: {fate_of(record)}"
        above.set_title(f"{heading}\ntest error {text}", fontsize=11)
        steps = np.array(noted["step"]) + 1
        for j, share in enumerate(shares(record).clip(min=FLOOR).T):
            look = {"color": "0.75", "lw": 1, "label": "the other classes"}
            if j in dead:
                look = {"color": style.BAD, "lw": 2, "zorder": 3}
                look["label"] = f"class {j}"
            above.plot(steps, share, **look)
        for key, label, color in (
            ("top_logit", "largest logit of an image, mean", style.LINES[0]),
            ("gradient_norm", "gradient's norm, unclipped", style.LINES[2]),
        ):
            below.plot(steps, noted[key], label=label, color=color)
        below.set_xlabel("step of the first epoch of GAR, log scale")
    axes[0, 0].set(yscale="log", ylim=(FLOOR, 1))
    axes[0, 0].set_ylabel("share of the energy, log scale")
    axes[1, 0].set(xscale="log", yscale="log")
    axes[1, 0].set_ylabel("logit; norm, log scale")
    for axis in (axes[0, 0].yaxis, axes[1, 0].yaxis, axes[1, 0].xaxis):
        axis.set_major_formatter(lambda x, _: f"{x:g}" if x > FLOOR else "0")
    for ax in axes.flat:
        style.clear_axes(ax)
    style.legend_below(figure, 4)
    figure.suptitle(
        f"How a class is lost in the first epoch of GAR: {title_of(record)}\n"
        "energy of a class: the sum of its squared outputs $B$ in a batch",
        fontsize=12,
    )
    return figure


def fate_of(record):
    """Which classes have no energy in the last step of the epoch, in words."""
    dead = dead_outputs(record["first_epoch"]["v"][-1:])
    lost = ", ".join(map(str, sorted(dead)))
    return f"class {lost} is lost" if dead else "all classes are kept"


def dead_in(found):
    """The classes that any of the runs leaves without energy in some step."""
    noted = [record["first_epoch"]["v"] for record in found.values()]
    return set().union(*map(dead_outputs, noted))


def animation(found):
    """The energies as bars, step by step, and the error of the images kept."""
    figure = style.page_figure(3.2, 8)
    axes = figure.subplots(1, 2, sharey=True)
    axes[0].set_ylabel("share of the energy")
    dead, panels = dead_in(found), []
    for ax, (name, record) in zip(axes, found.items(), strict=True):
        energy = shares(record)
        n = energy.shape[1]
        colors = [style.BAD if j in dead else style.LINES[0] for j in range(n)]
        bars = ax.bar(range(n), energy[0], color=colors)
        ax.axhline(1 / n, color="0.6", lw=0.8, ls="--")
        ax.set(xticks=range(n), xlabel="class", ylim=(0, 3 / n))
        panels.append((ax, name, bars, energy, record["first_epoch"]))

    def show(k):
        for ax, name, bars, energy, noted in panels:
            for bar, share in zip(bars, energy[k], strict=True):
                bar.set_height(share)
            step = noted["step"][k]
            error = np.interp(step, noted["error_step"], noted["test_error"])
            text = f"{style.percent(error)} of 2,000 test images wrong"
            ax.set_title(f"{name}\nstep {step}: {text}", fontsize=10)

    last = len(panels[0][3]) - 1
    return FuncAnimation(figure, show, [*range(last), *[last] * PAUSE])


def main(options):
    """Draws the picture and the animation."""
    found = noted_runs(paths.reference(), options.seed)
    style.save(picture(found), options.output / "first_epoch.png")
    movie, writer = animation(found), PillowWriter(fps=FRAMES_PER_SECOND)
    movie.save(options.output / "first_epoch.gif", writer, dpi=80)
    print(f"Written: {options.output / 'first_epoch'}.png and .gif")


if __name__ == "__main__":
    sys.exit(cli.run(main, cli.parse(Options, __doc__)))
