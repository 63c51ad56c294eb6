"""Table 2 of the paper: InfiMNIST with 100 labels."""

import sys
from dataclasses import dataclass
from functools import partial

from reproduction import experiment_command, report
from reproduction.report.published import TABLE_2


@dataclass(frozen=True)
class Options(experiment_command.DataOptions):
    """Options of this script."""

    data = "infimnist"


if __name__ == "__main__":
    show = partial(report.show_table, TABLE_2)
    sys.exit(experiment_command.main(Options, __doc__, show))
