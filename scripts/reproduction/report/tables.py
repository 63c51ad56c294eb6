"""Tables: rows are named runs, columns named functions of them."""

import re

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
        run_frame.linked(name, g): {
            heading: cell(g) for heading, cell in columns.items()
        }
        for name, g in rows.items()
        if len(g)
    }
    return pd.DataFrame.from_dict(cells, "index", columns=[*columns])


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
        if g.empty or g[name].isna().any():
            return MISSING
        estimate = Estimate.of(g[name])
        return str(estimate) if n else estimate.text()

    return cell


def change(differences):
    """The mean of the differences that are known, with its sign."""
    known = differences.dropna()
    if known.empty:
        return MISSING
    return f"{Estimate.of(known).text('+')} (n = {len(known)})"


def lost(g):
    """Runs that lost a class, and the chosen error without them."""
    sound = run_frame.without_lost(g)
    without = f"; without {figure('chosen')(sound)}" if len(sound) else ""
    return run_frame.of_known("lost")(g) + without


def above_paper(g, name="chosen"):
    """Welch's interval of an error less the paper's, or `None`."""
    if g.empty or g[name].isna().any():
        return None
    paper = published_error(g.cell.iloc[0])
    return paper and Estimate.of(g[name]).interval_above(paper)


def shown(g, name="chosen"):
    """Whether an error is shown to be another one than the paper's."""
    parts = (g, run_frame.without_lost(g))
    intervals = filter(None, [above_paper(part, name) for part in parts])
    texts = ["no" if low <= 0 <= high else "yes" for low, high in intervals]
    return "; without lost runs: ".join(texts) or MISSING


# Notes below a table.


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
    found = in_cell(frame, column.cell)
    if found.empty:
        found = in_cell(frame, column.stand_in)
    return run_frame.largest(found)


def in_cell(frame, cell, differs=""):
    """The runs of a cell with some settings, by default the paper's."""
    return frame[(frame.cell == cell) & (frame.differs == differs)]


def longer_runs(frame, g):
    """Experiments in the cell of some runs that have more epochs than these."""
    longer = frame[frame.epochs > g.epochs.iloc[0]]
    return run_frame.experiments(in_cell(longer, g.cell.iloc[0]))


# The row between our errors and what else is told of our runs.
_EPOCHS = "Epochs of both stages, ours"


def our_rows(frame, g):
    """What stands below the paper's rows on some runs, which fill a column."""
    sound = run_frame.without_lost(g)
    minutes = [f"{end:.0f}" for end in (g.minutes.min(), g.minutes.max())]
    found = {
        f"**{BASELINE}, ours**": figure("stage_1", n=True)(g),
        f"**{GAR}, ours, epoch chosen by validation**": figure(
            "chosen", n=True
        )(g),
        f"**{GAR}, ours, last epoch**": figure("last", n=True)(g),
        f"**{GAR}, ours, mean of the last {run_frame.LATE} epochs**": figure(
            "last_20", n=True
        )(g),
        _EPOCHS: run_frame.epochs(g),
        "difference from the paper's shown?": shown(g),
        "its 95 % interval (Welch's)": between(above_paper(g)),
        "where no class is lost": between(above_paper(sound)),
        f"shown over the last {run_frame.LATE} epochs?": shown(g, "last_20"),
        "runs that lost a class": lost(g),
        "runs with a warning": run_frame.of_known("warnings")(g),
        "data": g.title.iloc[0],
        "seeds": run_frame.seeds(g),
        "made on": f"{g.precision.iloc[0]}, {run_frame.hardware(g)}",
        "minutes a run": " to ".join(dict.fromkeys(minutes)),
    }
    others = {"more epochs": longer_runs(frame, g)}
    # Other settings: below the table, never in place of the paper's.
    for name, differs in (
        ("balance of column sums", "balance of column sums"),
        (
            "clip and warm-up of the default",
            "warmup steps 100, global clipnorm 1.0",
        ),
    ):
        others[name] = run_frame.experiments(
            in_cell(frame, g.cell.iloc[0], differs)
        )[:1]
    for name, runs in others.items():
        texts = map(_both_errors, runs)
        found[f"{name}: chosen and last epoch"] = "; ".join(texts) or MISSING
    return found


def _both_errors(g):
    """Both errors of an experiment, and which runs they are of."""
    chosen, last = figure("chosen")(g), figure("last", n=True)(g)
    texts = [chosen, last, run_frame.epochs(g), run_frame.which_seeds(g)]
    if g.lost.eq(True).any():
        texts.append(f"{run_frame.of_known('lost')(g)} lost a class")
    return run_frame.linked(", ".join(texts), g)


def paper_table(paper, frame):
    """A table of the paper with rows on our runs below; empty without a run.

    These are the arguments of `markdown` and `in_terminal`.
    """
    theirs = {
        f"{name}, paper" if name in (BASELINE, GAR) else name: [
            estimate.text() if estimate else MISSING for estimate in estimates
        ]
        for name, estimates in paper.rows.items()
    }
    headings = [column.heading for column in paper.columns]
    ours, links = {}, {}
    for column in paper.columns:
        g = representative(frame, column)
        if len(g):
            ours[column.heading] = our_rows(frame, g)
            links[column.heading] = run_frame.linked(column.heading, g)
    if not ours:
        return pd.DataFrame(), (), paper.title
    cells = pd.concat(
        [
            pd.DataFrame.from_dict(theirs, "index", columns=headings),
            pd.DataFrame(ours, columns=headings),
        ]
    ).fillna(MISSING)
    cells = cells[(cells != MISSING).any(axis=1)]
    return cells.rename(columns=links), (), paper.title


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
