"""Finished runs with the logits that they kept, for Figures 1 and 2."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from reproduction import paths, records
from reproduction.report.plots import style
from reproduction.report.run_frame import read_runs

# The cell of the paper's tables that the figures are about.
CELL = "mnist-100"


class Run(NamedTuple):
    """A finished run with what it kept for the figures.

    Attributes:
        title: One line that says which run this is.
        labels: True class indices of the test images kept, int64 `(m,)`.
        snapshots: The rectified logits `B`, float32 `(m, n)`, by epoch of
            stage 2, in ascending order. Epoch 0 is the end of pretraining.
        curve: The curves of stage 2: lists by name, among them `"epoch"`.
    """

    title: str
    labels: np.ndarray
    snapshots: dict
    curve: dict


def load_run(path):
    """A `Run` from a record and the logits beside it."""
    record = records.read(path)
    kept = records.read_arrays(path, record)
    if kept is None or not kept.logits:
        raise records.RecordError(
            f"{path} has no logits beside it, which the figures show. Delete "
            "it to run it again."
        )
    e, curve = record["experiment"], record["regularization"]["curve"]
    title = (
        f"{record['data']['title']}, {e['num_labeled']} labels, seed "
        f"{record['seed']}, {e['pretrain_epochs']:,} epochs of pretraining, "
        f"{e['epochs']} of GAR"
    )
    snapshots = {epoch: np.maximum(Z, 0) for epoch, Z in kept.logits.items()}
    return Run(title, kept.logit_labels, snapshots, curve)


def choose_run(*results):
    """The path of the longest run in the first folder that has one.

    It is on MNIST with m_L = 100 and the paper's settings, of the lowest seed.
    """
    for folder in results:
        frame = read_runs(folder)
        if len(frame):
            frame = frame[(frame.cell == CELL) & (frame.differs == "")]
        if len(frame):
            longest = frame[frame.epochs == frame.epochs.max()]
            return Path(folder, longest.path[longest.seed.idxmin()])
    raise records.RecordError(
        f"no finished run of {CELL} in {results[0]}. This makes one: python "
        "scripts/table1.py --labels 100 --seeds 0"
    )


def draw(options, name, figure):
    """Draws a function of a `Run` as a PNG, with `commands.figure_parser`.

    Returns:
        `(run, record, output)`: the `Run` and the paths of its record and of
        the PNG, which has this `name` where the options give no other.
    """
    record = options.record or choose_run(options.results, paths.reference())
    run = load_run(record)
    output = options.output or options.results / name
    style.save(figure(run), output)
    print(f"{record}: {run.title}\nWritten: {output}")
    return run, Path(record), output
