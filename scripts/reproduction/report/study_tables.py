"""The studies beyond the paper: arms, claims, and starts of the first epoch.

In each, runs are compared with others: of the first row, or of the paper's
stage 2.
"""

from dataclasses import replace

import pandas as pd

from reproduction.report import run_frame
from reproduction.report.estimates import MISSING, Estimate, between
from reproduction.report.tables import change, figure, lost, table_of_runs

# What may be any in a run of a claim's row.
ANY = [*run_frame.HARDWARE, "epochs"]

# What runs that are compared have in common.
_SAME = ["seed", "restart", "dataset", "known_classes", *run_frame.HARDWARE]

# Seeds that a verdict needs.
LEAST_SEEDS = 3

CLAIM_NOTES = (
    "Beside each row: the paper's stage 2 after as many steps, at the nearest "
    "whole epoch not beyond (after as many epochs, where the batches are of "
    "another size), with the same seeds, precision and backend, and from the "
    "same end of stage 1 where there is one.",
    "A verdict is on the error at the last epoch, seed by seed, of "
    f"{LEAST_SEEDS} seeds or more: higher or lower if the 95 % interval of the "
    "mean difference (Student's t) is without 0, else no difference is shown.",
)


def study_table(study, frame, most=None):
    """A `Study` as a table: the arguments of `markdown` and `in_terminal`.

    It has all columns, or `most` of them, the first ones.
    """
    notes = [*study.notes]
    names = study.claims or study.arms
    rows = {name: runs_of_row(study, name, frame) for name in names}
    columns = START_COLUMNS if study.restarts > 1 else ARM_COLUMNS
    if study.claims:
        columns = CLAIM_COLUMNS
        notes += CLAIM_NOTES
        elsewhere = [
            f"{name} ({run_frame.which_seeds(g[g.elsewhere])})"
            for name, g in rows.items()
            if g.elsewhere.any()
        ]
        if elsewhere:
            notes.append(
                "From another end of stage 1 than beside it: "
                f"{'; '.join(elsewhere)}."
            )
    columns = dict([*columns.items()][:most])
    return table_of_runs(rows, columns), notes, study.title


def runs_of_row(study, name, frame):
    """The runs of an arm, from all its starts, beside those of another one.

    A claim names the other. Else it is the first arm; of several starts, the
    first after as many epochs of stage 1.

    Returns:
        The runs with columns `..._other`, of the other's runs on their seeds.
        Of several on a seed it is the one from the same end of stage 1, if
        there is one, and with the fewest epochs; `elsewhere` tells of another
        end. For a claim `last_other` is the error in the last whole epoch with
        as many steps at most, the column `epoch`.
    """
    arm = study.arms[name]
    g = _largest(study, arm, frame)
    if name in study.claims:
        claim = study.claims[name]
        other = study.arms[claim.against]
        e = arm if g.empty else g.experiment.iloc[0]
        epoch = e.epochs
        if _batch(e) == _batch(other):
            epoch = epoch * other.unlabeled_per_batch // e.unlabeled_per_batch
        others = run_frame.like(frame, other, ANY)
        others = others[others.epochs >= epoch]
        by_then = others.curve.map(lambda c: 100 * c["test_error"][epoch])
        others = others.assign(last=by_then)
        g = g.assign(claim=claim.text, expected=claim.expected, epoch=epoch)
    else:
        other = next(
            e
            for e in study.arms.values()
            if study.restarts == 1 or e.pretrain_epochs == arm.pretrain_epochs
        )
        others = _largest(study, other, frame)
        if other is arm:
            others = others[:0]
    pairs = g.merge(others, "left", _SAME, suffixes=("", "_other"))
    pairs["elsewhere"] = False
    for end in ("stage_1", "val_stage_1"):
        here, there = pairs[end], pairs[f"{end}_other"]
        pairs["elsewhere"] |= here.notna() & there.notna() & (here != there)
    pairs = pairs.sort_values(["elsewhere", "epochs_other"])
    return pairs.drop_duplicates("path").sort_index()


def _largest(study, arm, frame):
    """An arm's experiments with its epochs, if they ran; else the largest."""
    free = ANY if study.claims else run_frame.HARDWARE
    starts = []
    for k in range(study.restarts):
        found = run_frame.like(frame, replace(arm, restart=k), free)
        exact = found[found.epochs == arm.epochs]
        starts.append(run_frame.largest(found if exact.empty else exact))
    return pd.concat(starts)


def _batch(e):
    return e.labeled_per_batch + e.unlabeled_per_batch


def neither_lost(g):
    """Those runs that lost no class, if the others lost none."""
    return g[~(g.lost.eq(True) | g.lost_other.eq(True))]


def last_change(g):
    """How far the last errors are above those of the others, if known."""
    return (g["last"] - g.last_other).dropna()


# Columns.

_EXTENT = {
    "epochs": run_frame.epochs,
    "seeds": run_frame.seeds,
    "made on": run_frame.made_on,
}

# The first four are those of the pages, and of the terminal.
ARM_COLUMNS = {
    "after stage 1": figure("stage_1"),
    "epoch chosen by validation": figure("chosen"),
    "difference from the first row": lambda g: change(
        g.chosen - g.chosen_other
    ),
    "runs that lost a class": lost,
    "last epoch": figure("last"),
    "validation error, after stage 1 → last epoch": lambda g: " → ".join(
        figure(name)(g) for name in ("val_stage_1", "val_last")
    ),
    "runs with a warning": lambda g: run_frame.of_known(g.warnings),
    **_EXTENT,
}

# Columns of starts of the first epoch.
START_COLUMNS = {
    "lost a class": lambda g: run_frame.of_known(g.lost),
    "where no class is lost": lambda g: figure("last", n=True)(
        g[g.lost.eq(False)]
    ),
    "against the paper's, where neither loses one": lambda g: change(
        last_change(neither_lost(g))
    ),
    "initializations": lambda g: str(len(g)),
    "had a dead output": lambda g: run_frame.of_known(g.emptied),
    "after stage 1": figure("stage_1"),
    "after the epoch": figure("last"),
    **_EXTENT,
}


def claim_change(g):
    """The difference from the paper's stage 2, with its interval."""
    known = last_change(g)
    text = change(known)
    if len(known) < LEAST_SEEDS:
        return text
    return f"{text}, {between(Estimate.of(known).interval())}"


def verdict(g):
    """What errors say to a claim; see `CLAIM_NOTES`."""
    known = last_change(g)
    if len(known) < LEAST_SEEDS:
        return f"undecided (n = {len(known)})"
    low, high = Estimate.of(known).interval()
    if low <= 0 <= high:
        return "no difference shown"
    direction = "higher" if low > 0 else "lower"
    expected = g.expected.iloc[0]
    if expected is None:
        return direction
    return "holds" if direction == expected else "contradicted"


def sound_change(g):
    """The difference where neither run lost a class, if one did."""
    sound = neither_lost(g)
    return claim_change(sound) if len(sound) < len(g) else MISSING


def papers_error(g):
    """The error of the paper's stage 2 after as many steps, and when."""
    known = g.last_other.dropna()
    if known.empty:
        return MISSING
    return f"{Estimate.of(known).text()}, epoch {g.epoch.iloc[0]}"


CLAIM_COLUMNS = {
    "claim (section of the paper)": lambda g: g.claim.iloc[0],
    "last epoch": figure("last"),
    "difference, with its 95 % interval": claim_change,
    "verdict": verdict,
    "where neither run lost a class": sound_change,
    "runs that lost a class": lost,
    "the paper's stage 2 after as many steps, whole epochs": papers_error,
    "epoch chosen by validation": figure("chosen"),
    **_EXTENT,
}
