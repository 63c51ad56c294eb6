"""The command lines of the scripts: their options, and how they end.

Nothing here needs Keras: options are read before it is loaded.
"""

import argparse
import contextlib
import math
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

from reproduction import paths, processes
from reproduction.settings import EXPERIMENTS

EXIT_USAGE = 2
# The exit status where some runs are left to another process.
EXIT_UNFINISHED = 3
# The exit status after Ctrl-C, as shells report it.
EXIT_INTERRUPTED = 130

# Errors told in one line: as a rule no defect of the program.
EXPECTED = (ValueError, OSError, ImportError, FloatingPointError)

GOES_ON = "the same command goes on from the last finished epoch"


# Types of options: argparse tells the name of a type that raises a ValueError.


def positive_integer(text):
    if int(text) < 1:
        raise ValueError
    return int(text)


def positive_number(text):
    if not 0 < float(text) < math.inf:
        raise ValueError
    return float(text)


def seeds(text):
    """Numbers of a text such as `0,2,5-7`.

    Example:

    >>> seeds("0,2,5-7")
    [0, 2, 5, 6, 7]
    """
    found = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        wanted = range(int(first), int(last if dash else first) + 1)
        if not wanted:
            raise ValueError
        found += wanted
    return found


def existing(text):
    """A file or folder that is there."""
    if not os.path.exists(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not there")
    return Path(text)


# Parsers.


def parser(description):
    """An `ArgumentParser` for the docstring of a script."""
    return argparse.ArgumentParser(
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def add_common(made):
    """Adds what all that trains or measures has."""
    made.add_argument(
        "--backend",
        choices=["tensorflow", "jax", "torch"],
        default=os.environ.get("KERAS_BACKEND") or "tensorflow",
        help="Keras backend; what KERAS_BACKEND names, if it is set",
    )
    add_results(made, paths.own())


def add_results(made, default):
    made.add_argument(
        "--results",
        type=Path,
        default=default,
        metavar="DIR",
        help="folder of the records (default: %(default)s)",
    )


def training_parser(description, default_seeds="0-9"):
    """A parser with the options of every script that trains.

    What they are for is told at length in docs/experiments.md.
    """
    made = parser(description)
    add_common(made)
    add = made.add_argument
    add(
        "--seeds", type=seeds, default=default_seeds, help="e.g. 0-9 or 0,2,5-7"
    )
    for name, what in {
        "--epochs": "epochs of stage 2",
        "--pretrain-epochs": "epochs of stage 1",
        "--images-per-epoch": "images of X_U in an epoch of stage 2",
    }.items():
        by_default = f"{what} (default: those of the setting)"
        add(name, type=positive_integer, help=by_default)
    add(
        "--frobenius-of",
        choices=["B", "Z"],
        help="matrix of the Frobenius term: the paper's B, or the authors' Z",
    )
    add(
        "--balance-of",
        choices=["diagonal", "column sums"],
        help="the diagonal of N, as in the paper, or the column sums of B, as "
        "in the authors' code until May 2017",
    )
    add(
        "--precision",
        choices=["auto", "float32", "bfloat16"],
        default="auto",
        help="auto: bfloat16 where this hardware computes in it",
    )
    add(
        "--data-dir",
        type=existing,
        metavar="DIR",
        help="folder of the data files, on each machine",
    )
    add(
        "--share-stage-1",
        action="store_true",
        help="runs that have the same stage 1 share it",
    )
    how = made.add_mutually_exclusive_group()
    how.add_argument(
        "--jobs",
        type=positive_integer,
        default=1,
        help="runs to make at once, in processes that share the cores",
    )
    how.add_argument(
        "--ray",
        metavar="ADDRESS",
        help="make the runs on the Ray cluster at this address: auto, "
        "HOST:PORT, ray://HOST:10001, or local to start one here",
    )
    add(
        "--dry-run",
        action="store_true",
        help="print the runs that are left, with their hours by the records",
    )
    return made


def figure_parser(description):
    """A parser with the options of a script that draws a figure of a run."""
    made = parser(description)
    add_results(made, paths.own())
    made.add_argument(
        "--record",
        type=existing,
        metavar="FILE",
        help="record of the run to draw; by default the longest run of MNIST "
        "with 100 labels, of the lowest seed; where the folder has none, the "
        "reference's",
    )
    made.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="PNG to write (default: one in the results folder)",
    )
    return made


def experiments_of(data, labels):
    """The experiments on a data set with these numbers of labels."""
    known = EXPERIMENTS[data]
    for m in labels:
        if m not in known:
            raise ValueError(
                f"--labels of {data} takes {', '.join(map(str, known))}. "
                f"Received: {m}"
            )
    return [known[m] for m in labels]


# How a program ends.


def main(parser, run):
    """The exit status of `run(options)`; says in one line what is wrong."""
    options = parser.parse_args()
    try:
        return run(options)
    except EXPECTED as e:
        # A message of several lines becomes one.
        print(f"error: {' '.join(str(e).split())}", file=sys.stderr)
        return EXIT_USAGE
    except KeyboardInterrupt:
        trains = "seeds" in options
        advice = f": {GOES_ON}" if trains else ""
        print(f"interrupted{advice}", file=sys.stderr)
        return EXIT_INTERRUPTED


@contextlib.contextmanager
def loading(backend=None):
    """Around the imports of what needs Keras, which can take seconds.

    Ctrl-C ends the program at once: within an import it can become any other
    exception, or be lost.
    """
    # TensorFlow's C++ code looks at this while it is loaded.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    # On a processor without AVX512 TensorFlow leaves its fast kernels off.
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
    if backend is not None:
        # For the processes that this one starts as well.
        os.environ["KERAS_BACKEND"] = backend

    def end(*_):
        os.write(2, b"interrupted\n")
        os._exit(EXIT_INTERRUPTED)

    before = signal.getsignal(signal.SIGINT)
    # A shell starts what it puts in the background deaf to Ctrl-C.
    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def run_table(options, experiments, show):
    """Runs experiments with the options of `training_parser`.

    Args:
        options: What the command line says.
        experiments: List of `Experiment`.
        show: Function of `reproduction.report`, the records and their folder,
            which prints their table.

    Returns:
        The exit status: 0, or `EXIT_UNFINISHED`.
    """
    if options.jobs > 1:
        processes.take_part()
    with loading(options.backend):
        from gar_keras.engine import hardware
        from reproduction import plan, sweep

    precision = options.precision
    if precision == "auto":
        precision = hardware.fast_precision()
    experiments = [apply(options, e, precision) for e in experiments]
    if options.dry_run:
        print(plan.text(experiments, options.seeds, options.results))
        return 0
    records, complete = sweep.sweep(
        experiments,
        options.seeds,
        options.results,
        jobs=options.jobs,
        ray=options.ray,
        data_dir=options.data_dir,
        share_stage_1=options.share_stage_1,
    )
    if records:
        with loading():
            from reproduction import report

        show(report, records, options.results)
    return 0 if complete else EXIT_UNFINISHED


def show_table(name):
    """A function of `run_table` that shows a table of the paper."""

    def show(report, records, results):
        report.show_table(report.published.TABLES[name], records, results)

    return show


def apply(options, experiment, precision):
    """The experiment with options in place of its settings."""
    e = experiment

    def given(*names):
        values = {name: getattr(options, name) for name in names}
        return {k: v for k, v in values.items() if v is not None}

    # What a method has no part in stays as it is: its runs are the same.
    if e.method_name == "gar":
        e = e.with_term(**given("frobenius_of", "balance_of"))
    if e.trains_network:
        stages = given("epochs", "pretrain_epochs", "images_per_epoch")
        how = {"precision": precision, "backend": options.backend}
        e = replace(e, **stages, **how)
    return e
