"""Tables in the terminal."""

import pandas as pd

from gar_keras.experiments import folders
from gar_keras.report import pictures, runs, summary
from gar_keras.report.estimates import MISSING
from gar_keras.report.studies import study_table
from gar_keras.report.tables import (
    error_rows,
    in_terminal,
    paper_table,
    table,
)


def show_table(paper, records, results):
    """Prints a table of the paper with some runs, and draws their folder's.

    Args:
        paper: A `Table` of the paper.
        records: The run records to print.
        results: Folder of them.
    """
    frame = runs.read_runs(results)
    print(table_text(paper, _among(frame, records), results), end="")
    _draw(frame, results, paper.name)


def table_text(paper, frame, results):
    """A table of the paper with some runs, as it is printed.

    Args:
        paper: A `Table` of the paper.
        frame: Runs.
        results: Folder of them. Beside those of another one than the
            reference's, the reference's are shown, and below what was run with
            other settings than the paper's.
    """
    reference = _reference_beside(results)
    if reference is None:
        return _beside(paper, {"ours": frame})
    text = _beside(paper, {"reference": reference, "yours": frame})
    others = {
        f"{runs.epochs(g)}, {g.differs.iloc[0]}": g
        for g in runs.groups(frame[frame.cell.isin(paper.cells)])
        if g.differs.iloc[0]
    }
    title = "With other settings than the paper's"
    cells = table(others, error_rows("yours"))
    return text + (in_terminal(cells, title) if others else "")


def _beside(paper, shown):
    """A table with rows of several people's runs, in the last ones' columns."""
    cells = []
    for whose, frame in shown.items():
        rows = error_rows(whose)
        rows[f"Epochs of both stages, {whose}"] = runs.epochs
        some = paper_table(paper, frame, rows)
        some.columns = [column.heading for column in paper.columns]
        cells.append(some[len(paper.rows) :] if cells else some)
    cells = pd.concat(cells).fillna(MISSING)
    if len(frame):
        cells = cells.loc[:, cells.iloc[-1] != MISSING]
    return in_terminal(cells[(cells != MISSING).any(axis=1)], paper.title)


def show_study(study, records, results):
    """Prints a study with some runs, and below it the reference's.

    Args:
        study: A `gar_keras.experiments.studies.Study`.
        records: The run records to print.
        results: Folder of them.
    """
    found = _among(runs.read_runs(results), records)
    cells, notes = study_table(study, found)
    print(in_terminal(cells, study.title, notes))
    reference = _reference_beside(results)
    if reference is not None:
        cells, _ = study_table(study, reference)
        if len(cells):
            print(in_terminal(cells, f"Reference: {study.title}"))


def show_rivals(records, results):
    """Prints how methods compare in some runs, and draws their folder's.

    Args:
        records: The run records to print.
        results: Folder of them. Below, the reference's comparisons of the same
            task are shown.
    """
    frame, reference = runs.read_runs(results), _reference_beside(results)
    own = dict(map(summary.comparison, summary.compare(_among(frame, records))))
    others = [] if reference is None else summary.compare(reference)
    shown = [*own.items()] + [
        (f"Reference: {title}", rows)
        for title, rows in map(summary.comparison, others)
        if title in own
    ]
    for title, rows in shown:
        print(in_terminal(table(rows, summary.METHOD_COLUMNS), title))
    _draw(frame, results, "rivals")


def _among(frame, records):
    wanted = {(r["fingerprint"], r["seed"]) for r in records}
    pairs = zip(frame.fingerprint, frame.seed, strict=True)
    return frame.loc[[pair in wanted for pair in pairs]]


def _reference_beside(results):
    if folders.is_reference(results) or folders.reference() is None:
        return None
    return runs.read_runs(folders.reference())


def _draw(frame, results, name):
    for path in pictures.draw(frame, results, [name]):
        print(f"Written: {path}")
