"""Questions that the paper leaves open: class imbalance, additions to GAR, and
where it breaks."""

import sys
from dataclasses import replace

from reproduction import commands
from reproduction.studies import STUDIES


def parser():
    made = commands.training_parser(__doc__, default_seeds="0-2")
    made.add_argument(
        "--study",
        choices=[*STUDIES],
        default="skew",
        help="skew: class imbalance; best: more than the paper, for longer; "
        "limits: few labels, label noise, out-of-class images, many classes; "
        "first-epoch: how often stage 2 loses a class in its first epoch, and "
        "what keeps it; ablation: what the paper claims, one thing changed at "
        "a time; faster: what needs fewer epochs; balance: what the balance is "
        "made of (default: %(default)s)",
    )
    return made


def main(options):
    study = STUDIES[options.study]
    usual = next(iter(study.arms.values())).pretrain_epochs
    arms = {}
    for row, arm in study.arms.items():
        arms[row] = commands.apply(options, arm, arm.precision)
        if arm.pretrain_epochs != usual:
            # The row is about the length of its stage 1.
            arms[row] = replace(arms[row], pretrain_epochs=arm.pretrain_epochs)
    study = replace(study, arms=arms)
    # The arms have their epochs of stage 1 by now.
    options.pretrain_epochs = None

    def show(report, records, results):
        report.show_study(study, records, results)

    return commands.run_table(options, study.experiments, show)


if __name__ == "__main__":
    sys.exit(commands.main(parser(), main))
