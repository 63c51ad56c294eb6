"""What a run ran on, for its record."""

import os
import platform
import subprocess
from pathlib import Path

import keras
import numpy as np

from gar_keras.engine import backend, hardware
from gar_keras.utils.version import __version__


def describe():
    """Versions, device and git revision, as a dict for a record."""
    return {
        "gar_keras": __version__,
        "git_revision": _git_revision(),
        "python": platform.python_version(),
        "keras": keras.__version__,
        "backend": backend.name(),
        "backend_version": backend.backend_version(),
        "numpy": np.__version__,
        "system": f"{platform.system()} {platform.machine()}",
        "device_kind": hardware.device_kind(),
        "device": hardware.device_name(),
        "processor": hardware.processor()["model"],
        "cores": os.cpu_count(),
        "threads": hardware.threads(backend.name()),
    }


def _git_revision():
    """Commit of the package's source, `+changes` behind it if it was edited."""
    try:
        # An installed copy may lie in somebody else's repository.
        _git("ls-files --error-unmatch layers.py")
        edited = _git("status --porcelain -uno -- .")
        return _git("rev-parse HEAD") + ("+changes" if edited else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _git(words):
    command, package = f"git {words}".split(), Path(__file__).parents[1]
    options = {"stderr": subprocess.DEVNULL, "text": True, "timeout": 10}
    return subprocess.check_output(command, cwd=package, **options).strip()
