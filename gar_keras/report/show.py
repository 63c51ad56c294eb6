"""Tables in the terminal, after runs."""

from gar_keras.experiments import folders
from gar_keras.report import pictures, runs, summary
from gar_keras.report.pages import experiments
from gar_keras.report.studies import study_table
from gar_keras.report.tables import in_terminal, shown_table, table


def show_table(paper, records, results):
    """Prints a table of the paper with some runs, and draws their folder's.

    Args:
        paper: A `Table` of the paper.
        records: The run records to print.
        results: Folder of them. Those of the reference come first, if it is
            not the reference.
    """
    own = _show(
        lambda frame: [(paper.title, shown_table(paper, frame))],
        records,
        results,
    )
    other = own[own.differs != ""]
    if len(other):
        title = "With other settings than the paper's"
        print(in_terminal(experiments(other), title))
    _draw(results, paper.name)


def show_study(study, records, results):
    """Prints a study with some runs.

    Args:
        study: A `gar_keras.experiments.studies.Study`.
        records: As for `show_table`, as the next.
        results: Folder of them.
    """
    _show(
        lambda frame: [(study.title, study_table(study, frame)[0])],
        records,
        results,
    )


def show_rivals(records, results):
    """Prints how methods compare in some runs, and draws their folder's.

    Args:
        records: As for `show_table`, as the next.
        results: Folder of them.
    """

    def tables(frame):
        for title, rows in map(summary.comparison, summary.compare(frame)):
            yield title, table(rows, summary.METHOD_COLUMNS)

    _show(tables, records, results)
    _draw(results, "rivals")


def _show(tables, records, results):
    """Prints tables of the reference, and of some runs, which it returns.

    Args:
        tables: Function of runs that gives titles and tables.
        records: The run records.
        results: Folder of them.
    """
    frame, reference = runs.read_runs(results), folders.reference()
    wanted = {(r["fingerprint"], r["seed"]) for r in records}
    pairs = zip(frame.fingerprint, frame.seed, strict=True)
    own = frame.loc[[pair in wanted for pair in pairs]]
    shown = [*tables(own)]
    titles = {title for title, _ in shown}
    if reference is not None and not folders.is_reference(results):
        for title, cells in tables(runs.read_runs(reference)):
            if title in titles and len(cells):
                print(in_terminal(cells, f"Reference: {title}"))
    for title, cells in shown:
        print(in_terminal(cells, title))
    return own


def _draw(results, name):
    for path in pictures.draw(runs.read_runs(results), results, [name]):
        print(f"Written: {path}")
