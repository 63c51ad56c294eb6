"""Questions that the paper leaves open: class imbalance, additions to GAR, and
where it breaks."""

import sys
from dataclasses import replace

from reproduction import commands
from reproduction.studies import STUDIES


def parser():
    made = commands.training_parser(__doc__, seeds="0-2")
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
    made.add_argument(
        "--rows",
        type=commands.numbers,
        help="rows of the study to run, counted from 1, e.g. 1-4,7; all by "
        "default; a wrong number lists them",
    )
    return made


def main(options):
    study = STUDIES[options.study].with_settings(
        epochs=options.epochs,
        pretrain_epochs=options.pretrain_epochs,
        frobenius_of=options.frobenius_of,
        balance_of=options.balance_of,
    )
    # They are in the arms now, each of which has its own.
    options.epochs = options.pretrain_epochs = None
    chosen = study
    if options.rows is not None:
        names = dict(enumerate(study.arms, start=1))
        if not names.keys() >= {*options.rows}:
            rows = "; ".join(f"{k} {row}" for k, row in names.items())
            raise ValueError(
                f"--rows takes numbers from 1 to {len(names)}, the rows of the "
                f"study {study.name}. Received: {options.rows}. They are: "
                f"{rows}"
            )
        arms = {names[k]: study.arms[names[k]] for k in options.rows}
        chosen = replace(study, arms=arms)

    def show(report, records, results):
        report.show_study(study, records, results)

    return commands.run_table(options, chosen.experiments, show)


if __name__ == "__main__":
    sys.exit(commands.main(parser(), main))
