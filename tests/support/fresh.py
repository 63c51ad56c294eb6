"""The environment of a process that imports what the tests share."""

import os
from pathlib import Path

SUPPORT = Path(__file__).parent
SCRIPTS = SUPPORT.parents[1] / "scripts"


def environment(*folders, **changes):
    """`os.environ` with the changes, and modules of this and other folders."""
    path = [*folders, SUPPORT, SCRIPTS, os.environ.get("PYTHONPATH")]
    path = os.pathsep.join(str(folder) for folder in path if folder)
    return {**os.environ, "PYTHONPATH": path, **changes}
