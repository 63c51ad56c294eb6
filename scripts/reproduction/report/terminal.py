"""Tables in the terminal, after runs: the user's and the paper's figures."""

from pathlib import Path

from reproduction import paths
from reproduction.report import compared_methods, pictures, run_frame
from reproduction.report.estimates import MISSING
from reproduction.report.published import published_error
from reproduction.report.study_tables import study_table
from reproduction.report.tables import figure, in_terminal, paper_table, table

RUN_COLUMNS = {
    "seeds": run_frame.seeds,
    "after stage 1": figure("stage_1"),
    "chosen epoch": figure("chosen"),
    "last epoch": figure("last"),
    "the paper": lambda g: (
        error.text() if (error := published_error(g.cell.iloc[0])) else MISSING
    ),
    "other settings": lambda g: g.differs.iloc[0] or MISSING,
}


def show_table(paper, records, results):
    """Prints runs, their `records` in a folder, with a `Table` of the paper."""
    frame, runs = _show_runs(records, results)
    _show([paper_table(paper, runs)], results, "docs/reproduction.md")
    for path in pictures.draw(frame, results, [paper.name]):
        print(f"Written: {path}")


def show_study(study, records, results):
    """Prints runs, their `records` in a folder, with their `Study`."""
    _, runs = _show_runs(records, results)
    _show([study_table(study, runs, most=4)], results, "results/studies.md")


def show_baselines(records, results):
    """Prints runs, their `records` in a folder, and compares their methods."""
    frame, runs = _show_runs(records, results)
    compared = map(
        compared_methods.baselines_table, compared_methods.compare(runs)
    )
    _show(compared, results, "docs/methods.md")
    for path in pictures.draw(frame, results, ["rivals"]):
        print(f"Written: {path}")


def _show_runs(records, results):
    """Prints the runs of records; all runs of the folder, and these."""
    frame = run_frame.read_runs(results)
    runs = frame[frame.path.isin([record["path"] for record in records])]
    rows = table(run_frame.by_folder(runs), RUN_COLUMNS)
    print(in_terminal(rows, title="Your runs: test error in percent"))
    return frame, runs


def _show(tables, results, page):
    """Prints tables of the user's runs, and where the project's are."""
    for cells, notes, title in tables:
        if len(cells):
            yours = cells.rename(lambda name: name.replace(", ours", ", yours"))
            print(in_terminal(yours, notes, title))
    # A copy of the clone may have left the reference behind.
    if Path(results).resolve() != paths.reference().resolve():
        print(f"The project's own: {paths.of_clone(page)}")
