"""Everything, in order of importance, as far as the time allows.

The speed of 100 epochs, Table 1 (100 labels first), Table 3, the studies, Table
2, and the other methods. Each step is the command of its own script, and gets
the time that those before it have left. The same command goes on where it
ended, and skips what is finished.
"""

import sys
from dataclasses import dataclass
from typing import Literal

from gar_keras.experiments import command, reproduction
from gar_keras.utils import cli

STEPS = tuple(
    step.name for step in reproduction.plan(reproduction.TABLE_3_DATA)
)


@dataclass(frozen=True)
class Options(command.Options):
    """Options of this script."""

    data: tuple[Literal[reproduction.TABLE_3_DATA], ...] = ("norb",)
    """Data sets of Table 3 to run: those whose files are there."""
    data_dir: cli.Folder = None
    """Folder of the data files, for data that are not in the package."""
    only: tuple[Literal[STEPS], ...] = ()
    """Steps to run; all by default."""
    jobs: int = 1
    """Runs to make at once, in processes of their own."""
    dry_run: bool = False
    """Print the commands and how many of their runs are finished, no more."""
    tiny: bool = False
    """Make the runs a few steps long, to try the commands out; where a study
    is of the length of stage 1, that stays. Its records stand for nothing:
    give it --results of its own."""

    def __post_init__(self):
        super().__post_init__()
        cli.check_data_dir(self.data_dir)
        cli.check_at_least("--jobs", self.jobs, 1)


def main(options):
    """Runs the steps that are wanted."""
    steps = [
        step
        for step in reproduction.plan(options.data)
        if not options.only or step.name in options.only
    ]
    return reproduction.run(steps, options)


if __name__ == "__main__":
    try:
        sys.exit(main(cli.parse(Options, __doc__)))
    except (ValueError, OSError) as e:
        cli.fail(e)
