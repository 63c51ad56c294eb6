"""Tables in the terminal, after runs: the user's first, beside the paper's."""

from pathlib import Path

from reproduction import paths
from reproduction.report import pictures, run_frame, summary
from reproduction.report.estimates import MISSING
from reproduction.report.published import published_error
from reproduction.report.study_tables import study_table
from reproduction.report.tables import figure, in_terminal, shown_table, table


def show_table(paper, records, results):
    """Prints some runs with a table of the paper, and draws their folder's.

    Args:
        paper: A `Table` of the paper.
        records: The run records to print.
        results: Folder of them.
    """
    frame = run_frame.read_runs(results)
    own = _own(records, frame)
    _show(own, [shown_table(paper, own)], results, "docs/reproduction.md")
    _draw(frame, results, paper.name)


def show_study(study, records, results):
    """Prints some runs with their `Study`, given as for `show_table`."""
    own = _own(records, run_frame.read_runs(results))
    _show(own, [study_table(study, own)], results, "results/studies.md")


def show_baselines(records, results):
    """Prints some runs and how their methods compare, as `show_table` does."""
    frame = run_frame.read_runs(results)
    own = _own(records, frame)
    comparisons = map(summary.baselines_table, summary.compare(own))
    _show(own, comparisons, results, "docs/methods.md")
    _draw(frame, results, "rivals")


def _own(records, frame):
    """The rows of a frame that are of some records."""
    return frame[frame.path.isin([record["path"] for record in records])]


def _paper(g):
    error = published_error(g.cell.iloc[0])
    return error.text() if error else MISSING


OWN_COLUMNS = {
    "seeds": run_frame.seeds,
    "after stage 1": figure("stage_1"),
    "chosen epoch": figure("chosen"),
    "last epoch": figure("last"),
    "the paper": _paper,
    "other settings": lambda g: g.differs.iloc[0] or MISSING,
}


def own_runs(frame):
    """Some runs, a row an experiment by its folder, and the paper's error."""
    found = run_frame.groups(frame)
    rows = {str(Path(g.path.iloc[0]).parent): g for g in found}
    return table(rows, OWN_COLUMNS)


def _show(own, tables, results, page):
    """Prints the user's runs, tables of them, and where the project's are."""
    print(in_terminal(own_runs(own), title="Your runs: test error in percent"))
    for cells, notes, title in tables:
        if len(cells):
            yours = cells.rename(lambda name: name.replace(", ours", ", yours"))
            print(in_terminal(yours, notes, title))
    # A copy of the clone may have left the reference behind.
    if Path(results).resolve() != paths.reference().resolve():
        print(f"The project's own: {paths.of_clone(page)}")


def _draw(frame, results, name):
    for path in pictures.draw(frame, results, [name]):
        print(f"Written: {path}")
