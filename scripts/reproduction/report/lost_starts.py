"""How many starts lose a class, by the loss of stage 2."""

from dataclasses import replace

from scipy import stats

from reproduction.report import run_frame
from reproduction.report.cells import lost_in
from reproduction.report.estimates import MISSING, Estimate
from reproduction.report.tables import markdown, table_of_runs
from reproduction.settings import TABLE_1
from reproduction.studies import CURE

PAPER = "the paper's: Frobenius term of B"
CLASSES = 10

# MNIST with 100 labels, after all of stage 1.
MNIST = TABLE_1[100]
OF_Z = MNIST.with_term(frobenius_of="Z")
SUMS_OF_Z = OF_Z.with_term(balance_of="column sums")
LOSSES = {
    PAPER: MNIST,
    "Frobenius term of Z, as in the authors' code": OF_Z,
    "column sums of B": MNIST.with_term(balance_of="column sums"),
    "column sums of B, Frobenius term of Z": SUMS_OF_Z,
    "Frobenius term of B, clip of 1 and warm-up": replace(MNIST, **CURE),
}

# How a run went on from the end of stage 1 is no part of the start.
ANY = [*run_frame.HARDWARE, "epochs", "restart"]

# Runs with the same errors of all networks began with one end of stage 1.
START = ["seed", "stage_1", "val_stage_1"]


def starts(frame, loss):
    """The longest run from each end of stage 1 with a loss of `LOSSES`.

    Their column `lost` says whether a class was lost in its last epoch. Runs
    that do not tell are left out.
    """
    found = run_frame.like(frame, LOSSES[loss], ANY)
    found = found.assign(lost=lost_in(found, CLASSES)).dropna(subset="lost")
    found = found.sort_values("epochs", kind="stable")
    return found.drop_duplicates(START, keep="last")


def interval(lost):
    """The 95 % interval of a share of lost starts, Clopper and Pearson's.

    Example:

    >>> interval([True] + 9 * [False])
    '0.3 to 44.5 %'
    """
    test = stats.binomtest(int(sum(lost)), len(lost))
    low, high = test.proportion_ci(method="exact")
    return f"{100 * low:.1f} to {100 * high:.1f} %"


def lost_line(frame):
    """The rate of the paper's loss as a sentence."""
    g = that_ran_on(starts(frame, PAPER))
    if g.empty:
        return ""
    by_device = ", ".join(
        f"{run_frame.of_known(lost)} on a {device}"
        for device, lost in g.groupby("device").lost
    )
    return (
        f"MNIST, 100 labels, the paper's loss: {run_frame.of_known(g.lost)} "
        f"starts, of {g.seed.nunique()} seeds, that ran for two epochs of "
        "stage 2 or more lost a class (95 % interval: "
        f"{interval(g.lost)}; {by_device}).\n"
    )


def that_ran_on(g):
    """Starts that were trained beyond the first epoch: some lose it later."""
    return g[g.epochs > 1]


def lost_classes(frame):
    """A table in Markdown: the starts that lost a class, a row for each loss.

    Losses are compared by the starts that both have.
    """
    usual = starts(frame, PAPER)[[*START, "lost", "curve"]]
    rows = {}
    for loss in LOSSES:
        # The paper's is compared with none.
        others = usual[:0] if loss == PAPER else usual
        g = starts(frame, loss)
        rows[loss] = g.merge(others, "left", START, suffixes=("", "_paper"))
    return markdown(table_of_runs(rows, COLUMNS))


def after_the_first_epoch(g):
    """Starts that lost a class by then, the length that all losses have."""
    in_use = g.curve.map(lambda c: c.get("classes_in_use", [None] * 2)[1])
    return run_frame.of_known(in_use.dropna() < CLASSES)


def first_errors_beside_the_paper_s(g):
    """The difference of the errors after an epoch, where both keep all."""
    pairs = g[g.lost.eq(False) & g.lost_paper.eq(False)]
    ours, theirs = (
        pairs[name].map(lambda curve: 100 * curve["test_error"][1])
        for name in ("curve", "curve_paper")
    )
    if pairs.empty:
        return MISSING
    difference = ours - theirs
    lower = f"lower in {(difference < 0).sum()}"
    return f"{Estimate.of(difference).text('+')} (n = {len(pairs)}, {lower})"


COLUMNS = {
    "lost a class": lambda g: run_frame.of_known(g.lost),
    "95 % interval": lambda g: interval(g.lost),
    "of those of two epochs or more": lambda g: run_frame.of_known(
        that_ran_on(g).lost
    ),
    "lost it where the paper's does": lambda g: run_frame.of_known(
        g.lost[g.lost_paper.eq(True)]
    ),
    "lost one where the paper's keeps all": lambda g: run_frame.of_known(
        g.lost[g.lost_paper.eq(False)]
    ),
    "lost by the end of epoch 1": after_the_first_epoch,
    "its error beside the paper's after epoch 1, where both keep all": (
        first_errors_beside_the_paper_s
    ),
    "seeds": run_frame.seeds,
    "epochs of stage 2": lambda g: " to ".join(
        map(str, dict.fromkeys([g.epochs.min(), g.epochs.max()]))
    ),
}
