"""Runs of the authors' 200 epochs, and what shorter ones foretold."""

import numpy as np
import pandas as pd

from reproduction.report import run_frame, tables
from reproduction.report.estimates import MISSING
from reproduction.report.published import TABLE_1, published_error
from reproduction.report.run_frame import errors_of
from reproduction.settings import Experiment

# Epochs of stage 2 in the authors' code.
EPOCHS = Experiment.epochs


def long_runs(frame):
    """A table in Markdown: what was foretold of 200 epochs, and what came out.

    Args:
        frame: Runs.

    Returns:
        A row for each experiment of 200 epochs in a column of Table 1: what a
        line through shorter runs that lost no class says, the errors that came
        out, and what they cost. The mean errors are of those runs that lost no
        class either.
    """
    sound = run_frame.sound(frame)
    # Of fewer epochs a line says little.
    shorter = sound[sound.epochs.between(run_frame.LATE, EPOCHS - 1)]
    whole = frame[frame.epochs == EPOCHS]
    rows = {}
    for column in TABLE_1.columns:
        of_shorter = run_frame.largest(tables.in_cell(shorter, column.cell))
        short, foretold = MISSING, MISSING
        if len(of_shorter):
            short = run_frame.linked(run_frame.epochs(of_shorter), of_shorter)
            single = [
                line(of_shorter[i : i + 1]) for i in range(len(of_shorter))
            ]
            foretold = f"{line(of_shorter):.2f} "
            foretold += f"({min(single):.2f} to {max(single):.2f})"
        for g in run_frame.experiments(tables.in_cell(whole, column.cell)):
            # Where other work runs at the same time, some epochs take many
            # times as long as the others: each counts as the median of its run.
            seconds = [np.median(curve["seconds"][1:]) for curve in g.curve]
            name = f"{g.num_labeled.iloc[0]:,} labels"
            rows[run_frame.linked(name, g)] = {
                "shorter runs": short,
                f"their line at {EPOCHS} (of each seed)": foretold,
                "epochs 51 to 60": mean_error(g, 51, 60),
                "91 to 100": mean_error(g, 91, 100),
                "181 to 200": mean_error(g, 181, 200),
                "last epoch": tables.figure("last")(g),
                "chosen epoch": tables.figure("chosen")(g),
                "lost a class": tables.lost(g),
                "seeds": run_frame.seeds(g),
                "hours of stage 2": f"{EPOCHS * np.mean(seconds) / 3600:.1f}",
                "made on": run_frame.hardware(g),
                "the paper": published_error(column.cell).text(),
            }
    return tables.markdown(pd.DataFrame.from_dict(rows, "index"))


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
