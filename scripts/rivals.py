"""GAR and other semi-supervised methods on the same network and labels."""

import sys
from dataclasses import replace

from reproduction import commands
from reproduction.methods import METHODS
from reproduction.settings import EXPERIMENTS

# Graphs need all of X_U, which the others make or read from a disk.
IN_MEMORY = [
    name for name in EXPERIMENTS if name not in ("infimnist", "svhn-extra")
]


def parser():
    made = commands.training_parser(__doc__)
    made.add_argument(
        "--method",
        nargs="+",
        choices=METHODS,
        default=[*METHODS],
        help="methods to run (default: all)",
    )
    made.add_argument(
        "--data",
        choices=IN_MEMORY,
        default="mnist",
        help="data set; docs/experiments.md tells where their files come from "
        "(default: %(default)s)",
    )
    made.add_argument(
        "--labels",
        type=int,
        nargs="+",
        help="numbers of labelled images; the least of the data set by default",
    )
    made.add_argument(
        "--rate",
        type=commands.positive_number,
        help="learning rate of stage 2, for all methods that train a network; "
        "by default the paper's, 0.01",
    )
    return made


def main(options):
    labels = options.labels or [*EXPERIMENTS[options.data]][:1]
    chosen = []
    for experiment in commands.experiments_of(options.data, labels):
        for method in options.method:
            e = experiment.with_method(method)
            if e.trains_network:
                e = replace(e, stage_2_rate=options.rate)
            chosen.append(e)

    def show(report, records, results):
        report.show_baselines(records, results)

    return commands.run_table(options, chosen, show)


if __name__ == "__main__":
    sys.exit(commands.main(parser(), main))
