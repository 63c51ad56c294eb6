"""Where GAR helps: small data sets, each method beside the pretraining."""

import pandas as pd

from reproduction.methods import METHODS
from reproduction.report import run_frame
from reproduction.report.estimates import MISSING, Estimate, between
from reproduction.report.tables import linked, made_on, markdown
from reproduction.settings import FREE, RARE, SMALL

# Points by which a run that ends above its start is told as harmed.
HARM = 1.0
SEEDS = 5
START = "Pretraining"
SAFE, PAPER = "safe-gar", "gar"
UNPROTECTED = "GAR, safe default without protection of rare classes"


def where(frame, data_sets=SMALL, methods=METHODS, **changes):
    """The runs of each method on data sets, with the error they began with.

    Of several experiments with its settings it is the largest. A method without
    a network is beside the start of the others with its seed, if there is one.
    The `changes` are in the settings of the method's first term.
    """
    chosen = []
    for name, e in data_sets.items():
        own = frame[frame.dataset == name]
        for method in methods:
            found = run_frame.like(
                own, e.with_method(method).with_term(**changes), FREE
            )
            chosen += [*run_frame.largest(found).index]
    found = frame.loc[sorted(chosen)]
    own = found.stage_1.astype(float)
    others = own.groupby([found.dataset, found.seed]).transform("max")
    start = own.fillna(others)
    return found.assign(start=start, change=found["last"] - start)


def errors(found):
    """The errors in the last epoch of what `where` gives, a row a data set."""
    rows = {
        title: {START: _mean(g.groupby("seed").start.first())}
        | {_title(m): _error(g[g.method == m]) for m in _methods(found)}
        for title, g in found.groupby("title", sort=False)
    }
    return markdown(pd.DataFrame.from_dict(rows, "index"), made_on({"": found}))


def changes(found):
    """How far the two GARs end above pretraining, with intervals."""
    rows = {}
    for title, g in found.groupby("title", sort=False):
        rows[title] = cells = {}
        for method in (PAPER, SAFE):
            change = g.change[g.method == method]
            if change.empty:
                continue
            mean = Estimate.of(change)
            text = f"{mean.mean:+.1f} ({between(mean.interval())})"
            cells[_title(method)] = text
            cells[f"{_title(method)}, worst seed"] = f"{change.max():+.1f}"
    return markdown(pd.DataFrame.from_dict(rows, "index").fillna(MISSING))


def ranks(found):
    """A row a method: its ranks among the methods, and the harm it does."""
    if not len(found):
        return ""
    means = found.pivot_table("last", "dataset", "method")
    rank = means.rank(axis=1)
    rows = {}
    for name in _methods(found):
        g = found[found.method == name]
        rows[_title(name)] = cells = {
            "data sets": str(g.dataset.nunique()),
            "first or second": str(int((rank[name] <= 2).sum())),
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
    found = where(frame, RARE)
    found = found[found.balanced_last.notna()]
    rows = {}
    for title, g in found.groupby("title", sort=False):
        start = g.groupby("seed")[["start", "balanced_stage_1"]].first()
        rows[title] = {START: _both(start)}
        for name in _methods(found):
            own = g[g.method == name]
            if len(own):
                text = _both(own[["last", "balanced_last"]])
                rows[title][_title(name)] = linked(text, own)
    table = pd.DataFrame.from_dict(rows, "index").fillna(MISSING)
    return markdown(table, made_on({"": found}))


def rare_changes(frame):
    """How far each method ends above its start with a rare class."""
    found = where(frame, RARE)
    groups = {_title(name): found[found.method == name] for name in METHODS}
    unprotected = {"protects_rare_classes": False}
    groups[UNPROTECTED] = where(frame, RARE, [SAFE], **unprotected)
    rows = {}
    for title, g in groups.items():
        g = g[g.balanced_last.notna()]
        if not len(g):
            continue
        balanced = g.balanced_last - g.balanced_stage_1
        rows[title] = {
            "runs": str(len(g)),
            "error": f"{g.change.mean():+.2f}",
            "balanced error": f"{balanced.mean():+.2f}",
            f"above by more than {HARM:g} point": str((g.change > HARM).sum()),
            f"below by more than {HARM:g} point": str((g.change < -HARM).sum()),
        }
    return markdown(pd.DataFrame.from_dict(rows, "index"))


def _both(errors):
    """Means of errors and of balanced errors: `2.10 / 7.90`."""
    return " / ".join(f"{mean:.2f}" for mean in errors.mean())


def _methods(found):
    return [name for name in METHODS if name in set(found.method)]


def _title(name):
    return "GAR, the paper's" if name == PAPER else METHODS[name].title


def _mean(errors):
    """The mean of those errors that are known."""
    known = errors.dropna()
    return Estimate.of(known).text() if len(known) else MISSING


def _error(own):
    if own.empty:
        return MISSING
    fewer = f" (n = {len(own)})" if len(own) < SEEDS else ""
    return linked(Estimate.of(own["last"]).text() + fewer, own)
