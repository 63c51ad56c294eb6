"""What is run, in order, when a fast device is there for a while.

Each step is a command of its own, on the experiments that the other scripts
have. A step that is out of time goes on at the next call, where it ended.
"""

import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from gar_keras.experiments import command, records
from gar_keras.experiments.settings import (
    EXPERIMENTS,
    NETWORK_RIVALS,
    Experiment,
)
from gar_keras.experiments.studies import STUDIES
from gar_keras.utils import cli

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"

# Data sets with the network of Table 3: its own and their stand-ins.
TABLE_3_DATA = tuple(
    name
    for name, by_labels in EXPERIMENTS.items()
    if any(e.network == "cnn9" for e in by_labels.values())
)

# What shortens runs to a few steps, to try the commands out. With a single
# epoch each step would be recorded, and none would run as a whole epoch.
TINY = {"pretrain_epochs": 1, "epochs": 2, "images_per_epoch": 256}
TINY_SPEED = ("--pairs", "2", "--steps", "2")


@dataclass(frozen=True)
class Step:
    """A command to run.

    Attributes:
        name: Its name.
        script: Its script, in `scripts`.
        arguments: Arguments that are the step's own.
        seeds: Seeds to run, as the scripts take them; empty for a benchmark.
        experiments: Function of settings to change that returns the list of
            the experiments.
    """

    name: str
    script: str
    arguments: tuple = ()
    seeds: str = ""
    experiments: Callable = field(default=lambda **changes: [], repr=False)


def _of_data(data, labels, methods=("gar",)):
    """A function for `Step.experiments`, of the experiments on a data set."""

    def experiments(**changes):
        return [
            _changed(replace(EXPERIMENTS[data][m], method=method), changes)
            for m in labels
            for method in methods
        ]

    return experiments


def _of_study(study):
    """A function for `Step.experiments`, of the arms of a study."""

    def experiments(images_per_epoch=None, **changes):
        arms = study.with_settings(**changes).experiments
        return [
            _changed(e, {"images_per_epoch": images_per_epoch}) for e in arms
        ]

    return experiments


def _changed(experiment, changes):
    """As the command line changes it."""
    options = command.RunOptions(precision="float32", **changes)
    return replace(options.apply(experiment), backend=experiment.backend)


def plan(data=("norb",)):
    """The steps, in their order.

    Args:
        data: Data sets of Table 3 whose files are there, of `TABLE_3_DATA`.
            Studies on others of them are left out.

    Example:

    >>> [step.name for step in plan()][:4]
    ['speed', 'table1-100', 'table1', 'table3-norb']
    """
    return [
        Step("speed", "benchmark.py"),
        # All seeds of one cell, then the whole table.
        _table_1("table1-100", [100]),
        _table_1("table1", EXPERIMENTS["mnist"]),
        *map(_table_3, data),
        # Of the studies, those that came last have the fewest records.
        *(_study(s) for s in reversed(STUDIES.values()) if _has(data, s)),
        Step(
            "table2",
            "table2.py",
            seeds="0-2",
            experiments=_of_data("infimnist", EXPERIMENTS["infimnist"]),
        ),
        # Those without a network have nothing to do on a GPU.
        Step(
            "rivals",
            "rivals.py",
            ("--method", "gar", *NETWORK_RIVALS),
            seeds="0-2",
            experiments=_of_data("mnist", [100], ("gar", *NETWORK_RIVALS)),
        ),
    ]


def _table_1(name, labels):
    return Step(
        name,
        "table1.py",
        ("--labels", *map(str, labels)),
        seeds="0-9",
        experiments=_of_data("mnist", labels),
    )


def _table_3(data):
    # The cell that the paper says most about comes first.
    labels = sorted(EXPERIMENTS[data], reverse=True)
    return Step(
        f"table3-{data}",
        "table3.py",
        ("--data", data, "--labels", *map(str, labels)),
        seeds="0-9",
        experiments=_of_data(data, labels),
    )


def _has(data, study):
    """Whether the files that a study needs are among the data."""
    wanted = {e.dataset for e in study.experiments} & {*TABLE_3_DATA}
    return wanted <= {*data}


def _study(study):
    return Step(
        f"study-{study.name}",
        "study.py",
        ("--study", study.name),
        seeds="0-2",
        experiments=_of_study(study),
    )


def tiny(step):
    """What shortens the runs of a step, by the names of their settings."""
    longest = max((e.epochs for e in step.experiments()), default=1)
    return {**TINY, "epochs": min(TINY["epochs"], longest)}


def arguments(step, options, seconds=None):
    """The command of a step, without Python.

    Args:
        step: A `Step`.
        options: Those of `scripts/reproduce.py`.
        seconds: Its time limit, or `None`.

    Returns:
        A list of strings.
    """
    words = [str(SCRIPTS / step.script), *step.arguments]
    if step.seeds:
        words += ["--seeds", "0" if options.tiny else step.seeds]
        words += ["--share-stage-1", "--jobs", str(options.jobs)]
        if options.data_dir is not None and _needs_files(step):
            words += ["--data-dir", str(options.data_dir)]
        for name, value in tiny(step).items() if options.tiny else ():
            words += [cli.flag(name), str(value)]
    elif options.tiny:
        words += TINY_SPEED
    words += ["--backend", options.backend, "--results", str(options.results)]
    if seconds is not None:
        words += ["--time-limit", f"{max(seconds, 1):.0f}"]
    return words


def _needs_files(step):
    """Whether the data of a step are not in the package."""
    return any(e.dataset in TABLE_3_DATA for e in step.experiments())


def progress(step, options):
    """`(finished, all)`: numbers of the runs of a step.

    Runs of the same backend count, in whatever precision they were made: that
    of the device is not known here.
    """
    seeds = command.parse_seeds(step.seeds) if step.seeds else []
    experiments = step.experiments(**(tiny(step) if options.tiny else {}))
    wanted = {
        (replace(e, backend=options.backend), seed)
        for e in experiments
        for seed in (seeds[:1] if options.tiny else seeds)
    }
    made = {
        (replace(Experiment(**r["experiment"]), precision="float32"), r["seed"])
        for r in records.read_all(options.results)
    }
    return len(wanted & made), len(wanted)


def run(steps, options, call=None):
    """Runs the steps one after another, and says what becomes of them.

    Each step gets all the time that those before it have left.

    Args:
        steps: List of `Step`.
        options: Those of `scripts/reproduce.py`.
        call: Function of a command that returns its exit status. By default
            it is run in a process of its own.

    Returns:
        The exit status: 0; 124 if runs are left for want of time; 130 after
        Ctrl-C; 1 if a command failed.
    """
    call = call or _call
    end = options.time_limit and time.monotonic() + options.time_limit
    statuses = []
    for step in steps:
        finished, number = progress(step, options)
        if number and finished == number:
            _say(f"{step.name}: finished")
            continue
        seconds = None
        # What a step will leave to the next is known when it has ended.
        if end is not None and not options.dry_run:
            seconds = end - time.monotonic()
            if seconds <= 0:
                _say(f"{step.name}: no time left")
                statuses.append(cli.EXIT_TIME)
                continue
        words = arguments(step, options, seconds)
        runs = f", {finished} of {number} runs finished" if number else ""
        _say(f"{step.name}{runs}: python {shlex.join(words)}")
        if options.dry_run:
            continue
        statuses.append(call([sys.executable, *words]))
        if statuses[-1] == cli.EXIT_INTERRUPTED:
            return cli.EXIT_INTERRUPTED
        if statuses[-1] not in (0, cli.EXIT_TIME):
            _say(f"{step.name}: failed with status {statuses[-1]}")
    if {*statuses} - {0, cli.EXIT_TIME}:
        return 1
    return cli.EXIT_TIME if cli.EXIT_TIME in statuses else 0


def _call(words):
    with subprocess.Popen(words) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            # Ctrl-C goes to the command as well, which saves what there is.
            process.wait()
            return cli.EXIT_INTERRUPTED


def _say(line):
    # Before what the command writes to the same place.
    print(line, flush=True)
