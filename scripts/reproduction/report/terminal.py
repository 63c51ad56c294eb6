"""Tables in the terminal, after runs: the user's and the paper's figures."""

from pathlib import Path

from reproduction import paths
from reproduction.report import compared_methods, pictures, run_frame
from reproduction.report.study_tables import study_table
from reproduction.report.tables import (
    RUN_COLUMNS,
    in_terminal,
    paper_table,
    table_of_runs,
)


def show_table(paper, records, results):
    """Prints runs, their `records` in a folder, with a `Table` of the paper."""
    frame, runs = _runs(records, results)
    _show([paper_table(paper, runs)], runs, results, "docs/reproduction.md")
    for path in pictures.draw(frame, results, [paper.name]):
        print(f"Written: {path}")


def show_study(study, records, results):
    """Prints runs, their `records` in a folder, with their `Study`."""
    _, runs = _runs(records, results)
    tables = [study_table(study, runs, most=4)]
    _show(tables, runs, results, "results/studies.md")


def show_baselines(records, results):
    """Prints runs, their `records` in a folder, and compares their methods."""
    _, runs = _runs(records, results)
    tables = compared_methods.baselines_tables(runs)
    _show(tables, runs, results, "docs/methods.md")


def _runs(records, results):
    """All runs of a folder, and those of some records."""
    frame = run_frame.read_runs(results)
    return frame, frame[frame.path.isin([r["path"] for r in records])]


def _show(tables, runs, results, page):
    """Prints runs, tables of them, and where the project's own are."""
    rows = table_of_runs(run_frame.by_folder(runs), RUN_COLUMNS)
    # As many as fit into a line; the folder tells the data and the method.
    rows = rows.drop(columns=["data", "method", "lost a class", "hardware"])
    print(in_terminal(rows, title="Your runs: test error in percent"), end="")
    for cells, notes, title in tables:
        yours = cells.rename(lambda name: name.replace(", ours", ", yours"))
        print(in_terminal(yours, notes, title), end="")
    # A copy of the clone may have left the reference behind.
    if Path(results).resolve() != paths.reference().resolve():
        print(f"The project's own: {paths.of_clone(page)}")
