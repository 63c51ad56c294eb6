"""What a run ran on, for its record."""

import os
import platform
import subprocess
from pathlib import Path

import keras
import numpy as np

import gar_keras
from gar_keras.engine import backend, hardware, resources


def describe():
    """Versions, device and git revision, as a dict for a record."""
    return {
        "gar_keras": gar_keras.__version__,
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
        "threads": resources.threads(backend.name()),
    }


def _git_revision():
    """Commit of the package's source, `+changes` behind it if it was edited."""
    package = Path(__file__).resolve().parents[1]
    # An installed copy may lie in somebody else's repository.
    if _git(package, "ls-files", "--error-unmatch", "layers.py") is None:
        return None
    commit = _git(package, "rev-parse", "HEAD")
    if commit is None:
        return None
    edited = _git(package, "status", "--porcelain", "-uno", "--", ".")
    return commit + ("+changes" if edited else "")


def _git(folder, *arguments):
    try:
        answer = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()
