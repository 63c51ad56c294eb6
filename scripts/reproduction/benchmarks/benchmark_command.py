"""What the command lines of the benchmark scripts have in common."""

import math
import time
from dataclasses import dataclass

import filelock

from reproduction import cli, environment, experiment_command, records
from reproduction.paths import path_of_benchmark
from reproduction.state import lock_at


@dataclass(frozen=True)
class Options(experiment_command.Options):
    """Options of both scripts."""

    pairs: int = 10
    """Timed pairs of stretches."""

    def __post_init__(self):
        super().__post_init__()
        cli.check_count("--pairs", self.pairs, least=2)


def run(options, kind, cases, measure):
    """Measures the cases that the record of a kind does not hold.

    Returns the exit status: 0, or 124 if cases are left for want of time.
    """
    deadline = time.monotonic() + (options.time_limit or math.inf)
    path = path_of_benchmark(kind, environment.describe(), options.results)
    lock = lock_at(path.parent / ".checkpoints" / path.name)
    try:
        held = lock.acquire(timeout=0)
    except filelock.Timeout:
        raise ValueError(
            f"Another process is measuring into {path}. Wait for its end: two "
            "that measure at once disturb each other"
        ) from None
    with held:
        return _fill(path, kind, cases, measure, options.time_limit, deadline)


def _fill(path, kind, cases, measure, time_limit, deadline):
    """What `run` does while no other process does it."""
    entries = records.read(path)["cases"] if path.exists() else []
    for case in cases:
        settings = case.model_dump()
        if settings not in [entry["case"] for entry in entries]:
            if time.monotonic() >= deadline:
                print(
                    f"Time limit of {time_limit:g} s reached. The same "
                    "command goes on after the last finished case."
                )
                return cli.EXIT_TIME
            here = {"environment": environment.describe()}
            entries.append({"case": settings, **here, **measure(case)})
            content = {"format": records.FORMAT, "kind": kind}
            records.write(path, {**content, "cases": entries})
        entry = next(e for e in entries if e["case"] == settings)
        print(*(f"{key} {value}" for key, value in settings.items()), sep=", ")
        for name in ("reference_ms", "ms", "ratio"):
            low, high = entry[name]["quartiles"]
            median = entry[name]["median"]
            print(f"  {name} {median:.4g} ({low:.4g} to {high:.4g})")
    print(f"Written: {path}")
    return 0
