"""Table 2 of the paper: InfiMNIST with 100 labels."""

import sys

from reproduction import commands
from reproduction.settings import TABLE_2


def parser():
    made = commands.training_parser(__doc__)
    commands.add_labels(made, "infimnist")
    return made


def show(records, results):
    from reproduction import report
    from reproduction.report import published

    report.show_table(published.TABLE_2, records, results)


if __name__ == "__main__":
    options = parser().parse_args()
    chosen = [TABLE_2[m] for m in options.labels]
    sys.exit(commands.run_table(options, chosen, show))
