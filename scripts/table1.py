"""Table 1 of the paper: MNIST with 100, 600, 1000 and 3000 labels."""

import sys

from reproduction import commands
from reproduction.settings import TABLE_1


def parser():
    made = commands.training_parser(__doc__)
    made.add_argument(
        "--labels",
        type=int,
        nargs="+",
        choices=[*TABLE_1],
        default=[*TABLE_1],
        help="numbers of labelled images (default: %(default)s)",
    )
    return made


def main(options):
    chosen = [TABLE_1[m] for m in options.labels]
    return commands.run_table(options, chosen, commands.show_table("table1"))


if __name__ == "__main__":
    sys.exit(commands.main(parser(), main))
