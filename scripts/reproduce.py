"""Everything, in order of importance, as far as the time allows.

The speed of 100 epochs, Table 1 (100 labels first), Table 3, the studies, Table
2, and the other methods. Each step is the command of its own script, and gets
the time that those before it have left. The same command goes on where it
ended, and skips what is finished.
"""

import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from reproduction import cli, experiment_command
from reproduction.settings import EXPERIMENTS, NETWORK_BASELINES
from reproduction.studies import STUDIES

# Data sets with the network of Table 3: its own and their stand-ins.
TABLE_3 = tuple(
    name
    for name, by_labels in EXPERIMENTS.items()
    if any(e.network == "cnn9" for e in by_labels.values())
)


@dataclass(frozen=True)
class Options(experiment_command.Options):
    """Options of this script."""

    data: tuple[Literal[TABLE_3], ...] = ("norb",)
    """Data sets of Table 3 to run: those whose files are there."""
    data_dir: cli.OptionalFolder = None
    """Folder of the data files, for data that are not in the package."""
    jobs: int = 1
    """Runs to make at once, in processes of their own."""
    dry_run: bool = False
    """Print the commands, no more."""

    def __post_init__(self):
        super().__post_init__()
        cli.check_values("--data", self.data or None, TABLE_3)
        cli.check_data_dir(self.data_dir)
        cli.check_count("--jobs", self.jobs)


def plan(options):
    """The commands in their order, each a list of words."""
    table_1 = ["table1.py", "--seeds", "0-9"]
    baselines = ["rivals.py", "--method", "gar", *NETWORK_BASELINES]
    # With --data-dir, MNIST would be looked for there as well.
    files = ["--data-dir", options.data_dir] if options.data_dir else []
    return [
        ["benchmark.py"],
        # All seeds of one cell, then the whole table.
        [*table_1, "--labels", "100"],
        table_1,
        *(
            ["table3.py", "--data", data, "--seeds", "0-9", *labels(data)]
            + files
            for data in options.data
        ),
        # Of the studies, those that came last have the fewest records.
        *(
            ["study.py", "--study", study.name, "--seeds", "0-2"]
            + (files if files_of(study) else [])
            for study in reversed(STUDIES.values())
            if files_of(study) <= {*options.data}
        ),
        ["table2.py", "--seeds", "0-2"],
        # Those without a network have nothing to do on a GPU.
        [*baselines, "--seeds", "0-2"],
    ]


def labels(data):
    """The option of a data set's numbers of labels."""
    # The cell that the paper says most about comes first.
    numbers = sorted(EXPERIMENTS[data], reverse=True)
    return ["--labels", *map(str, numbers)]


def files_of(study):
    """The data sets of a study that are not in the package."""
    return {e.dataset for e in study.experiments} & {*TABLE_3}


def arguments(words, options, seconds):
    """A command with the options that all share; `None` for no time limit."""
    name, *words = words
    if name != "benchmark.py":
        words += ["--share-stage-1", "--jobs", options.jobs]
    words += ["--backend", options.backend, "--results", options.results]
    if seconds is not None:
        words += ["--time-limit", max(1, round(seconds))]
    return [str(word) for word in (Path(__file__).with_name(name), *words)]


def main(options):
    """Runs the commands; the exit status, 1 if one of them failed."""
    end = None
    if options.time_limit is not None:
        end = time.monotonic() + options.time_limit
    statuses = set()
    for words in plan(options):
        left = None if end is None else end - time.monotonic()
        if left is not None and left <= 0:
            return cli.EXIT_TIME
        line = arguments(words, options, left)
        print(f"python {shlex.join(line)}", flush=True)
        if not options.dry_run:
            statuses.add(subprocess.call([sys.executable, *line]))
        if cli.EXIT_INTERRUPTED in statuses:
            return cli.EXIT_INTERRUPTED
    if statuses - {0, cli.EXIT_TIME}:
        return 1
    return max(statuses, default=0)


if __name__ == "__main__":
    sys.exit(cli.run(main, cli.parse(Options, __doc__)))
