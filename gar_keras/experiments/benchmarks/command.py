"""What the command lines of the benchmark scripts have in common."""

import math
import time
from dataclasses import dataclass

from gar_keras.experiments import command, environment, records
from gar_keras.experiments.placement import path_of_benchmark
from gar_keras.utils import cli


@dataclass(frozen=True)
class Options(command.Options):
    """Options of both scripts."""

    pairs: int = 10
    """Timed pairs of stretches."""

    def __post_init__(self):
        super().__post_init__()
        cli.check_at_least("--pairs", self.pairs, 2)


def run(options, kind, cases, measure):
    """Measures the cases that the record of a kind does not hold.

    Returns the exit status: 0, or 124 if cases are left for want of time.
    """
    deadline = time.monotonic() + (options.time_limit or math.inf)
    path = path_of_benchmark(kind, environment.describe(), options.results)
    entries = records.read(path)["cases"] if path.exists() else []
    for case in cases:
        settings = case.model_dump()
        if settings not in [entry["case"] for entry in entries]:
            if time.monotonic() >= deadline:
                print(
                    f"Time limit of {options.time_limit:g} s reached. The same "
                    "command goes on after the last finished case."
                )
                return cli.EXIT_TIME
            here = {"environment": environment.describe()}
            entries.append({"case": settings, **here, **measure(case)})
            content = {"format": records.FORMAT, "kind": kind}
            records.write(path, {**content, "cases": entries})
        print(*(_told(e) for e in entries if e["case"] == settings))
    print(f"Written: {path}")
    return 0


def _told(entry):
    """A measured case in a line."""
    case = ", ".join(f"{key} {value}" for key, value in entry["case"].items())
    low, high = entry["ratio"]["quartiles"]
    return (
        f"{case}: {entry['ms']['median']:.4g} ms, the reference "
        f"{entry['reference_ms']['median']:.4g} ms; ratio "
        f"{entry['ratio']['median']:.4f} ({low:.4f} to {high:.4f})"
    )
