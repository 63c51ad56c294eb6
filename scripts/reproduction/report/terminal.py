"""Tables in the terminal, after runs: the user's and the paper's figures."""

from pathlib import Path

from reproduction import paths
from reproduction.report import compared_methods, pictures, run_frame
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

    def tables(runs):
        return [shown_table(paper, runs)]

    _show(tables, records, results, "docs/reproduction.md", paper.name)


def show_study(study, records, results):
    """Prints some runs with their `Study`, given as for `show_table`."""

    def tables(runs):
        return [study_table(study, runs, most=4)]

    _show(tables, records, results, "results/studies.md")


def show_baselines(records, results):
    """Prints some runs and how their methods compare, as `show_table` does."""

    def tables(runs):
        return map(compared_methods.baselines_table, compared_methods.compare(runs))

    _show(tables, records, results, "docs/methods.md", "rivals")


def _papers(g):
    error = published_error(g.cell.iloc[0])
    return error.text() if error else MISSING


RUN_COLUMNS = {
    "seeds": run_frame.seeds,
    "after stage 1": figure("stage_1"),
    "chosen epoch": figure("chosen"),
    "last epoch": figure("last"),
    "the paper": _papers,
    "other settings": lambda g: g.differs.iloc[0] or MISSING,
}


def _show(tables, records, results, page, *drawn):
    """Prints the user's runs, tables of them, and where the project's are."""
    frame = run_frame.read_runs(results)
    runs = frame[frame.path.isin([record["path"] for record in records])]
    rows = table(run_frame.by_folder(runs), RUN_COLUMNS)
    print(in_terminal(rows, title="Your runs: test error in percent"))
    for cells, notes, title in tables(runs):
        if len(cells):
            yours = cells.rename(lambda name: name.replace(", ours", ", yours"))
            print(in_terminal(yours, notes, title))
    # A copy of the clone may have left the reference behind.
    if Path(results).resolve() != paths.reference().resolve():
        print(f"The project's own: {paths.of_clone(page)}")
    for path in pictures.draw(frame, results, drawn):
        print(f"Written: {path}")
