"""Records of benchmarks: one JSON file for each machine and backend."""

import math
import re
import time
from dataclasses import asdict
from pathlib import Path

import filelock

from gar_keras.experiments import records
from gar_keras.experiments.records import RecordError
from gar_keras.utils import files

FORMAT = 1
# What every entry has; each kind of benchmark adds its own.
KEYS = ("case", "environment", "reference_ms", "ms", "ratio", "peak")


def file_name(kind, environment):
    """Name of the record of a benchmark on a machine.

    Args:
        kind: What is measured, e.g. `"benchmark"`.
        environment: What `environment.describe` returns.

    Example:

    >>> file_name("overhead", {"device": "AMD EPYC (R)", "cores": 2,
    ...     "device_kind": "cpu", "backend": "jax"})
    'overhead_amd-epyc-r-2-cores_jax.json'
    """
    device = environment["device"]
    if environment["device_kind"] == "cpu":
        # The name of a processor does not say how many of its cores there are.
        device += f" {environment['cores']} cores"
    slug = re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-")
    return f"{kind}_{slug}_{environment['backend']}.json"


def fill(results, kind, cases, measure, *, deadline=math.inf, say=print):
    """Measures the cases that the record of this machine does not hold yet.

    The record is written after each case. A case that the deadline cuts off is
    measured afresh the next time.

    Args:
        results: Folder of the records.
        kind: `"benchmark"` or `"overhead"`.
        cases: List of `Case` of that kind.
        measure: Function of a case and the deadline that returns its entry.
        deadline: `time.monotonic()` at which to have stopped.
        say: Called with the entry of each case, measured now or before.

    Returns:
        `(path, complete)`: the path of the record, and whether it holds all
        cases.

    Raises:
        RecordError: if the file in its place is not such a record.
        ValueError: if another process is measuring into it.
    """
    from gar_keras.experiments import environment
    from gar_keras.experiments.recorder import OutOfTime

    here = environment.describe()
    path = Path(results) / file_name(kind, here)
    try:
        lock = _lock(path).acquire(timeout=0)
    except filelock.Timeout:
        raise ValueError(
            f"Another process is measuring into {path}. Wait for its end: two "
            "that measure at once disturb each other."
        ) from None
    with lock:
        files.delete_leftovers(path)
        entries = read(path)["cases"] if path.exists() else []
        for case in cases:
            entry = _find(entries, case)
            if entry is None:
                if time.monotonic() >= deadline:
                    return path, False
                try:
                    result = measure(case, deadline)
                except OutOfTime:
                    return path, False
                entry = {"case": asdict(case), "environment": here, **result}
                entries.append(entry)
                content = {"format": FORMAT, "kind": kind, "cases": entries}
                records.write(path, content)
            say(entry)
    return path, True


def _lock(path):
    """The lock of those who measure, beside those of the runs."""
    folder = path.parent / ".checkpoints"
    folder.mkdir(parents=True, exist_ok=True)
    return filelock.FileLock(folder / f"{path.stem}.lock")


def _find(entries, case):
    wanted = asdict(case)
    return next((e for e in entries if e["case"] == wanted), None)


def read(path):
    """Reads one record.

    Raises:
        RecordError: if the file is not a record of this format, or has not
            the name of its machine.
    """
    path = Path(path)
    content = records.read_json(path, "measure again")
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise RecordError(
            f"{path} is not a benchmark record of format {FORMAT}. Move it out "
            "of the results folder."
        )
    entries = content.get("cases")
    whole = isinstance(entries, list) and all(
        isinstance(e, dict) and not set(KEYS) - e.keys() for e in entries
    )
    if not whole:
        raise RecordError(
            f"{path} is not a whole benchmark record: each of its cases must "
            f"have {', '.join(KEYS)}. Delete it to measure again."
        )
    for entry in entries:
        name = file_name(content.get("kind"), entry["environment"])
        if name != path.name:
            raise RecordError(
                f"{path} holds a measurement that belongs in {name}: it was "
                "renamed, copied or put together. Give it that name, or move "
                "it out of the results folder."
            )
    return content


def read_all(results, kind):
    """The entries of all records of a kind, in the order of the file names."""
    paths = sorted(Path(results).glob(f"{kind}_*.json"))
    return [entry for path in paths for entry in read(path)["cases"]]
