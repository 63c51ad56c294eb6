"""Tables: rows are named runs, columns named functions of them.

A table is a DataFrame of texts, which `markdown` and `in_terminal` write with
its notes and its title.
"""

import re

import pandas as pd

from reproduction.report import run_frame
from reproduction.report.estimates import MISSING, Estimate
from reproduction.report.published import BASELINE, GAR
from reproduction.settings import PAPER


def table(rows, columns):
    """A table of texts.

    Args:
        rows: List of pairs: the name of a row, and what it is about.
        columns: Functions of what a row is about, which return a text, by
            heading.
    """
    cells = [
        {heading: cell(row) for heading, cell in columns.items()}
        for _, row in rows
    ]
    return pd.DataFrame(cells, [name for name, _ in rows], [*columns])


def table_of_runs(runs, columns):
    """A `table` of runs by name: each name is a link, no run makes no row."""
    rows = [
        (run_frame.linked(name, g), g) for name, g in runs.items() if len(g)
    ]
    return table(rows, columns)


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
    if not len(cells):
        return ""

    def plain(name):
        name = re.sub(r"\[(.*)\]\(.*\)| \(\[1\]\(.*\)$", r"\1", name)
        return name.strip("*")

    cells = cells.loc[:, (cells != MISSING).any()]
    cells = cells.rename(index=plain, columns=plain)
    return f"{title}\n{cells.to_string(line_width=120)}\n\n"


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
    text = run_frame.of_known(g.lost)
    kept = g[~g.lost.eq(True)]
    if 0 < len(kept) < len(g):
        text += f"; without {figure('chosen')(kept)}"
    return text


# Columns of the index of a results folder, and of a user's runs.
RUN_COLUMNS = {
    "data": run_frame.task,
    "method": lambda g: g.method.iloc[0],
    "what differs, but for epochs": lambda g: g.differs.iloc[0] or MISSING,
    "seeds": run_frame.seeds,
    "after stage 1": figure("stage_1"),
    "chosen epoch": figure("chosen"),
    "last epoch": figure("last"),
    "lost a class": lambda g: run_frame.of_known(g.lost),
    "hardware": run_frame.hardware,
}


# The tables of the paper.


def runs_of_cell(frame, column, differs=""):
    """The runs that fill a column of a table: a list of runs to be compared.

    Of the lengths with the paper's settings, or with what `differs` from these
    in words, it is the paper's, if there is one, else that of the largest
    experiment. Of this length each experiment is in the list once for each
    device, the largest first.
    """
    usual = frame[frame.differs == differs]
    found = usual[usual.cell == column.cell]
    if found.empty:
        found = usual[usual.cell == column.stand_in]
    groups = [
        g
        for experiment in run_frame.by_folder(found).values()
        for _, g in experiment.groupby("device")
    ]
    paper = PAPER[column.cell]
    papers = f"{paper.pretrain_epochs} + {paper.epochs}"
    groups.sort(
        key=lambda g: (run_frame.epochs(g) == papers, run_frame.size(g)),
        reverse=True,
    )
    epochs = run_frame.epochs
    return [g for g in groups if epochs(g) == epochs(groups[0])]


def paper_table(paper, frame):
    """A table of the paper with rows on our runs above; empty without a run.

    A column has the first runs of `runs_of_cell`. These are the arguments of
    `markdown` and `in_terminal`.
    """
    late = f"mean of the last {run_frame.LATE} epochs"
    ours = {
        f"**{BASELINE}, ours**": figure("stage_1", n=True),
        f"**{GAR}, ours, epoch chosen by validation**": figure(
            "chosen", n=True
        ),
        f"**{GAR}, ours, last epoch**": figure("last", n=True),
        f"**{GAR}, ours, {late}**": figure("last_20", n=True),
        "Epochs of both stages, ours": run_frame.epochs,
        "Device, ours": lambda g: g.device.iloc[0],
        "Runs that lost a class": lost,
        "Data": lambda g: g.title.iloc[0],
    }
    of_z = f"**{GAR}, ours, Frobenius term of Z as in their code, last epoch**"
    theirs = {
        f"{name}, paper" if name in (BASELINE, GAR) else name: estimates
        for name, estimates in reversed(paper.rows.items())
    }
    columns = {}
    is_empty = True
    for k, column in enumerate(paper.columns):
        heading = column.heading
        cells = dict.fromkeys([*ours, of_z], MISSING)
        for g in runs_of_cell(frame, column)[:1]:
            is_empty = False
            heading = run_frame.linked(heading, g)
            cells |= {name: cell(g) for name, cell in ours.items()}
        for g in runs_of_cell(frame, column, "frobenius of Z")[:1]:
            is_empty = False
            error = figure("last", n=True)(g)
            cells[of_z] = f"{error}, {run_frame.epochs(g)} epochs"
        for name, estimates in theirs.items():
            cells[name] = estimates[k].text() if estimates[k] else MISSING
        columns[heading] = cells
    if is_empty:
        return pd.DataFrame(), (), paper.title
    cells = pd.DataFrame(columns)
    return cells[(cells != MISSING).any(axis=1)], (), paper.title
