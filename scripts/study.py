"""Questions that the paper leaves open: class imbalance, additions to GAR, and
where it breaks."""

import argparse
import sys
from dataclasses import replace

from reproduction import commands
from reproduction.settings import flat
from reproduction.studies import STUDIES

# Options that some arm may be about.
OF_ARMS = ("pretrain_epochs", "frobenius_of", "balance_of")


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
    usual, *_ = map(flat, study.arms.values())
    arms = {}
    for row, arm in study.arms.items():
        own = flat(arm)
        # What the row is about stays.
        kept = [k for k in OF_ARMS if own.get(k) != usual[k]]
        others = vars(options) | dict.fromkeys(kept)
        arms[row] = commands.apply(
            argparse.Namespace(**others), arm, arm.precision
        )
    study = replace(study, arms=arms)
    # The arms have theirs by now.
    vars(options).update(dict.fromkeys(OF_ARMS))

    def show(report, records, results):
        report.show_study(study, records, results)

    return commands.run_table(options, study.experiments, show)


if __name__ == "__main__":
    sys.exit(commands.main(parser(), main))
