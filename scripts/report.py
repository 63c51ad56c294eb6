"""Tables of the paper with our figures, from the records of a folder.

By default from the reference, the records that the project came with; with
--results runs from yours, the reference beside them.
"""

import os
import sys
from dataclasses import dataclass, field
from typing import Literal

from gar_keras import report
from gar_keras.experiments import folders, records
from gar_keras.report.published import TABLES
from gar_keras.utils import cli, files


@dataclass(frozen=True)
class Options:
    """Options of this script."""

    tables: tuple[Literal[tuple(TABLES)], ...] = tuple(TABLES)
    """Tables to show. svhn_grey is a stand-in, not a table of the paper."""
    results: cli.Folder = field(
        default_factory=lambda: folders.reference() or folders.own()
    )
    """Folder of the run records."""
    readme: cli.File = None
    """README whose tables are to be brought up to date, with those of the
    pages in docs beside it."""
    find: str | None = None
    """Figure of a table, e.g. 4.98: print the rows that show it and the runs
    behind them, and do nothing else."""

    def __post_init__(self):
        if not self.tables:
            raise ValueError(
                f"--tables takes {', '.join(TABLES)}. Received: none"
            )
        if self.readme is not None and not os.path.isfile(self.readme):
            raise ValueError(
                "--readme takes a file that is there. Received: "
                f"{str(self.readme)!r}"
            )


def main(options):
    """Shows the tables, and puts them into the README if there is one.

    Or else finds a figure in them.
    """
    found = records.read_all(options.results)
    if not found:
        raise ValueError(
            f"no run records in {options.results}. A first one: "
            "python scripts/table1.py --labels 100 --seeds 0"
        )
    if options.find is not None:
        return show_found(options.find, found, options.results)
    report.show_report(found, options.results, options.tables)
    for path in report.write_overview(options.results):
        print(f"Written: {path}")
    for page in report.pages(options.readme) if options.readme else ():
        text = report.update_readme(page, options.results)
        files.write_atomically(page, lambda file, text=text: file.write(text))


def show_found(figure, found, results):
    """Prints the rows of the tables that show a figure, with their runs."""
    rows = report.find(figure, found, results)
    if not rows:
        raise ValueError(
            f"no table of the records in {results} shows it. Received: "
            f"--find {figure}. Give it as it is shown, e.g. 4.98"
        )
    index = report.index(found, results)
    for row in rows:
        print(f"{row.heading}: {' | '.join(row.row)}")
        for line in row.lines(index):
            print(
                f"  {results / line.path}: {line.after_stage_1} after stage "
                f"1, {line.chosen} at the chosen epoch, {line.last} in the last"
            )


if __name__ == "__main__":
    sys.exit(cli.run(main, cli.parse(Options, __doc__)))
