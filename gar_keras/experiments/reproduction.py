"""What is run, in order, when a fast device is there for a while.

Each step is a command of its own, on the experiments that the other scripts
have. A step that is out of time goes on at the next call, where it ended.
"""

from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace
from pathlib import Path
import shlex
import subprocess
import sys
import time

from gar_keras.experiments import command
from gar_keras.experiments import records
from gar_keras.experiments.settings import EXPERIMENTS
from gar_keras.experiments.settings import Experiment
from gar_keras.experiments.studies import STUDIES
from gar_keras.methods import METHODS
from gar_keras.utils import cli

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"

# Data sets with the network of Table 3: its own and their stand-ins.
TABLE_3_DATA = tuple(
    name
    for name, by_labels in EXPERIMENTS.items()
    if any(e.network == "cnn9" for e in by_labels.values())
)

# What shortens each run to a few steps, to try the commands out.
TINY = {"pretrain_epochs": 1, "epochs": 1, "images_per_epoch": 256}
TINY_SPEED = ("--pairs", "2", "--steps", "2")


@dataclass(frozen=True)
class Step:
    """A command to run.

    Attributes:
        name: Its name.
        script: Its script, in `scripts`.
        arguments: Arguments that are the step's own.
        weight: Its part of the time, beside those of the other steps.
        seeds: Seeds to run, as the scripts take them; empty for a benchmark.
        experiments: Function of settings to change that returns the list of
            the experiments.
    """

    name: str
    script: str
    arguments: tuple = ()
    weight: float = 1.0
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

    >>> [step.name for step in plan()][:3]
    ['speed', 'table1', 'table3-norb']
    """
    return [
        Step("speed", "benchmark.py", weight=2),
        Step(
            "table1",
            "table1.py",
            weight=12,
            seeds="0-9",
            experiments=_of_data("mnist", EXPERIMENTS["mnist"]),
        ),
        *map(_table_3, data),
        # Of the studies, those that came last have the fewest records.
        *(_study(s) for s in reversed(STUDIES.values()) if _has(data, s)),
        Step(
            "table2",
            "table2.py",
            weight=2,
            seeds="0-2",
            experiments=_of_data("infimnist", EXPERIMENTS["infimnist"]),
        ),
        Step(
            "rivals",
            "rivals.py",
            weight=2,
            seeds="0-2",
            experiments=_of_data("mnist", [100], METHODS),
        ),
    ]


def _table_3(data):
    # The cell that the paper says most about comes first.
    labels = sorted(EXPERIMENTS[data], reverse=True)
    return Step(
        f"table3-{data}",
        "table3.py",
        ("--data", data, "--labels", *map(str, labels)),
        weight=4,
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
        if options.data_dir is not None:
            words += ["--data-dir", str(options.data_dir)]
        for name, value in TINY.items() if options.tiny else ():
            words += [cli.flag(name), str(value)]
    elif options.tiny:
        words += TINY_SPEED
    words += ["--backend", options.backend, "--results", str(options.results)]
    if seconds is not None:
        words += ["--time-limit", f"{max(seconds, 1):.0f}"]
    return words


def progress(step, options):
    """`(finished, all)`: numbers of the runs of a step.

    Runs of the same backend count, in whatever precision they were made: that
    of the device is not known here.
    """
    seeds = command.parse_seeds(step.seeds) if step.seeds else []
    experiments = step.experiments(**(TINY if options.tiny else {}))
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

    Of the time that is left, each step gets its part by the weights of those
    to come; what it does not need is theirs.

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
    for i, step in enumerate(steps):
        finished, number = progress(step, options)
        if number and finished == number:
            _say(f"{step.name}: finished")
            continue
        seconds = None
        if end is not None:
            left = end - time.monotonic()
            if left <= 0:
                _say(f"{step.name}: no time left")
                statuses.append(cli.EXIT_TIME)
                continue
            seconds = left * step.weight / sum(s.weight for s in steps[i:])
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
