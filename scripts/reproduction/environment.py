"""What a run ran on, for its record."""

import functools
import os
import platform
import subprocess
from importlib import import_module
from pathlib import Path

import keras
import numpy as np

import gar_keras
from gar_keras.engine import backend, hardware
from gar_keras.utils.version import __version__
from reproduction import processes
from reproduction.paths import ROOT

PACKAGE = Path(gar_keras.__file__).resolve().parent
# Where code is sent to a machine without its history.
REVISION = "GAR_KERAS_REVISION"


def describe():
    """Versions, device and git revision, as a dict for a record."""
    return {
        "gar_keras": __version__,
        "git_revision": revision_in_use(),
        "python": platform.python_version(),
        "keras": keras.__version__,
        "backend": backend.name(),
        "backend_version": import_module(backend.name()).__version__,
        "numpy": np.__version__,
        "system": f"{platform.system()} {platform.machine()}",
        "device_kind": hardware.device_kind(),
        "device": device(),
        "processor": hardware.processor()["model"],
        "cores": os.cpu_count(),
        "threads": processes.threads(backend.name()),
        "xla_flags": os.environ.get("XLA_FLAGS"),
        "onednn": os.environ.get("TF_ENABLE_ONEDNN_OPTS"),
    }


def device():
    """The device in use by its name; of a processor also that it lacks AVX512.

    One name stands for several generations of processors, of which those
    without AVX512 are much slower.
    """
    name, flags = hardware.device_name(), hardware.processor()["flags"]
    on_cpu = hardware.device_kind() == "cpu"
    # Without flags it is another kind of processor, or the OS does not tell.
    if on_cpu and flags and "avx512f" not in flags:
        name += " without AVX512"
    return name


def device_in_words(described):
    """Device and cores of an environment in a record, as `describe` gives it.

    Example:

    >>> device_in_words({"device": "AMD EPYC", "device_kind": "cpu",
    ...                  "threads": 1, "cores": 2})
    'AMD EPYC (1 of 2 cores)'
    """
    cores = described["cores"]
    # Older records do not tell the threads.
    threads = described.get("threads", cores)
    if described["device_kind"] == "cpu" and threads < cores:
        cores = f"{threads} of {cores}"
    return f"{described['device']} ({cores} cores)"


@functools.cache
def revision_in_use():
    """The `git_revision` when a program first asks, as its runs begin.

    What is edited or committed later does not run in it.
    """
    return git_revision()


def git_revision(root=ROOT, package=PACKAGE):
    """Commit of the code in a clone, `+changes` behind it if it was edited.

    The code is that of the package and of the scripts. Where the package in
    use is not that of the clone, no commit is of both: `None`.
    """
    if REVISION in os.environ:
        return os.environ[REVISION] or None
    if package != root / "gar_keras":
        return None

    def git(words):
        options = {"stderr": subprocess.DEVNULL, "text": True}
        command = ["git", *words.split()]
        return subprocess.check_output(command, cwd=root, **options).strip()

    try:
        edited = git("status --porcelain -uno -- gar_keras scripts")
        commit = git("rev-parse HEAD")
    except (OSError, subprocess.SubprocessError):
        return None
    return f"{commit}+changes" if edited else commit
