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
    find: str | None = None
    """Figure, e.g. 4.98 or, rounded further, 5.0: print the runs behind it,
    and do nothing else."""

    def __post_init__(self):
        cli.check_values("--tables", self.tables, TABLES)
        cli.check_file("--readme", self.readme)
        if self.find is None:
            cli.check_folder("--results", self.results)


def main(options):
    """Shows the tables, and puts them into the README if there is one.

    Or else finds a figure in the runs.
    """
    frame = report.read_runs(options.results)
    if frame.empty:
        raise ValueError(
            f"no run records in {options.results}. A first one: "
            "python scripts/table1.py --labels 100 --seeds 0"
        )
    if options.find is not None:
        return show_found(options.find, frame)
    for name in options.tables:
        print(in_terminal(*shown_table(TABLES[name], frame)))
    for path in report.write(frame, options.results, options.readme):
        print(f"Written: {path}")


def show_found(figure, frame):
    """Prints the runs that a figure is of."""
    lines = report.find(figure, frame)
    if not lines:
        raise ValueError(
            "no error of the runs in any epoch, and no mean of one, is rounded "
            "to it. "
            f"Received: --find {figure}"
        )
    print(*lines, sep="\n")


if __name__ == "__main__":
    sys.exit(cli.run(main, cli.parse(Options, __doc__)))
