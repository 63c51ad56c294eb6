"""The run records of a folder as one DataFrame, a row a run."""

from pathlib import Path

import pandas as pd

from reproduction import records
from reproduction.datasets import UNLABELED
from reproduction.environment import device_in_words
from reproduction.report.estimates import MISSING
from reproduction.settings import Experiment, changes, flat

# How a run is computed, not what.
HARDWARE = ["precision", "backend"]

# Columns of a frame that a CSV file cannot hold.
OBJECTS = ["experiment", "curve"]

# Settings that go by another name in words.
WORDS = {
    "restart": "initialization",
    "labeled_per_batch": "b_L", "unlabeled_per_batch": "b_U",
}  # fmt: skip

# Epochs of stage 2 whose mean error is told beside that of the last.
LATE = 20


def read_runs(folder):
    """The run records of a results folder.

    Args:
        folder: Results folder.

    Returns:
        A DataFrame with a row for each run, by cell, experiment and seed.
        Errors are test errors in percent. Its columns are

        - `path` below the folder, `cell`, `title` of the data, `seed`,
          `fingerprint`;
        - `differs`: settings other than the paper's, in words, but for epochs,
          precision and backend;
        - `stage_1`, `chosen`, `last`, `last_20`: the errors after stage 1, at
          the epoch chosen by validation, in the last one, and in the mean of
          the last 20 (none of fewer); `val_stage_1`, `val_last`: validation
          errors; `chosen_epoch`;
        - `balanced_stage_1`, `balanced_last`: the mean over the classes of the
          errors on each, after stage 1 and in the last epoch, of the test
          images whose classes the run kept;
        - `lost`: whether a class was lost; `emptied`, where the first
          epoch was noted by step: whether an output was dead in a batch;
        - `balance_end`: the balance in the last epoch; `warnings`: what the
          run warned of, if it noted that;
        - `pretrain_seconds`, `seconds` of the stages, `minutes` of both, and
          `hardware`;
        - every setting of the experiment by its name;
        - `experiment`, an `Experiment`, and `curve`, the lists of stage 2.

    Raises:
        RecordError: if a file among the records is not a sound record.

    Example:

    >>> read_runs("results").groupby("cell").chosen.mean()  # doctest: +SKIP
    """
    rows, experiments = [], {}
    for path, record in records.read_all(folder).items():
        fingerprint = record["fingerprint"]
        if fingerprint not in experiments:
            e = Experiment.from_json(record["experiment"])
            experiments[fingerprint] = e, ", ".join(_in_words(changes(e)))
        rows.append(_row(path, record, *experiments[fingerprint]))
    return pd.DataFrame(rows)


def _row(path, record, experiment, differs):
    unlabeled = UNLABELED[experiment.unlabeled]
    curve = record["regularization"]["curve"]
    seconds = [record[s]["seconds"] for s in ("pretraining", "regularization")]
    lost, dead = record["lost_classes"], record["dead_outputs"]
    balanced = record["balanced_errors"] or {"stage_1": None, "last": None}
    return {
        "path": record["path"],
        "cell": experiment.cell,
        "title": record["data"]["title"] + unlabeled.suffix,
        "seed": record["seed"],
        "fingerprint": path.parent.name.rpartition("_")[2],
        "differs": differs,
        **_errors(curve, records.result_of(curve)["chosen_epoch"]),
        **{f"balanced_{k}": _percent(error) for k, error in balanced.items()},
        "lost": None if lost is None else lost != [],
        "emptied": None if dead is None else dead != [],
        "balance_end": curve.get("balance", [None])[-1],
        "warnings": record["warnings"],
        **dict(zip(("pretrain_seconds", "seconds"), seconds, strict=True)),
        "minutes": sum(seconds) / 60,
        "hardware": _hardware(record),
        **flat(experiment),
        "experiment": experiment,
        "curve": curve,
    }


def _percent(error):
    return None if error is None else 100 * error


def _errors(curve, chosen):
    """Errors in percent, and how the epoch was chosen."""
    test, validation = (
        [_percent(error) for error in curve[name]]
        for name in ("test_error", "val_error")
    )
    late = test[-LATE:] if len(test) > LATE else None
    return {
        "stage_1": test[0],
        "chosen": test[chosen],
        "last": test[-1],
        "last_20": late and sum(late) / LATE,
        "chosen_epoch": chosen,
        "val_stage_1": validation[0],
        "val_last": validation[-1],
    }


def _in_words(changed):
    for name, value in changed.items():
        if isinstance(value, tuple):
            value = f"{value[0]:.3g} to {value[-1]:.3g}"
        yield f"{WORDS.get(name, name.replace('_', ' '))} {value}"


def _hardware(record):
    """Device and cores of each process that had a part in a run, in words."""
    machines = record["environment"], *record["resumed_in"]
    return " / ".join(dict.fromkeys(map(device_in_words, machines)))


# Groups: the runs of one experiment over its seeds, rows of such a frame.


def groups(frame):
    """The runs of a frame by experiment, in the order of their appearance."""
    return [g for _, g in frame.groupby("fingerprint", sort=False)]


def like(frame, arm, free=()):
    """The runs with an `Experiment`'s settings; those in `free` may be any."""
    fixed = {k: v for k, v in vars(arm).items() if k not in free}
    same = [fixed.items() <= vars(e).items() for e in frame.experiment]
    return frame.loc[same]


def largest(frame):
    """The group of most runs; no run of none."""
    return max(groups(frame), key=size, default=frame[:0])


def size(g):
    """Sort key of groups: the number of runs, their epochs, those of stage 1.

    One seed that was trained longer does not take the place of several, nor
    do several that are too short for the mean of the last epochs. Of equal
    ones it is that of the first seeds: others may be picked by their errors.
    """
    e = g.experiment.iloc[0]
    long_enough = e.epochs >= LATE
    return long_enough, len(g), e.epochs, e.pretrain_epochs, -g.seed.sum()


def sound(g):
    """The runs that lost no class."""
    return g[~g.lost.eq(True)]


def without_lost(g):
    """The runs that lost no class; none if no run lost one."""
    kept = sound(g)
    return kept if len(kept) < len(g) else g[:0]


# What tables say of a group.


def task(g):
    """The data and the number of labels."""
    return f"{g.title.iloc[0]}, {g.num_labeled.iloc[0]} labels"


def seeds(g):
    """The seeds in words, e.g. `0`, `0-9` or `0,2,7`."""
    found = sorted(g.seed.unique())
    if len(found) > 1 and found == [*range(found[0], found[-1] + 1)]:
        return f"{found[0]}-{found[-1]}"
    return ",".join(map(str, found))


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


def minutes(g):
    """Minutes of training a run, the least and the most."""
    ends = (f"{end:.0f}" for end in (g.minutes.min(), g.minutes.max()))
    return " to ".join(dict.fromkeys(ends))


def lost(g):
    """Number of runs that lost a class, of those that can tell: `1 of 9`."""
    return _of_known(g.lost)


def warned(g):
    """In how many runs a warning came, of those that noted it."""
    return _of_known(g.warnings)


def had_dead_output(g):
    """In how many runs an output was dead, of those that noted it."""
    return _of_known(g.emptied)


def _of_known(values):
    known = values.dropna().map(bool)
    return f"{known.sum()} of {len(known)}" if len(known) else MISSING


def links(g):
    """Links below the results folder: to folders, or to a run on its own."""
    runs = {}
    for path in g.path:
        runs.setdefault(Path(path).parent.as_posix(), set()).add(path)
    return [
        folder if len(own) > 1 else own.pop() for folder, own in runs.items()
    ]
