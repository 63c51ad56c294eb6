"""Where GAR helps: small data sets, each method and the pretraining."""

import pandas as pd

from reproduction.methods import METHODS
from reproduction.report import run_frame
from reproduction.report.estimates import MISSING, Estimate, between
from reproduction.report.tables import markdown
from reproduction.settings import FREE, RARE, SMALL

# Points by which a run that ends above its start is told as harmed.
HARM = 1.0
SEEDS = 5
START = "Pretraining"
SAFE, PAPER = "safe-gar", "gar"
TITLES = {name: entry.title for name, entry in METHODS.items()}
TITLES[PAPER] = "GAR, the paper's"
UNPROTECTED = "GAR, safe default without protection of rare classes"


def where(frame, data_sets=SMALL, methods=METHODS, **changes):
    """The runs of each method on data sets, with the error they began with.

    Of several experiments with its settings it is the largest. A method without
    a network has the start of the others with its seed, if there is one.
    The `changes` are in the settings of the method's first term.
    """
    chosen = []
    for name, e in data_sets.items():
        of_data = frame[frame.dataset == name]
        for method in methods:
            arm = e.with_method(method).with_term(**changes)
            found = run_frame.like(of_data, arm, FREE)
            chosen += [*run_frame.largest(found).index]
    found = frame.loc[sorted(chosen)]
    others = found.groupby(["dataset", "seed"]).stage_1.transform("max")
    start = found.stage_1.fillna(others)
    return found.assign(start=start, change=found["last"] - start)


def errors(found):
    """The errors in the last epoch of what `where` gives, a row a data set."""

    def start(g):
        known = g.groupby("seed").start.first().dropna()
        return Estimate.of(known).text() if len(known) else MISSING

    def cell(g):
        fewer = f" (n = {len(g)})" if len(g) < SEEDS else ""
        return Estimate.of(g["last"]).text() + fewer

    return _by_method(found, start, cell)


def _by_method(found, start, cell):
    """A function of runs in a table: a row a data set, a column a method.

    The first column is another function, of all the runs on a data set.
    """
    rows = {}
    for title, g in found.groupby("title", sort=False):
        rows[title] = {START: start(g)}
        for name in METHODS:
            runs = g[g.method == name]
            if (found.method == name).any():
                rows[title][TITLES[name]] = (
                    run_frame.linked(cell(runs), runs) if len(runs) else MISSING
                )
    table = pd.DataFrame.from_dict(rows, "index")
    return markdown(table, [run_frame.made_on(found)])


def changes(found):
    """How far the two GARs end above pretraining, with intervals."""
    found = found[found.method.isin((PAPER, SAFE))]
    rows = {}
    for (title, method), g in found.groupby(["title", "method"], sort=False):
        interval = between(Estimate.of(g.change).interval())
        rows.setdefault(title, {}).update(
            {
                TITLES[method]: f"{g.change.mean():+.1f} ({interval})",
                f"{TITLES[method]}, worst seed": f"{g.change.max():+.1f}",
            }
        )
    return markdown(pd.DataFrame.from_dict(rows, "index").fillna(MISSING))


def ranks(found):
    """A row a method: its ranks among the methods, and the harm it does."""
    rank = found.pivot_table("last", "dataset", "method").rank(axis=1)
    rows = {}
    for name in METHODS:
        g = found[found.method == name]
        if g.empty:
            continue
        rows[TITLES[name]] = cells = {
            "data sets": str(g.dataset.nunique()),
            "first or second": str((rank[name] <= 2).sum()),
            "mean rank": f"{rank[name].mean():.1f}",
        }
        known = g.dropna(subset="change")
        if len(known):
            below = known.groupby("dataset").change.mean() < 0
            harmed = known.change > HARM
            cells |= {
                "mean below pretraining": str(below.sum()),
                f"runs above it by more than {HARM:g} point": (
                    f"{harmed.sum()} of {len(known)}"
                ),
            }
    return markdown(pd.DataFrame.from_dict(rows, "index").fillna(MISSING))


def rare_errors(frame):
    """Errors and balanced errors with a rare class, a row a data set."""

    def both(errors):
        return " / ".join(f"{mean:.2f}" for mean in errors.mean())

    def start(g):
        return both(g.groupby("seed")[["start", "balanced_stage_1"]].first())

    found = where(frame, RARE)
    found = found[found.balanced_last.notna()]
    return _by_method(
        found, start, lambda g: both(g[["last", "balanced_last"]])
    )


def rare_changes(frame):
    """How far each method ends above its start with a rare class."""
    found = where(frame, RARE)
    groups = {TITLES[name]: found[found.method == name] for name in METHODS}
    unprotected = {"protects_rare_classes": False}
    groups[UNPROTECTED] = where(frame, RARE, [SAFE], **unprotected)
    rows = {}
    for title, g in groups.items():
        g = g[g.balanced_last.notna()]
        if len(g):
            balanced = g.balanced_last - g.balanced_stage_1
            rows[title] = {
                "runs": str(len(g)),
                "error": f"{g.change.mean():+.2f}",
                "balanced error": f"{balanced.mean():+.2f}",
                f"above by more than {HARM:g} point": str(
                    (g.change > HARM).sum()
                ),
                f"below by more than {HARM:g} point": str(
                    (g.change < -HARM).sum()
                ),
            }
    return markdown(pd.DataFrame.from_dict(rows, "index"))
