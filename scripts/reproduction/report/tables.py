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
    text, kept = run_frame.of_known("lost")(g), run_frame.sound(g)
    if 0 < len(kept) < len(g):
        text += f"; without {figure('chosen')(kept)}"
    return text


# The tables of the paper.


def runs_of_cell(frame, column):
    """The runs that fill a column of a table: a list of runs to be compared.

    Of the lengths with the paper's settings it is the paper's, if there is one,
    else that of the largest experiment. Of this length each experiment is in
    the list once for each device, the largest first.
    """
    usual = frame[frame.differs == ""]
    found = usual[usual.cell == column.cell]
    if found.empty:
        found = usual[usual.cell == column.stand_in]
    groups = [
        g
        for experiment in run_frame.by_folder(found).values()
        for _, g in experiment.groupby("device")
    ]

    def order(g):
        e = g.experiment.iloc[0]
        length = type(e).pretrain_epochs, column.epochs
        return (e.pretrain_epochs, e.epochs) == length, run_frame.size(g)

    groups.sort(key=order, reverse=True)
    epochs = run_frame.epochs
    return [g for g in groups if epochs(g) == epochs(groups[0])]


def paper_table(paper, frame):
    """A table of the paper with rows on our runs above; empty without a run.

    A column has the first runs of `runs_of_cell`. These are the arguments of
    `markdown` and `in_terminal`.
    """
    late = f"mean of the last {run_frame.LATE} epochs"
    errors = {
        f"{BASELINE}, ours": "stage_1",
        f"{GAR}, ours, epoch chosen by validation": "chosen",
        f"{GAR}, ours, last epoch": "last",
        f"{GAR}, ours, {late}": "last_20",
    }
    ours, links = {}, {}
    for column in paper.columns:
        for g in runs_of_cell(frame, column)[:1]:
            links[column.heading] = run_frame.linked(column.heading, g)
            ours[column.heading] = {
                f"**{name}**": figure(error, n=True)(g)
                for name, error in errors.items()
            } | {
                "Epochs of both stages, ours": run_frame.epochs(g),
                "Runs that lost a class": lost(g),
                "Data": g.title.iloc[0],
            }
    if not ours:
        return pd.DataFrame(), (), paper.title
    theirs = {
        f"{name}, paper" if name in (BASELINE, GAR) else name: [
            estimate.text() if estimate else MISSING for estimate in estimates
        ]
        for name, estimates in reversed(paper.rows.items())
    }
    headings = [column.heading for column in paper.columns]
    cells = pd.concat(
        [
            pd.DataFrame(ours, columns=headings),
            pd.DataFrame.from_dict(theirs, "index", columns=headings),
        ]
    ).fillna(MISSING)
    cells = cells[(cells != MISSING).any(axis=1)]
    return cells.rename(columns=links), (), paper.title
