"""What the command lines of the benchmark scripts have in common."""

import math
import sys
import time
from dataclasses import dataclass

from gar_keras.engine import resources
from gar_keras.experiments import command
from gar_keras.utils import cli, terminal


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


def run(options, kind, prepare):
    """Measures what the options ask for, and says what came of it.

    Args:
        options: `Options`.
        kind: Name of the records: `"benchmark"` or `"overhead"`.
        prepare: Function of the options that returns `(cases, module)`, to be
            called when the backend is chosen. The module has `measure(case,
            deadline)` and `describe(entry)`.

    Returns:
        The exit status: 0, 124 if cases are left for want of time, or 130
        after Ctrl-C.
    """
    deadline = time.monotonic() + (options.time_limit or math.inf)
    try:
        cli.choose_backend(options.backend)
        # With the processes whose memory is measured.
        resources.share_gpu()
        return _run(options, kind, prepare, deadline)
    except OSError as e:
        where = f" Received: {e.filename}." if e.filename else ""
        cli.fail(f"{e.strerror or e}.{where}")
    except (ValueError, FloatingPointError) as e:
        cli.fail(e)
    except KeyboardInterrupt:
        print(
            "interrupted: the same command goes on after the last finished "
            "case",
            file=sys.stderr,
        )
        return cli.EXIT_INTERRUPTED


def _run(options, kind, prepare, deadline):
    from gar_keras.benchmarks import records

    cases, module = prepare(options)
    options.results.mkdir(parents=True, exist_ok=True)
    console = terminal.console()
    path, complete = records.fill(
        options.results,
        kind,
        cases,
        module.measure,
        deadline=deadline,
        say=lambda entry: console.print(module.describe(entry)),
    )
    if complete:
        console.print(f"Written: {path}")
        return 0
    console.print(
        f"Time limit of {options.time_limit:g} s reached. The same command "
        "goes on after the last finished case."
    )
    return cli.EXIT_TIME
