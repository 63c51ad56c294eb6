"""Everything, in order of importance.

Table 1 (100 labels first), Table 3, the studies, Table 2 and the other methods.
Each step is the command of its own script, with the options that are given
here. The same command goes on where it ended, and skips what is finished.
"""

import shlex
import subprocess
import sys
from pathlib import Path

from reproduction import commands
from reproduction.methods import METHODS
from reproduction.studies import STUDIES

WITH_NETWORK = [name for name, entry in METHODS.items() if entry.network]

STEPS = (
    # All seeds of one cell, then the whole table.
    "table1.py --labels 100",
    "table1.py",
    # The cell that the paper says most about comes first.
    "table3.py --data norb --labels 1000 300",
    "table3.py --data svhn",
    # The studies that came last have the fewest records.
    *(f"study.py --study {study}" for study in reversed(STUDIES)),
    "table2.py --seeds 0-2",
    # Methods without a network have nothing to do on a GPU.
    f"rivals.py --method {' '.join(WITH_NETWORK)} --seeds 0-2",
    "table3.py --data svhn-extra",
)


def parser():
    return commands.training_parser(__doc__)


def main(options):
    """Runs the commands; the exit status, 1 if one of them failed."""
    failed = {}
    for number, step in enumerate(STEPS, start=1):
        script, *words = step.split()
        path = Path(__file__).with_name(script)
        line = [str(path), *words, "--share-stage-1", *sys.argv[1:]]
        command = shlex.join(["python", *line])
        print(f"step {number} of {len(STEPS)}: {command}", flush=True)
        status = subprocess.run([sys.executable, *line]).returncode
        if status == commands.EXIT_INTERRUPTED:
            return status
        if status not in (0, commands.EXIT_UNFINISHED):
            failed[command] = status
    print(f"{len(STEPS)} steps, {len(failed)} ended with an error.")
    for command, status in failed.items():
        print(f"{command}\n  ended with status {status}: see above")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(commands.main(parser(), main))
