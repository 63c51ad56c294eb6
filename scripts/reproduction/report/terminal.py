"""Tables in the terminal, after runs."""

from reproduction import paths
from reproduction.report import pictures, run_frame, summary
from reproduction.report.study_tables import study_table
from reproduction.report.tables import in_terminal, shown_table
from reproduction.report.write_pages import experiments


def show_table(paper, records, results):
    """Prints a table of the paper with some runs, and draws their folder's.

    Args:
        paper: A `Table` of the paper.
        records: The run records to print.
        results: Folder of them. Those of the reference come first, if it is
            not the reference.
    """
    own = _show(lambda frame: [shown_table(paper, frame)], records, results)
    other = own[own.differs != ""]
    if len(other):
        title = "With other settings than the paper's"
        print(in_terminal(experiments(other), title=title))
    _draw(results, paper.name)


def show_study(study, records, results):
    """Prints a `Study` with some runs, given as for `show_table`."""
    _show(lambda frame: [study_table(study, frame)], records, results)


def show_baselines(records, results):
    """Prints how methods compare in some runs, as `show_table` a table."""
    _show(
        lambda frame: map(summary.baselines_table, summary.compare(frame)),
        records,
        results,
    )
    _draw(results, "rivals")


def _show(tables, records, results):
    """Prints tables of the reference, and of some runs, which it returns."""
    frame, reference = run_frame.read_runs(results), paths.reference()
    wanted = {(r["fingerprint"], r["seed"]) for r in records}
    pairs = zip(frame.fingerprint, frame.seed, strict=True)
    own = frame.loc[[pair in wanted for pair in pairs]]
    shown = [*tables(own)]
    titles = {title for *_, title in shown}
    if not reference.samefile(results):
        for cells, _, title in tables(run_frame.read_runs(reference)):
            if title in titles and len(cells):
                print(in_terminal(cells, title=f"Reference: {title}"))
    for part in shown:
        print(in_terminal(*part))
    return own


def _draw(results, name):
    for path in pictures.draw(run_frame.read_runs(results), results, [name]):
        print(f"Written: {path}")
