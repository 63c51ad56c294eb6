"""Everything, in order of importance.

The speed of 100 epochs, Table 1 (100 labels first), Table 3, the studies, Table
2, the other methods, and the report. Each step is the command of its own
script. The same command goes on where it ended, and skips what is finished.
"""

import shlex
import subprocess
import sys
from pathlib import Path

import table3

from reproduction import commands
from reproduction.methods import METHODS
from reproduction.settings import EXPERIMENTS
from reproduction.studies import STUDIES


def parser():
    made = commands.parser(__doc__)
    commands.add_common(made)
    made.add_argument(
        "--data",
        nargs="*",
        choices=table3.DATA,
        default=["norb"],
        help="data sets of Table 3 to run: those whose files are there "
        "(default: norb)",
    )
    made.add_argument(
        "--data-dir",
        type=commands.existing,
        metavar="DIR",
        help="folder of the data files",
    )
    made.add_argument(
        "--jobs",
        type=commands.positive_integer,
        default=1,
        help="runs to make at once",
    )
    made.add_argument(
        "--dry-run",
        action="store_true",
        help="print the commands, no more; each of them has --dry-run for its "
        "hours",
    )
    return made


def steps(options):
    """The commands in their order, each a list of words."""
    backend = ["--backend", options.backend]
    training = ["--share-stage-1", "--jobs", options.jobs, *backend]
    if options.data_dir:
        training += ["--data-dir", options.data_dir]
    ten, three = (["--seeds", s, *training] for s in ("0-9", "0-2"))
    with_network = [m for m, e in METHODS.items() if e.network]
    lines = [
        ["benchmark.py", *backend],
        # All seeds of one cell, then the whole table.
        ["table1.py", "--labels", 100, *ten],
        ["table1.py", *ten],
    ]
    for data in options.data:
        # The cell that the paper says most about comes first.
        labels = sorted(EXPERIMENTS[data], reverse=True)
        of_data = ["--data", data, "--labels", *labels]
        lines.append(["table3.py", *of_data, *ten])
    # The studies that came last have the fewest records.
    for study in reversed(STUDIES):
        lines.append(["study.py", "--study", study, *three])
    lines += [
        ["table2.py", *three],
        # Methods without a network have nothing to do on a GPU.
        ["rivals.py", "--method", *with_network, *three],
        ["report.py"],
    ]
    here, results = Path(__file__), ["--results", options.results]
    return [
        [sys.executable, *map(str, [here.with_name(script), *words, *results])]
        for script, *words in lines
    ]


def main(options):
    """Runs the commands; the exit status, 1 if one of them failed."""
    lines, failed = steps(options), {}
    for number, line in enumerate(lines, start=1):
        command = shlex.join(["python", *line[1:]])
        print(f"step {number} of {len(lines)}: {command}", flush=True)
        if options.dry_run:
            continue
        status = subprocess.run(line).returncode
        if status == commands.EXIT_INTERRUPTED:
            return status
        if status != 0:
            failed[command] = status
    if not options.dry_run:
        print(f"{len(lines)} steps, {len(failed)} ended with an error.")
    for command, status in failed.items():
        print(f"{command}\n  ended with status {status}: see above")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(commands.main(parser(), main))
