"""The command lines of the scripts: their options, and how they end.

Nothing here needs Keras: options are read before it is loaded.
"""

import argparse
import contextlib
import importlib.util
import math
import os
import re
import signal
import sys
from dataclasses import replace
from pathlib import Path

from reproduction import paths

EXIT_USAGE = 2
# Some runs are left to another process.
EXIT_UNFINISHED = 1
# Ended by Ctrl-C, as shells report it.
EXIT_INTERRUPTED = 130

# What is told in one line: no defect of the program, as a rule.
EXPECTED = (ValueError, OSError, ImportError, FloatingPointError)

GOES_ON = "the same command goes on from the last finished epoch"


# Types of options.


def count(text):
    """An integer that makes sense as a number of things."""
    with contextlib.suppress(ValueError):
        if int(text) >= 1:
            return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no integer from 1 on")


def above_0(text):
    """A finite number above 0."""
    with contextlib.suppress(ValueError):
        if 0 < float(text) < math.inf:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no finite number above 0")


def numbers(text):
    """Numbers, such as seeds, of a text such as `0,2,5-7`.

    Example:

    >>> numbers("0,2,5-7")
    [0, 2, 5, 6, 7]
    """
    found = []
    for part in text.split(","):
        ends = re.fullmatch(r"\s*(\d{1,4})(?:-(\d{1,4}))?\s*", part)
        first, last = (ends[1], ends[2] or ends[1]) if ends else (1, 0)
        wanted = range(int(first), int(last) + 1)
        if not wanted:
            raise argparse.ArgumentTypeError(
                f"{text!r} is no list of numbers and ranges such as 0-9 or "
                "0,2,5-7, of four digits at most"
            )
        found += wanted
    return found


def written_folder(text):
    """A folder that can be written to, or made."""
    nearest = Path(text).absolute()
    while not nearest.exists():
        nearest = nearest.parent
    if not text or not nearest.is_dir() or not os.access(nearest, os.W_OK):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no folder that can be written to"
        )
    return Path(text)


def existing(text):
    """A file or folder that is there."""
    if not text or not os.path.exists(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not there")
    return Path(text)


def written_png(text):
    """The name of a .png file, in a folder that can be written to."""
    path = Path(text)
    if path.suffix != ".png" or path.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is no name of a .png file")
    written_folder(str(path.parent))
    return path


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
    add_results(made)


def add_results(made):
    made.add_argument(
        "--results",
        type=written_folder,
        default=paths.own(),
        metavar="DIR",
        help="folder of the records (default: %(default)s)",
    )


def training_parser(description, seeds="0-9"):
    """A parser with the options of every script that trains.

    What they are for is told at length in docs/experiments.md.
    """
    made = parser(description)
    add_common(made)
    by_default = "(default: those of the setting)"
    add = made.add_argument
    add("--seeds", type=numbers, default=seeds, help="e.g. 0-9 or 0,2,5-7")
    add("--epochs", type=count, help=f"of stage 2 {by_default}")
    add("--pretrain-epochs", type=count, help=f"of stage 1 {by_default}")
    add(
        "--images-per-epoch",
        type=count,
        help="images of X_U in an epoch of stage 2, for a quick try",
    )
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
        "--save-models",
        action="store_true",
        help="keep the model of the validation-chosen epoch",
    )
    add(
        "--share-stage-1",
        action="store_true",
        help="runs that have the same stage 1 share it",
    )
    how = made.add_mutually_exclusive_group()
    how.add_argument(
        "--jobs",
        type=count,
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
    add_results(made)
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
        type=written_png,
        metavar="FILE",
        help="PNG to write (default: one in the results folder)",
    )
    return made


def check_known(option, values, known):
    """Raises unless each value of an option is one of those known."""
    unknown = [value for value in values if value not in known]
    if unknown:
        raise ValueError(
            f"{option} takes {', '.join(map(str, known))}. Received: "
            f"{unknown[0]}"
        )


# How a program ends.


def main(parser, run):
    """The exit status of `run(options)`; says in one line what is wrong."""
    options = parser.parse_args()
    try:
        return run(options)
    except EXPECTED as e:
        # Of a message of several lines, one.
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
    if backend is not None:
        if importlib.util.find_spec(backend) is None:
            raise ValueError(
                f"No {backend} is installed: pip install {backend}"
            )
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
        The exit status: 0, or 1 if another process is at some of the runs.
    """
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
    if options.jobs > 1:
        hardware.take_part()
    records, complete = sweep.sweep(
        experiments,
        options.seeds,
        options.results,
        jobs=options.jobs,
        ray=options.ray,
        data_dir=options.data_dir,
        save_models=options.save_models,
        share_stage_1=options.share_stage_1,
    )
    if records:
        with loading():
            from reproduction import report

        show(report, records, options.results)
    return 0 if complete else EXIT_UNFINISHED


def apply(options, experiment, precision):
    """The experiment with options in place of its settings."""
    e = experiment.with_gar(
        frobenius_of=options.frobenius_of, balance_of=options.balance_of
    )
    e = replace(e, precision=precision, backend=options.backend)
    # What a method has no part in stays as it is: its runs are the same.
    if e.trains_network:
        for name in ("epochs", "pretrain_epochs", "images_per_epoch"):
            if getattr(options, name) is not None:
                e = replace(e, **{name: getattr(options, name)})
    return e
