"""Tables: rows are named runs, columns named functions of them."""

import re

import pandas as pd

from reproduction.report import run_frame
from reproduction.report.estimates import MISSING, Estimate
from reproduction.report.published import BASELINE, GAR


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


def in_cell(frame, cell, differs=""):
    """The runs of a cell with some settings, by default the paper's."""
    return frame[(frame.cell == cell) & (frame.differs == differs)]


def runs_of_cell(frame, column):
    """The runs that fill a column of a table: a list of runs to be compared.

    Of the lengths with the paper's settings it is the paper's, if there is one,
    else that of the largest experiment. Of this length each experiment is in
    the list once for each device, the largest first.
    """
    found = in_cell(frame, column.cell)
    if found.empty:
        found = in_cell(frame, column.stand_in)
    groups = [
        g
        for experiment in run_frame.experiments(found)
        for _, g in experiment.groupby("device")
    ]

    def order(g):
        e = g.experiment.iloc[0]
        usual = type(e).pretrain_epochs, column.epochs
        return (e.pretrain_epochs, e.epochs) == usual, run_frame.size(g)

    groups.sort(key=order, reverse=True)
    length = ["pretrain_epochs", "epochs"]
    return [
        g
        for g in groups
        if (g[length].iloc[0] == groups[0][length].iloc[0]).all()
    ]


# The row between our errors and what else is told of our runs.
_EPOCHS = "Epochs of both stages, ours"


def paper_table(paper, frame):
    """A table of the paper with rows on our runs below; empty without a run.

    A column has the first runs of `runs_of_cell`. These are the arguments of
    `markdown` and `in_terminal`.
    """
    theirs = {
        f"{name}, paper" if name in (BASELINE, GAR) else name: [
            estimate.text() if estimate else MISSING for estimate in estimates
        ]
        for name, estimates in paper.rows.items()
    }
    headings = [column.heading for column in paper.columns]
    late = f"mean of the last {run_frame.LATE} epochs"
    ours, links = {}, {}
    for column in paper.columns:
        for g in runs_of_cell(frame, column)[:1]:
            links[column.heading] = run_frame.linked(column.heading, g)
            ours[column.heading] = {
                f"**{name}**": figure(error, n=True)(g)
                for name, error in (
                    (f"{BASELINE}, ours", "stage_1"),
                    (f"{GAR}, ours, epoch chosen by validation", "chosen"),
                    (f"{GAR}, ours, last epoch", "last"),
                    (f"{GAR}, ours, {late}", "last_20"),
                )
            } | {
                _EPOCHS: run_frame.epochs(g),
                "runs that lost a class": lost(g),
                "runs with a warning": run_frame.of_known("warnings")(g),
                "data": g.title.iloc[0],
                "seeds": run_frame.seeds(g),
                "made on": f"{g.precision.iloc[0]}, {run_frame.hardware(g)}",
                "hours a run": f"{g.minutes.mean() / 60:.1f}",
            }
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
