"""Programs in a process of their own, which finds what the tests share."""

import os
import subprocess
import sys
from pathlib import Path

SUPPORT = Path(__file__).parent
SCRIPTS = SUPPORT.parents[1] / "scripts"


def environment(*folders, **changes):
    """`os.environ` with the changes, and modules of this and other folders."""
    path = [*folders, SUPPORT, SCRIPTS, os.environ.get("PYTHONPATH")]
    path = os.pathsep.join(str(folder) for folder in path if folder)
    return {**os.environ, "PYTHONPATH": path, **changes}


def start(*words, env=None, **options):
    """Python with these words, whose output can be read here."""
    return subprocess.Popen(
        [sys.executable, *map(str, words)],
        env=env or environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def run(program, *arguments, **options):
    """What Python prints of the text of a program, which must not fail."""
    process = start("-c", program, *arguments, **options)
    output, errors = process.communicate()
    assert process.returncode == 0, errors[-3000:]
    return output
