"""What the paper claims, and what the records of a study say to it."""

import statistics

from gar_keras.report import layout
from gar_keras.report.estimates import Estimate
from gar_keras.report.estimates import differences
from gar_keras.report.layout import MISSING
from gar_keras.report.lost import lost_text

CLAIMS_HEADING = (
    "what was changed",
    "claim of the paper (section)",
    "epoch chosen by validation",
    "last epoch",
    "against the paper's stage 2, last epoch",
    "runs that lost a class",
    "verdict",
)

# Seeds that a verdict needs.
LEAST_SEEDS = 3

VERDICT_NOTE = (
    "A verdict is on the error at the last epoch, seed by seed, of "
    f"{LEAST_SEEDS} seeds or more. That is higher (or lower) than with the "
    "paper's stage 2 if it is so on each seed, and in the mean by more than "
    "the standard deviation of the latter over the seeds; else there is no "
    "difference. A claim holds if the error goes where it follows from the "
    "claim that it must, and is contradicted if it goes the other way. Where "
    "nothing follows, the verdict is the difference itself."
)


def claim_rows(study, groups, results):
    """The rows of a table of claims: their tests, and the verdicts.

    First the rows that the others are compared with.

    Args:
        study: A `Study` with `claims`.
        groups: A `Group` of records by the text of each row that was run.
        results: Folder of the records, with what lies beside them.
    """
    bases = dict.fromkeys(claim.against for claim in study.claims.values())
    rows = []
    for name in bases:
        chosen, last, lost = _measured(groups.get(name), results)
        rows.append([name, MISSING, chosen, last, MISSING, lost, MISSING])
    for name, claim in study.claims.items():
        errors = _last_errors(groups.get(name))
        base = _last_errors(groups.get(claim.against))
        chosen, last, lost = _measured(groups.get(name), results)
        difference = Estimate.of_differences(base, errors)
        rows.append(
            [
                name,
                f"{claim.text} ({claim.section})",
                chosen,
                last,
                MISSING if difference is None else str(difference),
                lost,
                verdict(claim.expected, base, errors),
            ]
        )
    return rows


def claims_table(rows):
    """The lines of the table in Markdown."""
    rules = ["---", "---", *["---:"] * 4, "---"]
    return layout.markdown_table(CLAIMS_HEADING, rows, rules)


def verdict(expected, base, errors):
    """What errors say to a claim; see `VERDICT_NOTE`.

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
    'no difference'
    """
    if not base or not errors:
        return "not run"
    found = differences(base, errors)
    if len(found) < LEAST_SEEDS:
        return f"undecided (n = {len(found)})"
    direction = _direction(found, statistics.stdev(base.values()))
    if direction is None:
        return "no difference"
    if expected is None:
        return direction
    return "holds" if direction == expected else "contradicted"


def _direction(differences, least):
    """Where errors go on each seed and by more than `least`, or `None`."""
    mean = statistics.mean(differences)
    for name, sign in (("higher", 1), ("lower", -1)):
        if all(sign * d > 0 for d in differences) and sign * mean > least:
            return name
    return None


def _last_errors(g):
    return {} if g is None else g.by_seed("last_error")


def _measured(g, results):
    """Errors of a group and how many of its runs lost a class, as texts."""
    if g is None:
        return MISSING, MISSING, MISSING
    errors = (g.error(key) for key in ("chosen_error", "last_error"))
    return *map(str, errors), lost_text(g.records, results)
