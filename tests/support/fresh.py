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


def run(program, *arguments, env=None, cwd=None):
    """What Python prints of the text of a program, which must not fail."""
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        env=env or environment(),
        cwd=cwd,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
