"""Tables of the paper with our figures, from the records of a folder."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gar_keras import cli
from gar_keras import report
from gar_keras.experiments import records
from gar_keras.experiments.paper import TABLES


@dataclass(frozen=True)
class Options:
    """Options of this script."""

    tables: tuple[Literal["table1", "table2", "table3", "svhn_grey"], ...] = (
        tuple(TABLES)
    )
    """Tables to show. svhn_grey is a stand-in, not a table of the paper."""
    results: Path = Path("results")
    """Folder of the run records."""
    readme: cli.Folder = None
    """README whose tables are to be brought up to date."""


if __name__ == "__main__":
    options = cli.parse(Options, __doc__)
    try:
        found = records.read_all(options.results)
    except records.RecordError as e:
        cli.fail(e)
    if not found:
        cli.fail(
            f"no run records in {options.results}. A first one: "
            "python scripts/table1.py --labels 100 --seeds 0"
        )
    for name in options.tables:
        report.show(TABLES[name], found, options.results)
    if options.readme is not None:
        text = report.update_readme(options.readme, options.results)
        options.readme.write_text(text)
