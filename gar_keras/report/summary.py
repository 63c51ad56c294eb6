"""What the README shows of the records: the headline and two short tables."""

import re
from pathlib import Path

from gar_keras.experiments import records as record_files
from gar_keras.experiments.settings import FREE, PAPER, differences
from gar_keras.experiments.studies import FASTER, SMALL_BATCHES
from gar_keras.methods import METHODS
from gar_keras.report import layout
from gar_keras.report.claims import claim_groups
from gar_keras.report.comparison import compare
from gar_keras.report.groups import size
from gar_keras.report.layout import MISSING
from gar_keras.report.lost import seeds_lost, without_lost
from gar_keras.report.plots.forest import Cell, ours_beside_paper
from gar_keras.report.plots.style import save
from gar_keras.report.published import BASELINE, GAR, RUNS, TABLES
from gar_keras.report.sources import linked
from gar_keras.report.tables import drawn, representative
from gar_keras.utils import terminal

CELLS_HEADING = (
    "",
    "pretraining, paper",
    "ours",
    "with GAR, paper",
    "ours",
    "difference",
    "seeds",
    "epochs",
)

METHODS_HEADING = (
    "",
    "test error",
    "at the last epoch",
    "seeds",
    "seconds of stage 2",
)

# As the headings of the paper's tables have it.
_LABELS = re.compile(r" m_L = (\d+)")

# A gain that counts, in points: 10 of 10,000 test images.
_LEAST_GAIN = 0.1

# The cell of the headline.
_HEADLINE = "mnist-100"


def headline_markdown(records, results=None):
    """MNIST with 100 labels: ours, the paper's, and with small batches.

    Args:
        records: Run records.
        results: Folder of the records, to which the runs are linked.
    """
    found = [(c, b, p) for c, b, p in _cells() if c.cell == _HEADLINE]
    for column, baseline, published in found:
        g = representative(records, column)
        if g is None:
            return ""
        before, after = (
            g.error(key).mean for key in ("baseline_error", "chosen_error")
        )
        return (
            f"MNIST with {g.settings['num_labeled']} labels, without "
            f"augmentation: test error {before:.1f} → **{after:.1f} %** "
            f"({_runs_text(g, 'epochs of GAR', results)}). "
            f"The paper: {baseline.error:.1f} → "
            f"{published.error:.1f} % ({RUNS} seeds)."
            f"{_small_batches_text(records, results)}\n"
        )
    return ""


def _small_batches_text(records, results):
    """The error with clipped steps, a warm-up and smaller batches."""
    g = claim_groups(FASTER, records).get(SMALL_BATCHES)
    if g is None:
        return ""
    m = g.settings["labeled_per_batch"] + g.settings["unlabeled_per_batch"]
    return (
        f" With the default steps of `regularize` and batches of {m}: "
        f"**{g.error('chosen_error').mean:.1f} %** "
        f"({_runs_text(g, 'epochs', results)})."
    )


def _runs_text(g, epochs, results):
    """How many runs, of what length; and the error of those without a loss."""
    text = f"{_seeds(len(g.records))}, {g.settings['epochs']} {epochs}"
    return layout.in_markdown(linked(text, g, results)) + _kept_text(g, results)


def _kept_text(g, results):
    """The error of the runs that kept every class, if not all of them did."""
    sound = without_lost(g, results)
    if sound is None:
        return ""
    kept, error = len(sound.records), sound.error("chosen_error").mean
    return f"; {error:.1f} % in the {kept} that lost no class"


def summary_markdown(records, results=None):
    """Each cell of the paper's tables: paper, ours, difference, seeds, epochs.

    Args:
        records: Run records.
        results: Folder of the records, to which our figures are linked.
    """
    rows = [_cell_row(records, results, *cell) for cell in _cells()]
    if all(row[-1] == MISSING for row in rows):
        return ""
    return "\n".join(layout.numbers(CELLS_HEADING, rows)) + "\n"


def draw_summary(records, results):
    """Draws the same from all records of a folder, and says where it is.

    Args:
        records: Not used: the picture is of the whole folder.
        results: Folder of the records, where `summary.png` goes.
    """
    path = Path(results) / "summary.png"
    everything = record_files.read_all(results)
    found = [
        (baseline, column, representative(everything, column))
        for column, baseline, _ in _cells()
    ]
    cells = [
        Cell(baseline, drawn(g, results, _cell_name(column, g)))
        for baseline, column, g in found
        if g
    ]
    save(ours_beside_paper(cells), path)
    terminal.console().print(f"Written: {path}")


def methods_markdown(records, results=None):
    """The methods on MNIST with 100 labels, the best first.

    Args:
        records: Run records.
        results: Folder of the records, to which the names are linked.
    """
    found = [c.groups for c in compare(records) if _is_standard(c.groups[0])]
    if not found:
        return ""
    groups = max(found, key=lambda some: (len(some), size(some[0])))
    order = sorted(groups, key=lambda g: g.error("chosen_error").mean)
    trained = groups[0]
    start = trained.error("baseline_error").mean
    rows = [
        _method_row(g, results)
        for g in order
        if g.error("chosen_error").mean < start - _LEAST_GAIN
    ]
    others = [METHODS[g.method].title for g in order[len(rows) :]]
    lines = layout.numbers(METHODS_HEADING, rows)
    lines += [
        "",
        f"{trained.epochs_text()} epochs, on {trained.device_text()}. After "
        f"stage 1 the error is {start:.2f} %; not lower by "
        f"{_LEAST_GAIN:g} points or more: {', '.join(others) or 'none'}.",
    ]
    return "\n".join(lines) + "\n"


def _cells():
    """The cells of the tables that have a figure of GAR in the paper.

    Yields:
        `(column, baseline, published)`, the figures of stage 1, which may be
        `None`, and of GAR.
    """
    for table in TABLES.values():
        if GAR in table.rows:
            none = [None] * len(table.columns)
            baselines = table.rows.get(BASELINE, none)
            published = table.rows[GAR]
            yield from zip(table.columns, baselines, published, strict=True)


def _cell_row(records, results, column, baseline, published):
    g = representative(records, column)
    paper = [str(baseline) if baseline else MISSING, str(published)]
    name = _cell_name(column, g)
    if g is None:
        before, after = paper
        return [name, before, MISSING, after, MISSING, *[MISSING] * 3]
    before, after = g.error("baseline_error"), g.error("chosen_error")
    return [
        name,
        paper[0],
        linked(_figure(before), g, results),
        paper[1],
        linked(_figure(after), g, results),
        f"{after.mean - published.error:+.2f}",
        f"{after.n}{_lost_mark(g, results)}",
        g.epochs_text(),
    ]


def _lost_mark(g, results):
    lost = len(seeds_lost(g.records, results))
    return f", {lost} lost a class" if lost else ""


def _cell_name(column, g):
    """What a column shows: the data and the number of labels.

    Args:
        column: A `Column`.
        g: The `Group` in it, or `None`.
    """
    if g is None:
        return _LABELS.sub(r", \1 labels", column.heading)
    return f"{g.data}, {g.settings['num_labeled']} labels"


def _method_row(g, results):
    chosen = g.error("chosen_error")
    return [
        linked(METHODS[g.method].title, g, results),
        _figure(chosen),
        _figure(g.error("last_error")),
        str(chosen.n),
        f"{g.seconds('regularization'):.0f}",
    ]


def _is_standard(g):
    """Whether a group is of the headline's cell, with any trained network."""
    changed = differences(g.settings, PAPER[_HEADLINE]).keys()
    return METHODS[g.method].network and changed <= {*FREE, "method"}


def _figure(estimate):
    """An estimate without its number of seeds, which has a column."""
    return str(estimate).partition(" (n =")[0]


def _seeds(n):
    return "1 seed" if n == 1 else f"{n} seeds"
