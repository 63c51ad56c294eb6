"""Table 2 of the paper: InfiMNIST with 100 labels."""

import sys

from reproduction import commands
from reproduction.settings import TABLE_2


def parser():
    made = commands.training_parser(__doc__)
    commands.add_labels(made, "infimnist")
    return made


def main(options):
    chosen = [TABLE_2[m] for m in options.labels]
    return commands.run_table(options, chosen, show)


def show(report, records, results):
    report.show_table(report.published.TABLES["table2"], records, results)


if __name__ == "__main__":
    sys.exit(commands.main(parser(), main))
