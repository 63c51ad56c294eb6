"""Table 2 of the paper: InfiMNIST with 100 labels."""

import sys

from reproduction import commands
from reproduction.settings import TABLE_2


def parser():
    return commands.training_parser(__doc__)


def main(options):
    chosen = [*TABLE_2.values()]
    return commands.run_table(options, chosen, commands.show_table("table2"))


if __name__ == "__main__":
    sys.exit(commands.main(parser(), main))
