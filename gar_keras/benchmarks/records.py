"""Records of benchmarks: one JSON file for each machine and backend."""

import math
import time
from dataclasses import asdict
from pathlib import Path

import filelock

from gar_keras.experiments import records
from gar_keras.experiments.placement import path_of_benchmark
from gar_keras.experiments.records import FORMAT, read
from gar_keras.utils import files


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
    path = path_of_benchmark(kind, here, results)
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


def read_all(results, kind):
    """The entries of all records of a kind, in the order of the file names."""
    paths = sorted(Path(results).glob(f"{kind}_*.json"))
    return [entry for path in paths for entry in read(path)["cases"]]
