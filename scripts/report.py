"""Tables of the paper with our figures, from the records of a folder.

By default from the reference, the records that the project came with; with
--results runs from yours.
"""

import sys
from dataclasses import dataclass, field
from typing import Literal

from reproduction import cli, paths, report
from reproduction.report.published import TABLES
from reproduction.report.tables import in_terminal, shown_table


@dataclass(frozen=True)
class Options:
    """Options of this script."""

    tables: tuple[Literal[tuple(TABLES)], ...] = tuple(TABLES)
    """Tables to show. svhn_grey is a stand-in, not a table of the paper."""
    results: cli.Folder = field(default_factory=paths.reference)
    """Folder of the run records."""
    readme: cli.File = None
    """README whose tables are to be brought up to date, with those of the
    pages in docs beside it."""

    def __post_init__(self):
        cli.check_values("--tables", self.tables, TABLES)
        cli.check_file("--readme", self.readme)
        cli.check_folder("--results", self.results)


def main(options):
    """Shows the tables, and puts them into the README if there is one."""
    frame = report.read_runs(options.results)
    if frame.empty:
        raise ValueError(
            f"no run records in {options.results}. A first one: "
            "python scripts/table1.py --labels 100 --seeds 0"
        )
    for name in options.tables:
        print(in_terminal(*shown_table(TABLES[name], frame)))
    for path in report.write(frame, options.results, options.readme):
        print(f"Written: {path}")


if __name__ == "__main__":
    sys.exit(cli.run(main, cli.parse(Options, __doc__)))
