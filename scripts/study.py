"""Questions that the paper leaves open: class imbalance, additions to GAR, and
where it breaks."""

import sys
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from reproduction import cli, experiment_command, report
from reproduction.studies import STUDIES


@dataclass(frozen=True)
class Options(experiment_command.RunOptions):
    """Options of this script."""

    seeds: str = "0-2"
    """Seeds to run, e.g. 0-9 or 0,2,5-7."""
    study: Literal[tuple(STUDIES)] = "skew"
    """skew: class imbalance; best: more than the paper, for longer; limits:
    few labels, label noise, out-of-class images, many classes; first-epoch:
    how often stage 2 loses a class in its first epoch, and what keeps it;
    ablation: what the paper claims, one thing changed at a time; faster: what
    needs fewer epochs; balance: what the balance is made of."""
    rows: str | None = None
    """Rows of the study to run, counted from 1, e.g. 1-4,7; all by default. A
    wrong number lists them."""

    def __post_init__(self):
        super().__post_init__()
        self.experiments_of(STUDIES[self.study])

    def experiments_of(self, study):
        """The experiments to run of a study."""
        if self.rows is None:
            return study.experiments
        numbers = experiment_command.parse_seeds(self.rows, "--rows")
        names = [*study.arms]
        if not all(1 <= number <= len(names) for number in numbers):
            rows = "; ".join(f"{k} {row}" for k, row in enumerate(names, 1))
            raise ValueError(
                f"--rows takes numbers from 1 to {len(names)}, the rows of "
                f"the study {study.name}. Received: {self.rows!r}. They are: "
                f"{rows}"
            )
        arms = {i: study.arms[i] for i in (names[k - 1] for k in numbers)}
        return replace(study, arms=arms).experiments


def main(options):
    """Runs the rows of the study."""
    study = STUDIES[options.study].with_settings(
        epochs=options.epochs,
        pretrain_epochs=options.pretrain_epochs,
        frobenius_of=options.frobenius_of,
        balance_of=options.balance_of,
    )
    # They are in the arms now, each of which has its own.
    options = replace(options, epochs=None, pretrain_epochs=None)
    show = partial(report.show_study, study)
    return experiment_command.run_table(
        options, options.experiments_of(study), show
    )


if __name__ == "__main__":
    sys.exit(cli.run(main, cli.parse(Options, __doc__)))
