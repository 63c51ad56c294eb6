"""Everything, in order of importance.

The speed of 100 epochs, Table 1 (100 labels first), Table 3, the studies, Table
2, the other methods, and the report. Each step is the command of its own
script. The same command goes on where it ended, and skips what is finished.
--rehearse first shows in about ten minutes which steps work.
"""

import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from reproduction import cli, experiment_command, paths
from reproduction.settings import EXPERIMENTS, NETWORK_BASELINES
from reproduction.studies import STUDIES

# Data sets with the network of Table 3: its own and their stand-ins.
TABLE_3 = tuple(
    name
    for name, by_labels in EXPERIMENTS.items()
    if any(e.network == "cnn9" for e in by_labels.values())
)

# What a rehearsal puts behind the options of a step, which takes the last.
SHORT = "--seeds 0 --epochs 1 --pretrain-epochs 1 --images-per-epoch 1000"
REHEARSED = {
    "benchmark.py": "--pairs 2",
    "study.py": f"{SHORT} --rows 1",
    "report.py": "",
}

REFERENCE = paths.reference().resolve()


@dataclass(frozen=True)
class Options(experiment_command.Options):
    """Options of this script."""

    data: tuple[Literal[TABLE_3], ...] = ("norb",)
    """Data sets of Table 3 to run: those whose files are there."""
    data_dir: cli.OptionalFolder = None
    """Folder of the data files, for data that are not in the package."""
    jobs: int = 1
    """Runs to make at once, in processes of their own."""
    rehearse: bool = False
    """Walk each step once, with one row, one seed, an epoch of each stage and
    few images, to see that it works. The records go into a folder rehearsal in
    the results."""
    dry_run: bool = False
    """Print the commands, no more."""

    def __post_init__(self):
        super().__post_init__()
        cli.check_values("--data", self.data or None, TABLE_3)
        cli.check_data_dir(self.data_dir)
        cli.check_count("--jobs", self.jobs)
        if self.rehearse and self.results.resolve() == REFERENCE:
            raise ValueError(
                "--rehearse makes no records of the project's. Received: "
                f"--results {self.results}. Name another folder"
            )


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
        ["report.py"],
    ]


def labels(data):
    """The option of a data set's numbers of labels."""
    # The cell that the paper says most about comes first.
    numbers = sorted(EXPERIMENTS[data], reverse=True)
    return ["--labels", *map(str, numbers)]


def files_of(study):
    """The data sets of a study that are not in the package."""
    return {e.dataset for e in study.experiments} & {*TABLE_3}


def arguments(words, options):
    """A command with the options that all share."""
    name, *words = words
    results = options.results
    if options.rehearse:
        results = results / "rehearsal"
        words += REHEARSED.get(name, SHORT).split()
    words += ["--results", results]
    if name != "report.py":
        words += ["--backend", options.backend]
    if name not in ("report.py", "benchmark.py"):
        words += ["--share-stage-1", "--jobs", options.jobs]
    return [str(word) for word in (Path(__file__).with_name(name), *words)]


def call(line, backend):
    """The exit status of a command, and the last line of its errors."""
    environment = {**os.environ, "KERAS_BACKEND": backend}
    last = ""
    with subprocess.Popen(
        [sys.executable, *line],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        for text in process.stderr:
            sys.stderr.write(text)
            last = text.strip() or last
    return process.returncode, last


def main(options):
    """Runs the commands; the exit status, 1 if one of them failed."""
    steps = plan(options)
    begun, failed, left = 0, {}, False
    for number, words in enumerate(steps, start=1):
        line = arguments(words, options)
        command = f"python {shlex.join(line)}"
        print(f"step {number} of {len(steps)}: {command}", flush=True)
        if options.dry_run:
            continue
        begun = number
        status, last = call(line, options.backend)
        if status == cli.EXIT_INTERRUPTED:
            return status
        if status == cli.EXIT_UNFINISHED:
            left = True
        elif status != 0:
            failed[command] = last or f"it ended with status {status}"
    if not options.dry_run:
        tell_end(failed, begun, len(steps))
    if failed:
        return 1
    return cli.EXIT_UNFINISHED if left else 0


def tell_end(failed, begun, total):
    """Says how many steps there were, and which failed and why."""
    print(f"{begun} of {total} steps begun, {len(failed)} failed.")
    for command, reason in failed.items():
        print(f"{command}\n  {reason}")


if __name__ == "__main__":
    sys.exit(cli.run(main, cli.parse(Options, __doc__)))
