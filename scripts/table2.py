"""Table 2 of the paper: InfiMNIST with 100 labels."""

import sys
from dataclasses import dataclass
from functools import partial

from gar_keras import report
from gar_keras.experiments import command
from gar_keras.report.published import TABLE_2


@dataclass(frozen=True)
class Options(command.DataOptions):
    """Options of this script."""

    data = "infimnist"


if __name__ == "__main__":
    sys.exit(
        command.main(Options, __doc__, partial(report.show_table, TABLE_2))
    )
