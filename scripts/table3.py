"""Table 3 of the paper: SVHN and NORB; and their stand-ins."""

import sys
from dataclasses import dataclass
from functools import partial
from typing import Literal

from reproduction import cli, experiment_command, report
from reproduction.report.published import SVHN_GREY, TABLE_3
from reproduction.settings import EXPERIMENTS

# The table of each data set.
DATA = {
    name: table
    for table in (TABLE_3, SVHN_GREY)
    for name, by_labels in EXPERIMENTS.items()
    if {e.cell for e in by_labels.values()}
    & {cell for c in table.columns for cell in (c.cell, c.stand_in)}
}


@dataclass(frozen=True)
class Options(experiment_command.DataOptions):
    """Options of this script."""

    data: Literal[tuple(DATA)] = "norb"
    """Data set: the official files of norb, svhn with or without its extra
    images, or a stand-in: norb-jpeg, svhn-grey."""
    labels: tuple[int, ...] = (1000,)
    """Numbers of labelled images: 1000, for NORB 300 too."""


if __name__ == "__main__":
    options = cli.parse(Options, __doc__)
    show = partial(report.show_table, DATA[options.data])
    sys.exit(experiment_command.run_table(options, options.experiments, show))
