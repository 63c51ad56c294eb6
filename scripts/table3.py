"""Table 3 of the paper: SVHN and NORB; and their stand-ins."""

import sys

from reproduction import commands

# The table of each data set, by its name in `report.published.TABLES`.
DATA = {
    "norb": "table3",
    "norb-jpeg": "table3",
    "svhn": "table3",
    "svhn-extra": "table3",
    "svhn-grey": "svhn_grey",
}


def parser():
    made = commands.training_parser(__doc__)
    made.add_argument(
        "--data",
        choices=DATA,
        default="norb",
        help="data set: the official files of norb, svhn with or without its "
        "extra images, or a stand-in: norb-jpeg, svhn-grey (default: "
        "%(default)s)",
    )
    made.add_argument(
        "--labels",
        type=int,
        nargs="+",
        default=[1000],
        help="numbers of labelled images: 1000, for NORB 300 too (default: "
        "1000)",
    )
    return made


def main(options):
    chosen = commands.experiments_of(options.data, options.labels)
    show = commands.show_table(DATA[options.data])
    return commands.run_table(options, chosen, show)


if __name__ == "__main__":
    sys.exit(commands.main(parser(), main))
