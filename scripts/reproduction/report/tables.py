"""Tables: rows are named runs, columns named functions of them."""

import re
from functools import partial

import pandas as pd

from reproduction.report import run_frame
from reproduction.report.estimates import MISSING, Estimate, between
from reproduction.report.published import BASELINE, GAR, published_error


def table(rows, columns):
    """A table of texts.

    Args:
        rows: Runs by the name of their row, selections of what `read_runs`
            gives. Those without a run are left out.
        columns: Functions of such runs, which return a text, by heading.

    Returns:
        A DataFrame of texts. The names of its rows are links to the runs.
    """
    cells = {
        linked(name, g): {heading: cell(g) for heading, cell in columns.items()}
        for name, g in rows.items()
        if len(g)
    }
    return pd.DataFrame.from_dict(cells, "index", columns=[*columns])


def linked(name, g):
    """A name with links to its runs, in Markdown."""
    links = run_frame.links(g)
    if len(links) < 2:
        return "".join(f"[{name}]({link})" for link in links) or name
    numbered = (f"[{i}]({link})" for i, link in enumerate(links, start=1))
    return f"{name} ({', '.join(numbered)})"


def markdown(cells, notes=(), title=""):
    """A table in Markdown, below its title, with notes below; or nothing.

    Columns without a figure are left out. Figures go to the right.

    Example:

    >>> print(markdown(pd.DataFrame({"a": ["x", "y"], "b": ["1.5", "-"]},
    ...                             ["GAR", "VAT"])), end="")
    |  | a | b |
    | --- | --- | ---: |
    | GAR | x | 1.5 |
    | VAT | y | - |
    """
    if not len(cells):
        return ""
    cells = cells.loc[:, (cells != MISSING).any()]
    figures = [cells[name].str.match(r"\[?[-+]?\d|-$").all() for name in cells]
    lines = [
        ["", *cells],
        ["---", *("---:" if right else "---" for right in figures)],
        *map(list, cells.itertuples()),
    ]
    text = [f"| {' | '.join(line)} |" for line in lines]
    if title:
        text = [f"**{title}**", "", *text]
    if notes:
        text += ["", *(f"- {note}" for note in notes)]
    return "\n".join([*text, ""])


def in_terminal(cells, notes=(), title=""):
    """The same as it is printed: without links, notes and empty columns."""

    def plain(name):
        name = re.sub(r"\[(.*)\]\(.*\)| \(\[1\]\(.*\)$", r"\1", name)
        return name.strip("*")

    cells = cells.loc[:, (cells != MISSING).any()]
    cells = cells.rename(index=plain, columns=plain)
    return f"{title}\n{cells.to_string(line_width=120)}\n"


# Columns.


def figure(name, n=False):
    """The column of an error by its name; `n` shows the number of seeds."""

    def cell(g):
        if not len(g) or g[name].isna().any():
            return MISSING
        estimate = Estimate.of(g[name])
        return str(estimate) if n else estimate.text()

    return cell


def difference(errors, others):
    """The mean difference of errors, seed by seed, where both are known."""
    found = (errors - others).dropna()
    return Estimate.of(found) if len(found) else None


def signed(estimate):
    """A difference as text, with the number of seeds that it is of."""
    if estimate is None:
        return MISSING
    return f"{estimate.text('+')} (n = {estimate.n})"


def lost(g):
    """Runs that lost a class, and the chosen error without them."""
    sound = run_frame.without_lost(g)
    without = f"; without {figure('chosen')(sound)}" if len(sound) else ""
    return run_frame.lost(g) + without


def made_on(rows):
    """Notes on the precision, the backend and the machines of rows."""
    return notes_by(
        lambda g: ", ".join(
            [*g[run_frame.HARDWARE].iloc[0], run_frame.hardware(g)]
        ),
        rows,
    )


def notes_by(text, rows):
    """Notes of rows: a text of their runs, with the names that it is true of.

    Where it is of all rows, it is alone.
    """
    named = {}
    for name, g in rows.items():
        if len(g):
            named.setdefault(text(g), []).append(name)
    if len(named) == 1:
        return [*named]
    return [f"{found}: {'; '.join(names)}" for found, names in named.items()]


# The tables of the paper.


def representative(frame, column):
    """The runs that stand for a column of a table; no run if there are none.

    Of the experiments with the paper's settings it is the one of most runs,
    among those long enough for the mean of the last epochs, then the longest.
    """
    found = (largest(frame, cell) for cell in (column.cell, column.stand_in))
    return next(filter(len, found), frame[:0])


def experiments(frame, cell, differs=""):
    """A cell's experiments with some settings, the one of most runs first."""
    found = frame[(frame.cell == cell) & (frame.differs == differs)]
    return sorted(run_frame.groups(found), key=run_frame.size, reverse=True)


def largest(frame, cell):
    """Of a cell's experiments with the paper's settings that of most runs."""
    found = experiments(frame, cell)
    return found[0] if found else frame[:0]


def with_other(frame, setting, g):
    """Both errors in the cell of some runs with another setting."""
    return in_one_cell(experiments(frame, g.cell.iloc[0], setting)[:1])


def longer_runs(frame, g):
    """Experiments in the cell of some runs that have more epochs than these."""
    return experiments(frame[frame.epochs > g.epochs.iloc[0]], g.cell.iloc[0])


def in_one_cell(found):
    """Both errors of experiments, and which runs they are of."""
    return "; ".join(map(_both_errors, found)) or MISSING


def _both_errors(g):
    texts = [
        figure("chosen")(g),
        figure("last", n=True)(g),
        run_frame.epochs(g),
        run_frame.which_seeds(g),
    ]
    if g.lost.eq(True).any():
        texts.append(f"{run_frame.lost(g)} lost a class")
    return linked(", ".join(texts), g)


def above_paper(g, name="chosen"):
    """Welch's interval of an error less the paper's, or `None`."""
    if not len(g) or g[name].isna().any():
        return None
    paper = published_error(g.cell.iloc[0])
    return paper and Estimate.of(g[name]).interval_above(paper)


def shown(g, name="chosen"):
    """Whether an error is shown to be another one than the paper's."""
    parts = (g, run_frame.without_lost(g))
    intervals = filter(None, [above_paper(part, name) for part in parts])
    texts = ["no" if low <= 0 <= high else "yes" for low, high in intervals]
    return "; without lost runs: ".join(texts) or MISSING


_EPOCHS = "Epochs of both stages, ours"
_LONGER = "more epochs: chosen and last epoch"
# Below the table, never in place of the paper's.
_SETTINGS = {
    "balance of column sums: chosen and last epoch": "balance of column sums",
    "clip and warm-up of the default: chosen and last epoch": (
        "warmup steps 100, global clipnorm 1.0"
    ),
}

# Below the paper's rows: our errors, and what else is told of the runs.
ERRORS = {
    f"{BASELINE}, ours": figure("stage_1", n=True),
    f"{GAR}, ours, epoch chosen by validation": figure("chosen", n=True),
    f"{GAR}, ours, last epoch": figure("last", n=True),
    f"{GAR}, ours, mean of the last {run_frame.LATE} epochs": figure(
        "last_20", n=True
    ),
}
DETAILS = {
    _EPOCHS: run_frame.epochs,
    "difference from the paper's shown?": shown,
    "its 95 % interval (Welch's)": lambda g: between(above_paper(g)),
    "where no class is lost": lambda g: between(
        above_paper(run_frame.without_lost(g))
    ),
    f"shown over the last {run_frame.LATE} epochs?": lambda g: shown(
        g, "last_20"
    ),
    "runs that lost a class": lost,
    "runs with a warning": run_frame.warned,
    "data": lambda g: g.title.iloc[0],
    "seeds": run_frame.seeds,
    "made on": lambda g: f"{g.precision.iloc[0]}, {run_frame.hardware(g)}",
    "minutes a run": run_frame.minutes,
}


def paper_rows(paper):
    """The paper's own rows of a table, a column each by its heading."""
    rows = {
        f"{name}, paper" if name in (BASELINE, GAR) else name: [
            figure.text() if figure else MISSING for figure in figures
        ]
        for name, figures in paper.rows.items()
    }
    headings = [column.heading for column in paper.columns]
    return pd.DataFrame.from_dict(rows, "index", columns=headings)


def paper_table(paper, frame):
    """A table of the paper with rows on our runs below; empty without a run.

    These are the arguments of `markdown` and `in_terminal`.
    """
    found = {c.heading: representative(frame, c) for c in paper.columns}
    columns = {f"**{name}**": cell for name, cell in ERRORS.items()} | DETAILS
    columns[_LONGER] = lambda g: in_one_cell(longer_runs(frame, g))
    for name, setting in _SETTINGS.items():
        columns[name] = partial(with_other, frame, setting)
    ours = table(found, columns).T
    if ours.empty:
        return ours, (), paper.title
    headings = {name: linked(name, g) for name, g in found.items()}
    cells = pd.concat([paper_rows(paper).rename(columns=headings), ours])
    cells = cells.fillna(MISSING)
    return cells[(cells != MISSING).any(axis=1)], (), paper.title


def shown_table(paper, frame):
    """Of a table of the paper the errors in the columns that runs fill.

    Those of the runs come first, then the paper's own, then others.
    """
    cells, notes, title = paper_table(paper, frame)
    if len(cells):
        cells = cells.loc[:_EPOCHS, cells.loc[_EPOCHS] != MISSING]
        theirs = len(paper.rows)
        cells = pd.concat([cells[theirs:], cells[:theirs][::-1]])
    return cells[(cells != MISSING).any(axis=1)], notes, title
