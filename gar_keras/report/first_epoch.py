"""The study of the first epoch: how often stage 2 loses a class, and where."""

import math
from dataclasses import replace

from gar_keras.report import layout
from gar_keras.report.estimates import Estimate
from gar_keras.report.layout import MISSING
from gar_keras.report.lost import has_emptied, lost_classes
from gar_keras.report.plots.style import percent
from gar_keras.report.sources import links
from gar_keras.report.studies import arm_group, made_alike

HEADING = (
    "",
    "starts",
    "emptied a class",
    "lost a class",
    "95 % interval",
    "classes lost",
    "after stage 1",
    "after the epoch",
    "where no class is lost",
    "against the paper's, where neither loses one",
)

# What of it fits into a terminal.
SHORT = (0, 1, 2, 3, 6, 7, 8)

NOTES = (
    "A class is emptied where its energy v_j in a batch falls below a "
    "thousandth of the mean of the classes, at any of the steps noted, and "
    "lost where it does at the last one. The interval is Wilson's, of those "
    "that lost one.",
    "Test errors in percent, mean ± standard deviation over starts.",
)

# 97.5 % quantile of the normal distribution.
_Z = 1.959964


def wilson_interval(successes, n):
    """The 95 % interval of a share, by Wilson's score.

    Example:

    >>> low, high = wilson_interval(0, 30)
    >>> round(low, 3), round(high, 3)
    (0.0, 0.114)
    """
    centre = (successes + _Z**2 / 2) / (n + _Z**2)
    half = _Z / (n + _Z**2)
    half *= math.sqrt(successes * (n - successes) / n + _Z**2 / 4)
    return max(0.0, centre - half), min(1.0, centre + half)


def first_epoch_table(title, study, records, results=None):
    """The study for the terminal."""
    rows = [[row[k] for k in SHORT] for row in first_epoch_rows(study, records)]
    heading = [HEADING[k] for k in SHORT]
    return layout.terminal_table(title, heading, rows)


def first_epoch_markdown(study, records, results=None):
    """The study as Markdown; empty if none of it has been run.

    Args:
        study: The `Study` of the first epoch.
        records: Run records.
        results: Folder of the records, to which the rows are linked.
    """
    rows = first_epoch_rows(study, records, results)
    if not rows:
        return ""
    lines = [f"**{study.title}**", "", *layout.numbers(HEADING, rows), ""]
    _, others = made_alike(study, records)
    lines += [f"- {note}" for note in (*study.notes, *NOTES, *others)]
    return "\n".join(lines) + "\n"


def first_epoch_rows(study, records, results=None):
    """The rows of the table: the arms that were run, over all starts."""
    records, _ = made_alike(study, records)
    rows, usual = [], {}
    for text, arm in study.arms.items():
        runs = starts(arm, study.restarts, records)
        usual.setdefault(arm.pretrain_epochs, runs)
        if runs:
            name = text
            if results is not None:
                name = layout.Linked(text, links(runs.values(), results))
            rows.append([name, *_row(runs, usual[arm.pretrain_epochs])])
    return rows


def starts(arm, restarts, records):
    """The records of an arm by its starts, `(seed, restart)`.

    Args:
        arm: An `Experiment`.
        restarts: Runs of each seed.
        records: Run records.
    """
    found = {}
    for number in range(restarts):
        g = arm_group(replace(arm, restart=number), records)
        found |= {(r["seed"], number): r for r in g.records} if g else {}
    return found


def _row(runs, usual):
    """The figures of an arm.

    Args:
        runs: Its records by start.
        usual: Those of the paper's stage 2.
    """
    lost = {start: lost_classes(r) for start, r in runs.items()}
    n, times = len(runs), sum(map(bool, lost.values()))
    low, high = wilson_interval(times, n)
    kept = {start: r for start, r in runs.items() if not lost[start]}
    common = [s for s in kept if s in usual and not lost_classes(usual[s])]
    difference = [_after(kept[s]) - _after(usual[s]) for s in common]
    which = sorted(j for classes in lost.values() for j in classes)
    return [
        str(n),
        f"{sum(map(has_emptied, runs.values()))} of {n}",
        f"{times} of {n}",
        f"{percent(low)} to {percent(high)}",
        ", ".join(map(str, which)) or "none",
        _mean([r["result"]["baseline_error"] for r in runs.values()]),
        _mean([_after(r) for r in runs.values()]),
        _mean([_after(r) for r in kept.values()]),
        MISSING
        if runs is usual or not difference
        else str(replace(Estimate.of(difference), signed=True)),
    ]


def _mean(errors):
    return str(Estimate.of(errors)) if errors else MISSING


def _after(record):
    return record["result"]["last_error"]
