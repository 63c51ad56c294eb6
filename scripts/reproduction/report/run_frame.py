"""The run records of a folder as one DataFrame, a row for each run."""

import posixpath

import numpy as np
import pandas as pd

from reproduction import records
from reproduction.environment import device_in_words
from reproduction.report.estimates import MISSING
from reproduction.settings import Experiment, changes, flat

# How a run is computed, not what.
HARDWARE = ["precision", "backend"]

# Settings that go by another name in words.
WORDS = {
    "restart": "initialization",
    "labeled_per_batch": "b_L", "unlabeled_per_batch": "b_U",
}  # fmt: skip

# What stands behind the title of a data set, by where X_U comes from.
X_U = {
    "train": "",
    "infimnist": ", X_U from InfiMNIST",
    "svhn-extra": " with the extra set",
}

# Epochs of stage 2 whose mean error is told with that of the last.
LATE = 20


def read_runs(folder):
    """The run records of a results folder, by cell, experiment and seed.

    Returns:
        A DataFrame with the columns of `index.csv`; errors are test errors in
        percent. Beside the settings of the experiment by name they are

        - `path` below the folder, `cell`, `title` of the data, `seed`;
          `differs`: settings other than the paper's, in words, but for epochs,
          precision and backend;
        - `stage_1`, `chosen`, `last`, `last_20`: the errors after stage 1, at
          the epoch chosen by validation, in the last one, and in the mean of
          the last 20; `val_stage_1`, `val_last`: validation errors;
          `balanced_stage_1`, `balanced_last`: means over the classes;
        - `lost`: whether a class was lost; `emptied`: whether an output was
          dead in a batch of the first epoch; `classes_in_use`, `balance_end`
          of the last epoch; missing where the run did not note it;
        - `pretrain_seconds`, `seconds` of the stages, `minutes` of both;

        and `experiment`, an `Experiment`, and `curve`, the lists of stage 2.
    """
    rows = []
    for record in records.read_all(folder).values():
        e = Experiment.from_json(record["experiment"])
        curve = record["regularization"]["curve"]
        chosen = records.chosen_epoch(curve)
        # `None`, of a method without stage 1, becomes NaN.
        test = 100 * np.array(curve["test_error"], float)
        validation = 100 * np.array(curve["val_error"], float)
        balanced = record["balanced_errors"] or {}
        lost = record["lost_classes"]
        # Older records alone tell dead outputs.
        dead = record.get("dead_outputs")
        pretraining = records.typical_seconds(record["pretraining"])
        training = records.typical_seconds(record["regularization"])
        machines = [record["environment"], *record["resumed_in"]]
        # Where stage 1 is of another run.
        shared = record["pretraining"]
        if "environment" in shared:
            machines += [shared["environment"], *shared.get("resumed_in", [])]
        devices = {machine["device_kind"].upper() for machine in machines}
        rows.append(
            {
                "path": record["path"],
                "cell": e.cell,
                "title": record["data"]["title"] + X_U[e.unlabeled],
                "seed": record["seed"],
                "differs": in_words(changes(e)),
                "stage_1": test[0],
                "chosen": test[chosen],
                "last": test[-1],
                "last_20": test[-LATE:].mean() if len(test) > LATE else None,
                "chosen_epoch": chosen,
                "val_stage_1": validation[0],
                "val_last": validation[-1],
                "balanced_stage_1": 100 * balanced.get("stage_1", np.nan),
                "balanced_last": 100 * balanced.get("last", np.nan),
                "lost": None if lost is None else lost != [],
                "emptied": None if dead is None else dead != [],
                "classes_in_use": curve.get("classes_in_use", [np.nan])[-1],
                "balance_end": curve.get("balance", [None])[-1],
                "warnings": record["warnings"],
                "pretrain_seconds": pretraining,
                "seconds": training,
                "minutes": (pretraining + training) / 60,
                "hardware": " / ".join(
                    dict.fromkeys(map(device_in_words, machines))
                ),
                "device": " and ".join(sorted(devices)),
                **flat(e),
                "experiment": e,
                "curve": curve,
            }
        )
    return pd.DataFrame(rows)


def in_words(changed):
    """Settings by name as text, e.g. `b_L 0, stage 2 rate 0.1`."""
    texts = []
    for name, value in changed.items():
        if isinstance(value, tuple):
            value = f"{value[0]:.3g} to {value[-1]:.3g}"
        texts.append(f"{WORDS.get(name, name.replace('_', ' '))} {value}")
    return ", ".join(texts)


# Selections.


def by_folder(frame):
    """The runs of each experiment by its folder, as they come in the frame."""
    folders = frame.path.map(posixpath.dirname)
    return dict(iter(frame.groupby(folders, sort=False)))


def largest(frame):
    """The runs of the largest experiment; no run of none."""
    return max(by_folder(frame).values(), key=size, default=frame)


def size(g):
    """Sort key of experiments: the seeds, the epochs, those of stage 1.

    One seed that was trained longer does not stand for several, nor do several
    that are too short for the mean of the last epochs. Of equal ones it is that
    of the first seeds: others may be picked by their errors.
    """
    e = g.experiment.iloc[0]
    long_enough = e.epochs >= LATE
    return long_enough, len(g), e.epochs, e.pretrain_epochs, -g.seed.sum()


def like(frame, arm, free=()):
    """The runs with an `Experiment`'s settings; those in `free` may be any."""
    fixed = {k: v for k, v in vars(arm).items() if k not in free}
    same = [fixed.items() <= vars(e).items() for e in frame.experiment]
    return frame.loc[same]


def errors_of(g):
    """Test errors in percent, `(seeds, 1 + epochs)`.

    That of epoch 0 is of the end of stage 1; NaN where there is no stage 1.
    """
    return 100 * np.array([curve["test_error"] for curve in g.curve], float)


# What tables and pictures say of some runs.


def task(g):
    """The data and the number of labels."""
    return f"{g.title.iloc[0]}, {g.num_labeled.iloc[0]} labels"


def seeds(g):
    """The seeds in words, e.g. `0`, `0-9` or `0-2,7`."""
    ranges = []
    for seed in sorted(g.seed.unique()):
        if ranges and seed == ranges[-1][-1] + 1:
            ranges[-1].append(seed)
        else:
            ranges.append([seed])
    return ",".join(
        f"{r[0]}-{r[-1]}" if len(r) > 1 else f"{r[0]}" for r in ranges
    )


def which_seeds(g):
    """The same, with the word: `seed 0` or `seeds 0-9`."""
    word = "seed" if g.seed.nunique() == 1 else "seeds"
    return f"{word} {seeds(g)}"


def epochs(g):
    """Epochs of both stages, e.g. `2000 + 60`."""
    return f"{g.pretrain_epochs.iloc[0]} + {g.epochs.iloc[0]}"


def hardware(g):
    """Machines of all runs, in words."""
    machines = " / ".join(g.hardware).split(" / ")
    return ", ".join(dict.fromkeys(machines))


def made_on(g):
    """Precisions and backends of networks, and the machines of all runs."""
    networks = g[[e.trains_network for e in g.experiment]]
    how = [*networks.precision.unique(), *networks.backend.unique()]
    return ", ".join([*how, hardware(g)])


def of_known(values):
    """In how many runs a fact is true, of those that know it."""
    known = values.dropna().map(bool)
    return f"{known.sum()} of {len(known)}" if len(known) else MISSING


def linked(name, g):
    """A name in Markdown with links to its runs, below the results folder.

    A link is to the folder of an experiment, or to a single run.
    """
    links = [
        folder if len(runs) > 1 else runs.path.iloc[0]
        for folder, runs in by_folder(g).items()
    ]
    if len(links) == 1:
        return f"[{name}]({links[0]})"
    numbered = (f"[{i}]({link})" for i, link in enumerate(links, start=1))
    return f"{name} ({', '.join(numbered)})"
