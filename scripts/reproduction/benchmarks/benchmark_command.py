"""What the command lines of the benchmark scripts have in common."""

import time
from dataclasses import asdict
from datetime import timedelta

import filelock

from reproduction import environment
from reproduction.benchmarks import benchmark_records
from reproduction.paths import path_of_benchmark
from reproduction.run import lock_of


def run(results, kind, cases, measure):
    """Measures the cases that the record of a kind does not hold."""
    path = path_of_benchmark(kind, environment.describe(), results)
    lock = lock_of(path.parent / ".checkpoints" / path.name)
    try:
        held = lock.acquire(timeout=0)
    except filelock.Timeout:
        raise ValueError(
            f"Another process is measuring into {path}. Wait for its end: two "
            "that measure at once disturb each other"
        ) from None
    with held:
        _fill(path, kind, cases, measure)


def _fill(path, kind, cases, measure):
    """What `run` does while no other process does it."""
    print(f"{environment.in_words()}. Cases: {len(cases)}.", flush=True)
    entries = benchmark_records.read(path) if path.exists() else []
    for number, case in enumerate(cases, start=1):
        settings = asdict(case)
        words = ", ".join(f"{key} {value}" for key, value in settings.items())
        print(f"case {number} of {len(cases)}: {words}", flush=True)
        if settings not in [entry["case"] for entry in entries]:
            here = environment.describe()
            tell = _teller(case.pairs, len(cases) - number)
            measured = measure(case, tell)
            entry = benchmark_records.entry_of(case, here, measured)
            entries.append(entry)
            benchmark_records.write(path, kind, entries)
        entry = next(e for e in entries if e["case"] == settings)
        for name in ("reference_ms", "ms", "ratio"):
            low, high = entry[name]["quartiles"]
            median = entry[name]["median"]
            print(f"  {name} {median:.4g} ({low:.4g} to {high:.4g})")
    print(f"Written: {path}")


def _teller(pairs, cases):
    """A function that tells the time left, once so many pairs are done.

    It is that of all cases, as if those behind this one took as long.
    """
    start = time.monotonic()

    def tell(done):
        per_pair = (time.monotonic() - start) / done
        ahead = pairs * (1 + cases) - done
        left = timedelta(seconds=round(per_pair * ahead))
        print(f"  pair {done} of {pairs}, about {left} left", flush=True)

    return tell
