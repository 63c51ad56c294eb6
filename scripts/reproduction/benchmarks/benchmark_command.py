"""What the command lines of the benchmark scripts have in common."""

import time
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

import filelock

from reproduction import (
    cli,
    deadlines,
    environment,
    experiment_command,
    records,
)
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
    deadline = deadlines.deadline_in(options.time_limit)
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
        end = partial(_tell_end, options.time_limit)
        return _fill(path, kind, cases, measure, deadline, end)


def _tell_end(time_limit):
    print(
        f"{deadlines.reached(time_limit)} The same command goes on after the "
        "last finished case, and begins anew the one it is at: give it time "
        "for a whole case."
    )


def _fill(path, kind, cases, measure, deadline, end):
    """What `run` does while no other process does it."""
    print(f"{environment.in_words()}. Cases: {len(cases)}.", flush=True)
    entries = records.read(path)["cases"] if path.exists() else []
    for number, case in enumerate(cases, start=1):
        settings = case.model_dump()
        words = ", ".join(f"{key} {value}" for key, value in settings.items())
        print(f"case {number} of {len(cases)}: {words}", flush=True)
        if settings not in [entry["case"] for entry in entries]:
            if time.monotonic() >= deadline:
                end()
                return cli.EXIT_TIME
            here = {"environment": environment.describe()}
            tell = _PairsLeft(case.pairs, len(cases) - number)
            # What is measured has no state to go on from.
            with deadlines.kept(deadline, end):
                measured = measure(case, tell)
            entries.append({"case": settings, **here, **measured})
            content = {"format": records.FORMAT, "kind": kind}
            records.write(path, {**content, "cases": entries})
        entry = next(e for e in entries if e["case"] == settings)
        for name in ("reference_ms", "ms", "ratio"):
            low, high = entry[name]["quartiles"]
            median = entry[name]["median"]
            print(f"  {name} {median:.4g} ({low:.4g} to {high:.4g})")
    print(f"Written: {path}")
    return 0


class _PairsLeft:
    """Tells the time left of all cases, as if each took as long as this one.

    Args:
        pairs: Pairs of a case.
        cases: Cases behind this one.
    """

    def __init__(self, pairs, cases):
        self._pairs = pairs
        self._cases = cases
        self._start = time.monotonic()

    def __call__(self, done):
        """After so many pairs."""
        per_pair = (time.monotonic() - self._start) / done
        ahead = self._pairs * (1 + self._cases) - done
        left = timedelta(seconds=round(per_pair * ahead))
        print(f"  pair {done} of {self._pairs}, about {left} left", flush=True)
