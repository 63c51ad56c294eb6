"""Table 1 of the paper: MNIST with 100, 600, 1000 and 3000 labels."""

import sys

from reproduction import commands
from reproduction.settings import TABLE_1


def parser():
    made = commands.training_parser(__doc__)
    commands.add_labels(made, "mnist")
    return made


def show(records, results):
    from reproduction import report
    from reproduction.report import published

    report.show_table(published.TABLE_1, records, results)


if __name__ == "__main__":
    options = parser().parse_args()
    chosen = [TABLE_1[m] for m in options.labels]
    sys.exit(commands.run_table(options, chosen, show))
