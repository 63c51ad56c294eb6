"""Tables of the paper with our figures, from the records of a folder.

By default from the reference, the records that the project came with; with
--results runs from yours.
"""

import sys

from reproduction import commands, paths

TABLES = ("table1", "table2", "table3", "svhn_grey")


def parser():
    made = commands.parser(__doc__)
    commands.add_results(made, paths.reference())
    made.add_argument(
        "--readme",
        type=commands.existing,
        metavar="FILE",
        help="README whose tables are to be brought up to date, with those of "
        "the pages in docs beside it",
    )
    return made


def main(options):
    """Shows the tables, and puts them into the README if there is one."""
    with commands.loading():
        from reproduction import report
        from reproduction.report import published
        from reproduction.report.tables import in_terminal, paper_table

    frame = report.read_runs(options.results)
    if frame.empty:
        raise ValueError(
            f"no run records in {options.results}. A first one: "
            "python scripts/table1.py --labels 100 --seeds 0"
        )
    for name in TABLES:
        print(in_terminal(*paper_table(published.TABLES[name], frame)))
    for path in report.write(frame, options.results, options.readme):
        print(f"Written: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(commands.main(parser(), main))
