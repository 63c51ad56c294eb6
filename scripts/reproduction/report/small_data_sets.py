"""Where GAR helps: small data sets, each method and the pretraining."""

import pandas as pd

from reproduction.methods import METHODS
from reproduction.report import run_frame
from reproduction.report.estimates import MISSING, Estimate, between
from reproduction.report.tables import markdown, table
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
    """The errors in the last epoch of what `where` gives, a row a data set."""

    def start(g):
        known = g.groupby("seed").start.first().dropna()
        return Estimate.of(known).text() if len(known) else MISSING

    def last(g):
        fewer = f" (n = {len(g)})" if len(g) < SEEDS else ""
        return Estimate.of(g["last"]).text() + fewer

    return _by_method(found, start, last)


def rare_errors(frame):
    """Errors and balanced errors with a rare class, a row a data set."""

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
    """A table with a row a data set: a function of its runs, one a method."""
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
    rank = found.pivot_table("last", "dataset", "method").rank(axis=1)

    def below(g):
        means = g.groupby("dataset").change.mean().dropna()
        return str((means < 0).sum()) if len(means) else MISSING

    def harmed(g):
        known = g.change.dropna()
        return (
            f"{(known > HARM).sum()} of {len(known)}" if len(known) else MISSING
        )

    columns = {
        "data sets": lambda g: str(g.dataset.nunique()),
        "first or second": lambda g: str((rank[g.method.iloc[0]] <= 2).sum()),
        "mean rank": lambda g: f"{rank[g.method.iloc[0]].mean():.1f}",
        "mean below pretraining": below,
        f"runs above it by more than {HARM:g} point": harmed,
    }
    return markdown(table(_of_methods(found), columns))


def rare_changes(frame):
    """How far each method ends above its start with a rare class."""
    unprotected = where(frame, RARE, [SAFE], protects_rare_classes=False)
    rows = [*_of_methods(where(frame, RARE)), (UNPROTECTED, unprotected)]
    rows = [(title, g[g.balanced_last.notna()]) for title, g in rows]
    columns = {
        "runs": lambda g: str(len(g)),
        "error": lambda g: f"{g.change.mean():+.2f}",
        "balanced error": lambda g: (
            f"{(g.balanced_last - g.balanced_stage_1).mean():+.2f}"
        ),
        f"above by more than {HARM:g} point": lambda g: str(
            (g.change > HARM).sum()
        ),
        f"below by more than {HARM:g} point": lambda g: str(
            (g.change < -HARM).sum()
        ),
    }
    return markdown(table([row for row in rows if len(row[1])], columns))


def _of_methods(found):
    """The runs of each method by its title, in the order of the methods."""
    of_method = {name: found[found.method == name] for name in METHODS}
    return [(TITLES[name], g) for name, g in of_method.items() if len(g)]
