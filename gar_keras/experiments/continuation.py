"""Runs that go on beyond their last epoch.

An epoch of GAR does not depend on how many there are, as long as neither the
rate nor its warm-up does: a run of 200 epochs is, after 60, what a run of 60
is in the end. So the state at the end can be kept, for a longer run to go on
from.
"""

import os
from dataclasses import replace
from pathlib import Path

from gar_keras.experiments.checkpoint import Checkpoint


def shorter_run(experiment, seed, results):
    """The kept end of the same run with the most epochs, up to its number.

    Args:
        experiment: An `Experiment`.
        seed: Seed of the run.
        results: Folder of the records.

    Returns:
        A `Checkpoint`, or `None` if there is none.
    """
    ends = _ends(experiment, seed, results)
    short = {e: replace(experiment, epochs=e) for e in ends}
    fit = [e for e, run in short.items() if run.can_be_extended]
    most = max((e for e in fit if e <= experiment.epochs), default=None)
    if most is None:
        return None
    return Checkpoint(ends[most], short[most].fingerprint(), seed)


def take_up(checkpoint, experiment, seed, results):
    """Gives a run that has no state yet the kept end of a shorter one.

    Args:
        checkpoint: The `Checkpoint` of the run.
        experiment: Its `Experiment`.
        seed: Its seed.
        results: Folder of the records.
    """
    shorter = shorter_run(experiment, seed, results)
    if shorter is None:
        return
    checkpoint.origin = shorter.path
    if checkpoint.path.exists():
        return
    # `None` if it is damaged, or if another process has just replaced it.
    end = shorter.load()
    if end is not None:
        progress, variables = end
        checkpoint.save(progress, **variables)


def keep_end(checkpoint, experiment, seed, results):
    """Keeps the state at the end of a run, in place of those of fewer epochs.

    The state of another epoch, or of none, is not kept.

    Args:
        checkpoint: The `Checkpoint` of the finished run.
        experiment: Its `Experiment`.
        seed: Its seed.
        results: Folder of the records.
    """
    saved = checkpoint.load()
    if saved is None:
        return
    with checkpoint.taken_up():
        epochs = saved[0]["regularization"]["curve"].get("epoch", [])
    if epochs[-1:] != [experiment.epochs]:
        return
    ends = _ends(experiment, seed, results)
    os.replace(checkpoint.path, _path(experiment, seed, results))
    for epochs, path in ends.items():
        if epochs < experiment.epochs:
            path.unlink(missing_ok=True)


def _ends(experiment, seed, results):
    """The kept ends of runs that differ in their epochs alone, by these."""
    path = _path(experiment, seed, results)
    stem = path.stem.rpartition("_")[0]
    found = {}
    for file in path.parent.glob(f"{stem}_*.npz"):
        epochs = file.stem.rpartition("_")[2]
        if epochs.isdecimal() and int(epochs):
            found[int(epochs)] = file
    return found


def _path(experiment, seed, results):
    alike = replace(experiment, epochs=1).fingerprint()
    name = f"end_seed{seed}_{alike}_{experiment.epochs}.npz"
    return Path(results) / ".checkpoints" / name
