"""The cells of the paper's tables at full length: all that was run in them."""

from gar_keras.report import layout
from gar_keras.report.groups import LATE, group, size
from gar_keras.report.layout import MISSING
from gar_keras.report.lost import LOST_NOTE, lost_text, seeds_lost, without_lost
from gar_keras.report.published import BASELINE, GAR, RUNS, TABLES
from gar_keras.report.sources import linked
from gar_keras.report.tables import in_cell

HEADING = (
    "runs",
    "seeds",
    "at",
    "test error",
    "95 % interval of the mean",
    "the paper's",
    "95 % interval of the difference",
    "runs that lost a class",
    "without these",
)

NOTES = (
    "The paper's settings, but for epochs, precision and backend. Mean ± "
    "standard deviation in percent; the interval is by Student's t, from two "
    f"seeds on. The difference is ours minus the paper's mean of {RUNS} runs, "
    "its interval that of Welch's test: if 0 is in it, no difference is shown, "
    "which says little where seeds are few and the interval is wide.",
    LOST_NOTE,
)


# What is told of each group: an error, and the paper's row beside it.
_ERRORS = {
    "end of stage 1": (lambda g: g.error("baseline_error"), BASELINE),
    "epoch chosen by validation": (lambda g: g.error("chosen_error"), GAR),
    "last epoch": (lambda g: g.error("last_error"), GAR),
    f"mean of the last {LATE} epochs": (lambda g: g.late_error(), GAR),
}


def cells_markdown(records, results=None):
    """All runs in the cells of the paper's tables, beside the paper's figures.

    Args:
        records: Run records.
        results: Folder of the records, with what lies beside them, if at hand.

    Returns:
        Markdown: three or four rows for each experiment of a cell; empty if
        there is none.
    """
    groups = group(records)
    columns = {
        (table.name, place): _in_column(column, groups)
        for table in TABLES.values()
        for place, column in enumerate(table.columns)
    }
    if not any(columns.values()):
        return ""
    rows = []
    for (name, place), found in columns.items():
        table = TABLES[name]
        published = {row: figures[place] for row, figures in table.rows.items()}
        rows += [row for g in found for row in _rows(g, published, results)]
        if not found:
            heading = table.columns[place].heading
            nothing = [MISSING] * (len(HEADING) - 1)
            rows.append([f"{name}, {heading}: not run", *nothing])
    rules = [*["---"] * 3, *["---:"] * (len(HEADING) - 3)]
    lines = layout.markdown_table(HEADING, rows, rules)
    return "\n".join([*lines, "", *(f"- {note}" for note in NOTES), ""])


def _in_column(column, groups):
    """The groups of a column and of its stand-in, the largest first."""
    return [
        g
        for cell in (column.cell, column.stand_in)
        for g in sorted(in_cell(groups, cell), key=size, reverse=True)
    ]


def _rows(g, published, results):
    """A row for each of the errors of a group."""
    s = g.settings
    name = (
        f"{g.data}, m_L = {s['num_labeled']}, {g.epochs_text()} epochs, "
        f"{s['precision']}, {s['backend']}"
    )
    lost = ", ".join(map(str, seeds_lost(g.records, results)))
    lost = lost_text(g.records, results) + (f" (seed {lost})" if lost else "")
    sound = without_lost(g, results)
    rows = []
    for at, (error, row) in _ERRORS.items():
        estimate = error(g)
        if estimate is None:
            continue
        rows.append(
            [
                linked(name, g, results),
                ", ".join(map(str, g.seeds)),
                at,
                str(estimate),
                str(estimate.interval() or MISSING),
                str(published.get(row) or MISSING),
                _above(published.get(row), estimate),
                lost,
                str(error(sound)) if sound else MISSING,
            ]
        )
    return rows


def _above(published, estimate):
    """The interval of how far a mean is above the paper's, as text."""
    if published is None:
        return MISSING
    return str(estimate.interval_above(published.estimate) or MISSING)
