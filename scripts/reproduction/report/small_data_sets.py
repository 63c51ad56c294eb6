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
    """Errors in the last epoch of what `where` gives, by data set."""

    def start(g):
        known = g.groupby("seed").start.first().dropna()
        return Estimate.of(known).text() if len(known) else MISSING

    def last(g):
        fewer = f" (n = {len(g)})" if len(g) < SEEDS else ""
        return Estimate.of(g["last"]).text() + fewer

    return _by_method(found, start, last)


def rare_errors(frame):
    """Errors and balanced errors with a rare class, a row for each data set."""

    def both(means):
        return " / ".join(f"{mean:.2f}" for mean in means)

    def start(g):
        pairs = g.groupby("seed")[["start", "balanced_stage_1"]].first()
        return both(pairs.mean())

    found = where(frame, RARE)
    found = found[found.balanced_last.notna()]
    return _by_method(
        found, start, lambda g: both(g[["last", "balanced_last"]].mean())
    )


def _by_method(found, start, cell):
    """A row for each data set; a cell is a function of a method's runs."""
    if found.empty:
        return ""
    cells = (
        found.groupby(["title", "method"])
        .apply(lambda g: run_frame.linked(cell(g), g), include_groups=False)
        .unstack()
    )
    cells = cells.reindex(
        index=found.title.unique(), columns=[m for m in METHODS if m in cells]
    )
    starts = found.groupby("title").apply(start, include_groups=False)
    cells.insert(0, "Pretraining", starts)
    cells = cells.rename(columns=TITLES).fillna(MISSING)
    return markdown(cells, [run_frame.made_on(found)])


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
    if found.empty:
        return ""
    rank = found.pivot_table("last", "dataset", "method").rank(axis=1)
    change = found.pivot_table("change", "dataset", "method")
    by_method = found.groupby("method")
    known = by_method.change.count()
    harmed = found.change.gt(HARM).groupby(found.method).sum()
    harmed = harmed.map(str) + " of " + known.map(str)
    cells = pd.DataFrame(
        {
            "data sets": by_method.dataset.nunique().map(str),
            "first or second": (rank <= 2).sum().map(str),
            "mean rank": rank.mean().map("{:.1f}".format),
            "mean below pretraining": (change < 0).sum().map(str),
            f"runs above it by more than {HARM:g} point": harmed[known > 0],
        }
    )
    cells = cells.reindex([name for name in METHODS if name in cells.index])
    return markdown(cells.rename(TITLES).fillna(MISSING))


def rare_changes(frame):
    """How far each method ends above its start with a rare class."""
    usual = where(frame, RARE)
    unprotected = where(frame, RARE, [SAFE], protects_rare_classes=False)
    found = pd.concat([usual, unprotected.assign(method=UNPROTECTED)])
    found = found[found.balanced_last.notna()]
    balanced = found.balanced_last - found.balanced_stage_1
    found = found.assign(
        balanced=balanced, above=found.change > HARM, below=found.change < -HARM
    )
    g = found.groupby("method")
    cells = pd.DataFrame(
        {
            "runs": g.size().map(str),
            "error": g.change.mean().map("{:+.2f}".format),
            "balanced error": g.balanced.mean().map("{:+.2f}".format),
            f"above by more than {HARM:g} point": g.above.sum().map(str),
            f"below by more than {HARM:g} point": g.below.sum().map(str),
        }
    )
    rows = [x for x in (*METHODS, UNPROTECTED) if x in cells.index]
    return markdown(cells.reindex(rows).rename(TITLES))
