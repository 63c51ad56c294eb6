"""The parts of the report, in the order in which they are shown."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from gar_keras.experiments.studies import STUDIES
from gar_keras.report import (
    benchmarks,
    claims,
    comparison,
    confusion,
    first_epoch,
    norb,
    pairs,
    studies,
    summary,
    tables,
)
from gar_keras.report.beside import show_beside_reference
from gar_keras.report.cells import cells_markdown
from gar_keras.report.published import TABLES


@dataclass(frozen=True)
class Part:
    """A table or a comparison, made from the records of a folder.

    Attributes:
        name: Its name, which its markers in a page bear.
        heading: What stands above it among the results.
        markdown: Function of the records and their folder that returns the
            text for a page; empty if there is nothing to show.
        show: Function of the same that prints it and writes its files, or
            `None` if it is in pages alone.
        absent: What the page says where `markdown` is empty.
    """

    name: str
    heading: str
    markdown: Callable
    show: Callable | None = None
    absent: str = "Not run yet.\n"


def _table(table):
    return Part(
        table.name,
        table.title.partition(":")[0],
        partial(tables.table_markdown, table),
        partial(tables.show_table, table),
    )


def study_part(study):
    """The part that shows a study.

    Args:
        study: A `gar_keras.experiments.studies.Study`.
    """
    table, markdown = studies.study_table, studies.study_markdown
    if study.restarts > 1:
        table = first_epoch.first_epoch_table
        markdown = first_epoch.first_epoch_markdown
    if study.claims:
        table, markdown = claims.claims_table, claims.claims_markdown

    def show(records, results):
        show_beside_reference(study, records, results, table, markdown)

    return Part(
        f"study {study.name}",
        f"Study {study.name}",
        partial(markdown, study),
        show,
        f"{study.title}: not run yet.\n",
    )


def show_study(study, records, results):
    """Prints a study and writes its files.

    Args:
        study: A `gar_keras.experiments.studies.Study`.
        records: The records to print.
        results: Folder of the records, where the files go.
    """
    study_part(study).show(records, results)


def _pairs(setting, heading):
    return Part(setting, heading, partial(pairs.paired, setting=setting))


PARTS = (
    Part("headline", "In one sentence", summary.headline_markdown),
    Part(
        "summary",
        "All cells of the paper",
        summary.summary_markdown,
        summary.draw_summary,
    ),
    Part("methods", "The methods in order", summary.methods_markdown),
    *map(_table, TABLES.values()),
    Part("digits", "What the runs of Table 1 confuse", confusion.digits),
    Part("cells", "The cells of the tables at full length", cells_markdown),
    _pairs("precision", "bfloat16 against float32"),
    _pairs("frobenius_of", "The Frobenius term of B against that of Z"),
    Part(norb.NAME, "All runs on NORB", norb.norb_markdown),
    Part("confusions", "The largest confusions", confusion.confusions),
    Part("matrices", "Confusion matrices", confusion.matrices),
    Part(
        "rivals",
        "Other methods",
        comparison.rivals_markdown,
        comparison.show_rivals,
    ),
    *map(study_part, STUDIES.values()),
    Part("benchmark", "Speed", benchmarks.speed_markdown),
    Part(
        "overhead",
        "What the regularizer costs",
        benchmarks.overhead_markdown,
    ),
)


def show_report(records, results, tables=tuple(TABLES)):
    """Prints the parts of which there are records, and writes their files.

    Args:
        records: The records to print.
        results: Folder of the records, where the files go.
        tables: Names of the paper's tables to show.
    """
    for part in PARTS:
        left_out = part.name in TABLES and part.name not in tables
        if part.show and not left_out and part.markdown(records, results):
            part.show(records, results)
