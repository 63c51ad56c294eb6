"""Table 1 of the paper: MNIST with 100, 600, 1000 and 3000 labels."""

import sys
from functools import partial

from reproduction import experiment_command, report
from reproduction.experiment_command import DataOptions as Options
from reproduction.report.published import TABLE_1

if __name__ == "__main__":
    show = partial(report.show_table, TABLE_1)
    sys.exit(experiment_command.main(Options, __doc__, show))
