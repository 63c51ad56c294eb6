"""The tables of the paper with our rows below."""

import math
from pathlib import Path

from gar_keras.experiments import folders
from gar_keras.experiments import records as record_files
from gar_keras.experiments.settings import PAPER, stands_for_paper
from gar_keras.report import layout
from gar_keras.report.beside import reference_beside
from gar_keras.report.groups import HARDWARE, LATE, but_for, group, size
from gar_keras.report.layout import MISSING
from gar_keras.report.lost import lost_text, seeds_lost, without_lost
from gar_keras.report.plots.curves import Runs, learning_curves
from gar_keras.report.plots.style import save
from gar_keras.report.published import (
    BASELINE,
    GAR,
    column_of,
    published_error,
)
from gar_keras.report.sources import linked
from gar_keras.utils import files, terminal


def run_rows(whose):
    """The rows of somebody's runs: what they show and the key in a record."""
    return {
        f"{BASELINE}, {whose}": "baseline_error",
        f"{GAR}, {whose}, epoch chosen by validation": "chosen_error",
        f"{GAR}, {whose}, last epoch": "last_error",
    }


# Below the paper's in the project's own tables.
OUR_ROWS = run_rows("ours")


def representative(records, column):
    """The group that stands for a column of a table, or `None`.

    Of the experiments with the paper's settings: the one whose runs have the
    most epochs of stage 2 together, then the one with the most epochs, then
    the one with the most epochs of stage 1. One with more runs takes its place
    if it has half as many epochs or more.
    """
    groups = _candidates(records, column)
    largest = max(groups, key=size, default=None)
    return max(
        (g for g in groups if _is_surer(g, largest)), key=size, default=largest
    )


def _is_surer(g, other):
    more_runs = len(g.records) > len(other.records)
    return more_runs and 2 * g.settings["epochs"] >= other.settings["epochs"]


def _candidates(records, column):
    """The groups that could stand for a column, of the stand-in if need be."""
    for cell in (column.cell, column.stand_in):
        groups = in_cell(group(records), cell)
        if groups:
            return groups
    return []


def in_cell(groups, cell):
    """The groups with the paper's settings in a cell of its tables.

    Those of a single epoch are left out where there are longer ones.
    """
    found = [
        g
        for g in groups
        if g.records[0]["cell"] == cell and stands_for_paper(g.settings, cell)
    ]
    return [g for g in found if g.settings["epochs"] > 1] or found


def table_rows(table, records, reference=(), results=None):
    """The cells of a table as text: a heading row, then a row a method.

    Args:
        table: A `Table` of the paper.
        records: Run records.
        reference: Records to compare them with: the rows say whose they are,
            with the epochs of both stages.
        results: Folder of the run records, to which figures are linked.

    Returns:
        A list of lists of strings. The paper's rows come first.
    """
    rows = [["", *(column.heading for column in table.columns)]]
    for method, figures in table.rows.items():
        name = f"{method}, paper" if method in (BASELINE, GAR) else method
        rows.append([name, *(str(f) if f else MISSING for f in figures)])
    if not reference:
        shown = _shown(table, records)
        return rows + _group_rows("ours", shown, table, results, results)
    for whose, groups in _compared(table, records, reference).items():
        folder = results and _folder_of(whose, results)
        rows += _group_rows(whose, groups, table, folder, results)
        epochs = [g.epochs_text() if g else MISSING for g in groups]
        rows.append([f"Epochs of both stages, {whose}", *epochs])
    return rows


def _shown(table, records):
    """The group in each column of a table, `None` where there is none."""
    return [representative(records, column) for column in table.columns]


def _compared(table, records, reference):
    """The groups in each column, by whose they are."""
    yours, largest = _shown(table, records), _shown(table, reference)
    alike = [
        _alike(own, _candidates(reference, column)) if own else None
        for own, column in zip(yours, table.columns, strict=True)
    ]
    found = {"reference": largest}
    if any(g not in (None, *largest) for g in alike):
        found["reference with your epochs"] = alike
    return {**found, "yours": yours}


def _alike(own, groups):
    """The group with the settings of another; its precision, if there is."""
    alike = [
        g for g in groups if but_for(g, HARDWARE) == but_for(own, HARDWARE)
    ]
    exact = [g for g in alike if but_for(g, ()) == but_for(own, ())]
    return max(exact or alike, key=size, default=None)


def _folder_of(whose, results):
    """The folder of the groups of `_compared`."""
    return results if whose == "yours" else folders.reference()


def _group_rows(whose, groups, table, folder, seen_from):
    def row(name, error):
        cells = [
            linked(_our_cell(g, error, column), g, folder, seen_from)
            for g, column in zip(groups, table.columns, strict=True)
        ]
        return [name, *cells]

    rows = [
        row(name, lambda g, key=key: g.error(key))
        for name, key in run_rows(whose).items()
    ]
    late = f"{GAR}, {whose}, mean of the last {LATE} epochs"
    if any(g and g.late_error() for g in groups):
        rows.append(row(late, lambda g: g.late_error()))
    return rows


def _is_of_runs(place, table):
    """Whether the row at a place below the heading is not the paper's."""
    return place >= len(table.rows)


def table_markdown(table, records, results=None, reference=()):
    """A table as Markdown, with a line below for each of our cells.

    Args:
        table: A `Table` of the paper.
        records: Run records.
        results: Folder of the records, with what lies beside them, if at hand.
        reference: Records to compare them with; see `table_rows`.
    """
    heading, *rows = table_rows(table, records, reference, results)
    rows = [
        [f"**{name}**" if _is_of_runs(i, table) else name, *cells]
        for i, (name, *cells) in enumerate(rows)
    ]
    lines = [f"**{table.title}**", ""]
    lines += [*layout.numbers(heading, rows), ""]
    lines += [
        f"- {line}" for line in table_notes(table, records, results, reference)
    ]
    return "\n".join(lines) + "\n"


def table_notes(table, records, results=None, reference=()):
    """Notes below a table: a line for each column on the runs behind it."""
    if not reference:
        return _notes(table, records, results)
    lines = []
    for whose, groups in _compared(table, records, reference).items():
        folder = _folder_of(whose, results)
        lines += [f"{whose}: {_described(g, folder)}" for g in groups if g]
    return lines


def _described(found, results):
    text = (
        f"{found.describe()}; runs that lost a class: "
        f"{lost_text(found.records, results)}"
    )
    sound = without_lost(found, results)
    if sound is None:
        return text
    lost = ", ".join(map(str, seeds_lost(found.records, results)))
    return (
        f"{text} (seed {lost}); without them {sound.error('chosen_error')} at "
        f"the chosen epoch, {sound.error('last_error')} in the last"
    )


def _notes(table, records, results):
    lines = []
    for column in table.columns:
        found = representative(records, column)
        if found is None:
            lines.append(f"{column.heading}: not run")
            continue
        lines.append(
            _described(found, results) + _interval_text(found, column.cell)
        )
        groups = _candidates(records, column)
        others = {
            "with more seeds": _surer(found, groups),
            "for longer": _longer(found, groups),
        }
        lines += [
            f"{how}: {g.describe()}; test error at the chosen epoch "
            f"{g.error('chosen_error')}, in the last {g.error('last_error')}"
            + _interval_text(g, column.cell)
            for how, g in others.items()
            if g is not None
        ]
    return lines


def _surer(found, groups):
    """The longest of the shorter runs with more seeds, if there is one."""
    more = [g for g in groups if len(g.records) > len(found.records)]
    return max(_of_other_length(found, more), key=size, default=None)


def _longer(found, groups):
    """The longest runs, if the group's own are not."""
    epochs = found.settings["epochs"]
    more = [g for g in groups if g.settings["epochs"] > epochs]
    return max(_of_other_length(found, more), key=size, default=None)


def _of_other_length(found, groups):
    """Those that differ in epochs of stage 2, precision and backend alone."""
    free = {*HARDWARE, "epochs"}
    alike = but_for(found, free)
    return [g for g in groups if but_for(g, free) == alike]


def show_table(table, records, results):
    """Prints a table and writes the Markdown and the curves of the folder.

    The table in the terminal is made from `records` and has the columns that
    they fill; the files cover all columns and all records in the folder. If
    that is not the reference, its rows are shown beside.

    Runs with other settings than the paper's are listed below the table.

    Args:
        table: A `Table` of the paper.
        records: The records to print.
        results: Folder of the records, where the files go.
    """
    console = terminal.console()
    filled = table.only(lambda column: representative(records, column))
    if filled.columns:
        _print_table(console, filled, records, results)
    for g in _others(table, records):
        console.print(f"- beside the table: {g.describe()}")
        for name, key in OUR_ROWS.items():
            console.print(f"    {name}: {g.error(key)}")
    for path in write_table(table, results):
        console.print(f"Written: {path}")


def write_table(table, results):
    """Writes a table's Markdown and PNG from all records of a folder.

    Returns:
        The paths written; none if no column has a figure of ours.
    """
    everything = record_files.read_all(results)
    groups = [g for g in _shown(table, everything) if g is not None]
    if not groups:
        return []
    text = Path(results) / f"{table.name}.md"
    reference = reference_beside(results)
    content = table_markdown(table, everything, results, reference)
    files.write_atomically(text, lambda file: file.write(content))
    picture = Path(results) / f"{table.name}.png"
    save(draw_table(groups, group(everything), results), picture)
    return [text, picture]


def draw_table(groups, others=(), results=None):
    """The learning curves of a table, with longer runs of its cells in grey.

    Args:
        groups: The `Group` of each column.
        others: All groups of the folder.
        results: Folder of the records, with what lies beside them.
    """
    epochs = {g.records[0]["cell"]: g.settings["epochs"] for g in groups}
    longer = [
        drawn(g, results, f"{g.settings['epochs']} epochs{g.changes_text()}")
        for g in others
        if g.settings["epochs"] > epochs.get(g.records[0]["cell"], math.inf)
    ]
    data = {g.data for g in groups}
    title = data.pop() if len(data) == 1 else ""
    return learning_curves([drawn(g, results) for g in groups], title, longer)


def drawn(g, results, name=None):
    """A group as the `Runs` of a picture.

    Args:
        g: A `Group`.
        results: Folder of the records, with what lies beside them.
        name: What it is called; by default by its number of labels.
    """
    column = column_of(g.records[0]["cell"])
    paper = column and published_error(column.cell)
    return Runs.of(
        name or f"{g.settings['num_labeled']:,} labels",
        g.records,
        seeds_lost(g.records, results),
        paper,
        paper and PAPER[column.cell].epochs,
    )


def _print_table(console, table, records, results):
    reference = reference_beside(results)
    heading, *rows = table_rows(table, records, reference)
    printed = layout.terminal_table(table.title, heading, rows)
    for i, line in enumerate(printed.rows):
        line.style = "bold" if _is_of_runs(i, table) else None
    console.print(printed)
    for line in table_notes(table, records, results, reference):
        console.print(f"- {line}")


def _others(table, records):
    """The groups in a table's cells that do not stand for their column."""
    shown = _shown(table, records)
    cells = {
        cell for c in table.columns for cell in (c.cell, c.stand_in) if cell
    }
    return [
        g
        for g in group(records)
        if g.records[0]["cell"] in cells and g not in shown
    ]


def _our_cell(found, error, column):
    """A figure of a group; `error` is a function of it."""
    estimate = found and error(found)
    if estimate is None:
        return MISSING
    # A figure made with other data than the column's says so itself.
    if found.records[0]["cell"] == column.cell:
        return str(estimate)
    return f"{estimate} on {found.data}"


def _interval_text(found, cell):
    """The intervals of our mean and of its difference from the paper's."""
    ours = found.error("chosen_error")
    published = published_error(cell)
    if ours.deviation is None or published is None:
        return ""
    return (
        "; 95 % interval of the mean at the chosen epoch: "
        f"{ours.interval()}, of its difference from the paper's "
        f"{published} by Welch's test: "
        f"{ours.interval_above(published.estimate)}"
    )
