"""Runs of the authors' 200 epochs, beside what shorter ones said of them."""

from functools import partial

import numpy as np
import pandas as pd

from reproduction.report import run_frame, tables
from reproduction.report.estimates import MISSING
from reproduction.report.plots.curves import errors_of
from reproduction.report.published import TABLE_1, published_error
from reproduction.settings import Experiment

# Epochs of stage 2 in the authors' code.
EPOCHS = Experiment.epochs


def long_runs(frame):
    """A table in Markdown: what was said of 200 epochs, and what came out.

    Args:
        frame: Runs.

    Returns:
        A row for each experiment of 200 epochs in a column of Table 1: what a
        line through shorter runs that lost no class says, the errors that came
        out, and what they cost. Beside the line stand the errors of those
        runs that lost no class either.
    """
    sound = run_frame.sound(frame)
    # Of fewer epochs a line says little.
    shorter = sound[sound.epochs.between(run_frame.LATE, EPOCHS - 1)]

    def of_shorter(cell):
        def of_cell(g):
            found = tables.largest(shorter, g.cell.iloc[0])
            return cell(found) if len(found) else MISSING

        return of_cell

    columns = {
        "shorter runs": of_shorter(
            lambda g: tables.linked(run_frame.epochs(g), g)
        ),
        f"their line at {EPOCHS} (of each seed)": of_shorter(lines),
        "epochs 51 to 60": partial(mean_error, first=51, last=60),
        "91 to 100": partial(mean_error, first=91, last=100),
        "181 to 200": partial(mean_error, first=181, last=200),
        "last epoch": tables.figure("last"),
        "chosen epoch": tables.figure("chosen"),
        "lost a class": tables.lost,
        "seeds": run_frame.seeds,
        "hours of stage 2": lambda g: f"{hours(g):.1f}",
        "made on": run_frame.hardware,
        "the paper": lambda g: published_error(g.cell.iloc[0]).text(),
    }
    whole = frame[frame.epochs == EPOCHS]
    rows = [
        tables.table({f"{g.num_labeled.iloc[0]:,} labels": g}, columns)
        for column in TABLE_1.columns
        for g in tables.experiments(whole, column.cell)
    ]
    return tables.markdown(pd.concat(rows)) if rows else ""


def mean_error(g, first, last):
    """The mean test error over some epochs where no class is lost, percent."""
    sound = run_frame.sound(g)
    if sound.empty:
        return MISSING
    return f"{errors_of(sound)[:, first : last + 1].mean():.2f}"


def line(g):
    """What a straight line through the errors of some runs says of 200 epochs.

    Both axes are logarithmic. It is a least-squares line through their mean
    error, over the last three quarters of the epochs.
    """
    mean = errors_of(g).mean(axis=0)
    epochs = np.arange(len(mean))[len(mean) // 4 :]
    slope, start = np.polyfit(np.log(epochs), np.log(mean[epochs]), 1)
    return np.exp(start + slope * np.log(EPOCHS))


def lines(g):
    """The line of some runs, and the least and the most of single ones."""
    single = [line(g.iloc[[i]]) for i in range(len(g))]
    return f"{line(g):.2f} ({min(single):.2f} to {max(single):.2f})"


def hours(g):
    """Mean hours of stage 2 of some runs.

    Where other work is beside a run, some epochs take many times as long as
    the others: each counts as the median of its run.
    """
    seconds = [np.median(curve["seconds"][1:]) for curve in g.curve]
    return EPOCHS * np.mean(seconds) / 3600
