"""Claims, and what the records of a study say to them."""

import math
import statistics

from gar_keras.experiments import settings as experiments
from gar_keras.report import layout
from gar_keras.report.estimates import Estimate
from gar_keras.report.groups import HARDWARE, group, size
from gar_keras.report.layout import MISSING
from gar_keras.report.lost import LOST_NOTE, lost_text, seeds_lost
from gar_keras.report.sources import linked
from gar_keras.report.studies import group_notes, without_notes

# What may be any in a run of a row; the hardware is the same in the paper's.
ANY = {*HARDWARE, "epochs"}

HEADING = (
    "what was changed",
    "claim (section of the paper)",
    "epochs",
    "epoch chosen by validation",
    "last epoch",
    "the paper's stage 2 by then",
    "difference, with its 95 % interval",
    "runs that lost a class",
    "verdict",
)

# Where the claims are not the paper's.
EXPECTED = "what is expected"

# What of it fits into a terminal.
SHORT = (0, 2, 4, 5, 6, 8)

# Seeds that a verdict needs.
LEAST_SEEDS = 3

NOTES = (
    "The paper's stage 2 is taken after as many steps (within an epoch on a "
    "line between its ends), or after as many epochs where the batches are "
    "of another size: of runs of any length with the same seeds, precision "
    "and backend, from the same end of stage 1 if there is one.",
    "A verdict is on the error at the last epoch, seed by seed, of "
    f"{LEAST_SEEDS} seeds or more. The error is higher (or lower) than the "
    "paper's if the 95 % interval of the mean difference (Student's t) is "
    "above 0 (or below); else no difference is shown, which does not say that "
    "there is none. A claim holds if the error goes where it must by the "
    "claim, and is contradicted if it goes the other way. Where nothing "
    "follows from "
    "the claim, the verdict is the difference itself.",
)


def claims_table(title, study, records, results):
    """A study of claims for the terminal."""
    _, *heading = (HEADING[k] for k in SHORT)
    rows = claim_rows(study, records, results)
    short = [[row[k] for k in SHORT] for row in rows]
    return layout.terminal_table(title, ["", *heading], short, min_width=22)


def claims_markdown(study, records, results):
    """A study of claims as Markdown; empty if none of it has been run.

    Args:
        study: A `Study` with claims.
        records: Run records.
        results: Folder of the records, with what lies beside them.
    """
    groups = claim_groups(study, records)
    if not groups:
        return ""
    rules = ["---", "---", *["---:"] * 6, "---"]
    rows = claim_rows(study, records, results)
    lines = [f"**{study.title}**", ""]
    lines += layout.markdown_table(_heading(study), rows, rules)
    notes = [*study.notes, *NOTES, *other_starts(study, groups, records)]
    notes += group_notes(groups)
    notes += sound_differences(study, groups, records, results)
    notes += [*without_notes(groups, results), LOST_NOTE]
    lines += ["", *(f"- {note}" for note in notes)]
    return "\n".join(lines) + "\n"


def _heading(study):
    """The heading for claims of the paper, or for those of others."""
    if any(claim.section for claim in study.claims.values()):
        return HEADING
    return [HEADING[0], EXPECTED, *HEADING[2:]]


def claim_rows(study, records, results):
    """The rows of the table: a claim each, with its test and its verdict."""
    groups = claim_groups(study, records)
    rows = []
    for name, claim in study.claims.items():
        section = f" ({claim.section})" if claim.section else ""
        row = [name, claim.text + section, *[MISSING] * 6]
        if name not in groups:
            rows.append([*row, "not run"])
            continue
        g = groups[name]
        row[0] = linked(name, g, results)
        epoch, base = papers_errors(g, study.arms[claim.against], records)
        row[2:5] = [
            str(g.settings["epochs"]),
            *(str(g.error(key)) for key in ("chosen_error", "last_error")),
        ]
        if base:
            row[5] = f"{Estimate.of(base.values())}, epoch {epoch:.3g}"
        errors = g.by_seed("last_error")
        difference = Estimate.of_differences(base, errors)
        row[6] = MISSING if difference is None else _with_interval(difference)
        row[7] = lost_text(g.records, results)
        rows.append([*row, verdict(claim.expected, base, errors)])
    return rows


def claim_groups(study, records):
    """The groups of the rows that were run, by the text of the row.

    Epochs of stage 2, precision and backend may be any. Of several groups it
    is the first with enough seeds for a verdict, or most of them, and of
    these the one with the most epochs.
    """
    found = {}
    for name in study.claims:
        groups = [
            g
            for g in group(records)
            if experiments.differences(g.settings, study.arms[name]).keys()
            <= ANY
        ]
        if groups:
            found[name] = max(
                groups, key=lambda g: (min(len(g.seeds), LEAST_SEEDS), size(g))
            )
    return found


def papers_errors(g, arm, records):
    """The test errors of the paper's stage 2 when it was as far as a group.

    Args:
        g: A `Group`.
        arm: The `Experiment` of the paper's stage 2.
        records: Run records.

    Returns:
        `(epoch, errors)`: the epoch of the paper's stage 2, as
        `papers_epoch` has it, and its errors by seed, of the seeds of the
        group.
    """
    epoch, runs = papers_runs(g, arm, records)
    return epoch, _errors_at(epoch, runs)


def _errors_at(epoch, runs):
    """The test errors of runs at an epoch, by seed."""
    return {
        seed: _value_at(epoch, curve["test_error"])
        for seed, curve in curves_by_seed(runs).items()
    }


def _value_at(epoch, values):
    """A curve between two epochs: on the line between them."""
    before, after = values[math.floor(epoch)], values[math.ceil(epoch)]
    return before + (epoch % 1) * (after - before)


def papers_runs(g, arm, records):
    """The runs of the paper's stage 2 that went as far as a group.

    Args:
        g: A `Group`.
        arm: The `Experiment` of the paper's stage 2.
        records: Run records.

    Returns:
        `(epoch, runs)`: the epoch of the paper's stage 2 that is as far, and
        a record of it for each seed of the group that has one.
    """
    epoch = papers_epoch(g.settings, arm)
    runs = [
        r
        for base in group(records)
        if experiments.differences(base.settings, arm).keys() <= ANY
        and all(base.settings[k] == g.settings[k] for k in HARDWARE)
        and base.settings["epochs"] >= epoch
        for r in base.records
        if r["seed"] in g.seeds
    ]
    starts = _starts(curves_by_seed(g.records))
    # Of several runs of a seed, one from the same start, and of these that of
    # the fewest epochs, is made alike.
    runs.sort(
        key=lambda r: (
            _start(r["regularization"]["curve"]) == starts[r["seed"]],
            -r["experiment"]["epochs"],
        )
    )
    return epoch, list({r["seed"]: r for r in runs}.values())


def curves_by_seed(records):
    """The curves of stage 2 by seed; of several, the last."""
    curves = {r["seed"]: r["regularization"]["curve"] for r in records}
    return {seed: curves[seed] for seed in sorted(curves)}


def _start(curve):
    """The test error at the end of stage 1, which is epoch 0."""
    return curve["test_error"][0]


def _starts(curves):
    return {seed: _start(curve) for seed, curve in curves.items()}


def other_starts(study, groups, records):
    """Notes on rows that are compared with runs from another stage 1.

    Args:
        study: A `Study` with claims.
        groups: Its groups by the text of the row.
        records: Run records.
    """
    notes = []
    for name, g in groups.items():
        arm = study.arms[study.claims[name].against]
        papers = _starts(curves_by_seed(papers_runs(g, arm, records)[1]))
        ours = _starts(curves_by_seed(g.records))
        other = [seed for seed in papers if papers[seed] != ours[seed]]
        if other:
            mine, its = (
                statistics.mean(100 * starts[seed] for seed in other)
                for starts in (ours, papers)
            )
            seeds = ", ".join(map(str, other))
            notes.append(
                f"{name}: stage 1 of seed{'s' * (len(other) > 1)} {seeds} was "
                f"trained apart, and ended at {mine:.2f} % here and at "
                f"{its:.2f} % before the paper's stage 2"
            )
    return notes


def sound_differences(study, groups, records, results):
    """A note on the differences where neither run lost a class.

    Args:
        study: A `Study` with claims.
        groups: Its groups by the text of the row.
        records: Run records.
        results: Folder of the records, with what lies beside them.

    Returns:
        A list of one note, or of none.
    """
    texts = []
    for name, g in groups.items():
        arm = study.arms[study.claims[name].against]
        epoch, runs = papers_runs(g, arm, records)
        lost = {*seeds_lost(g.records, results), *seeds_lost(runs, results)}
        sound = _errors_at(epoch, [r for r in runs if r["seed"] not in lost])
        difference = Estimate.of_differences(sound, g.by_seed("last_error"))
        if lost and difference is not None:
            texts.append(f"{name} {_with_interval(difference)}")
    if not texts:
        return []
    return [
        "difference at the last epoch, without the seeds on which one of the "
        "two runs lost a class: " + "; ".join(texts)
    ]


def papers_epoch(settings, arm):
    """The epoch of the paper's stage 2 that is as far as a run; see `NOTES`.

    Args:
        settings: Dict of the experiment of the run.
        arm: The `Experiment` of the paper's stage 2.

    Example:

    >>> from gar_keras.experiments.settings import TABLE_1
    >>> run = {"epochs": 3, "labeled_per_batch": 96, "unlabeled_per_batch": 32}
    >>> papers_epoch(run, TABLE_1[100])     # 3 * 112 / 32
    10.5
    """
    epochs, b_L, b_U = (
        settings[name]
        for name in ("epochs", "labeled_per_batch", "unlabeled_per_batch")
    )
    if b_L + b_U != arm.labeled_per_batch + arm.unlabeled_per_batch:
        return epochs
    return epochs * arm.unlabeled_per_batch / b_U


def verdict(expected, base, errors):
    """What errors say to a claim; see `NOTES`.

    Args:
        expected: Where the errors go by the claim: `"higher"`, `"lower"` or
            `None`.
        base: Errors with the paper's stage 2, by seed.
        errors: Errors with one thing changed, by seed.

    Example:

    >>> base = {0: 0.04, 1: 0.05, 2: 0.06}
    >>> verdict("higher", base, {0: 0.06, 1: 0.07, 2: 0.08})
    'holds'
    >>> verdict("higher", base, {0: 0.04, 1: 0.06, 2: 0.07})
    'no difference shown'
    """
    difference = Estimate.of_differences(base, errors)
    n = 0 if difference is None else difference.n
    if n < LEAST_SEEDS:
        return f"undecided (n = {n})"
    low, high = difference.interval()
    if low <= 0 <= high:
        return "no difference shown"
    direction = "higher" if low > 0 else "lower"
    if expected is None:
        return direction
    return "holds" if direction == expected else "contradicted"


def _with_interval(difference):
    interval = difference.interval()
    return f"{difference}" + (f", {interval}" if interval else "")
