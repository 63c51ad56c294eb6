"""Table 2 of the paper: InfiMNIST with 100 labels."""

from dataclasses import dataclass
from functools import partial
import sys

from gar_keras import report
from gar_keras.experiments.settings import TABLE_2 as EXPERIMENTS
from gar_keras.report.published import TABLE_2
from gar_keras.utils import cli


@dataclass(frozen=True)
class Options(cli.RunOptions):
    """Options of this script."""

    labels: cli.Labels = tuple(EXPERIMENTS)
    """Numbers of labelled images: 100."""

    def __post_init__(self):
        super().__post_init__()
        cli.check_labels(self.labels, EXPERIMENTS)


if __name__ == "__main__":
    options = cli.parse(Options, __doc__)
    experiments = [EXPERIMENTS[m] for m in options.labels]
    sys.exit(cli.run_table(options, experiments, partial(report.show, TABLE_2)))
