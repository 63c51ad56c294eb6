"""What the command lines of the benchmark scripts have in common."""

import math
import time
from dataclasses import dataclass

import filelock

from gar_keras.experiments import command, environment, records
from gar_keras.experiments.placement import path_of_benchmark
from gar_keras.utils import cli


@dataclass(frozen=True)
class Options(command.Options):
    """Options of both scripts."""

    pairs: int = 10
    """Timed pairs of stretches."""
    steps: int | None = None
    """Steps in a stretch. By default what suits the device."""

    def __post_init__(self):
        super().__post_init__()
        cli.check_at_least("--pairs", self.pairs, 2)
        cli.check_at_least("--steps", self.steps, 1)


def run(options, kind, cases, measure):
    """Measures cases as `fill`, and says what came of it.

    Returns:
        The exit status: 0, or 124 if cases are left for want of time.
    """
    deadline = time.monotonic() + (options.time_limit or math.inf)
    path = path_of_benchmark(kind, environment.describe(), options.results)
    for entry in fill(path, kind, cases, measure, deadline):
        if entry is None:
            print(
                f"Time limit of {options.time_limit:g} s reached. The same "
                "command goes on after the last finished case."
            )
            return cli.EXIT_TIME
        print(describe(entry))
    print(f"Written: {path}")
    return 0


def fill(path, kind, cases, measure, deadline=math.inf):
    """Measures the cases that a record does not hold, and writes each there.

    Args:
        path: Path of the record.
        kind: `"benchmark"` or `"overhead"`.
        cases: List of `records.SpeedSettings` or `records.OverheadSettings`.
        measure: Function of a case that returns what was measured.
        deadline: `time.monotonic()` after which no case is begun.

    Yields:
        The entry of each case, measured now or before; at the end `None`, if
        cases are left.

    Raises:
        RecordError: if the file in its place is not such a record.
        ValueError: if another process is measuring into it.
    """
    folder = path.parent / ".checkpoints"
    folder.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(folder / f"{path.stem}.lock")
    try:
        held = lock.acquire(timeout=0)
    except filelock.Timeout:
        raise ValueError(
            f"Another process is measuring into {path}. Wait for its end: two "
            "that measure at once disturb each other."
        ) from None
    with held:
        entries = records.read(path)["cases"] if path.exists() else []
        for case in cases:
            settings = case.model_dump()
            done = [e for e in entries if e["case"] == settings]
            if not done:
                if time.monotonic() >= deadline:
                    yield None
                    return
                here = {"environment": environment.describe()}
                done = [{"case": settings, **here, **measure(case)}]
                entries += done
                content = {"format": records.FORMAT, "kind": kind}
                records.write(path, {**content, "cases": entries})
            yield done[0]


def describe(entry):
    """One line on a measured case."""
    case = ", ".join(f"{key} {value}" for key, value in entry["case"].items())
    low, high = entry["ratio"]["quartiles"]
    return (
        f"{case}: {entry['ms']['median']:.4g} ms, the reference "
        f"{entry['reference_ms']['median']:.4g} ms; ratio "
        f"{entry['ratio']['median']:.4f} ({low:.4f} to {high:.4f})"
    )
