"""What the scripts' command lines have in common."""

import contextlib
import importlib.util
import logging
import os
import sys
from pathlib import Path
from typing import Annotated

import keras
import tyro

EXIT_USAGE = 2
# Unfinished for want of time, as `timeout` reports it.
EXIT_TIME = 124
# Ended by Ctrl-C, as shells report it.
EXIT_INTERRUPTED = 130

# What is told in one line: no defect of the program, as a rule.
EXPECTED = (ValueError, OSError, ImportError, FloatingPointError)

Seconds = Annotated[float | None, tyro.conf.arg(metavar="SECONDS")]
Folder = Annotated[Path, tyro.conf.arg(metavar="DIR")]
OptionalFolder = Annotated[Path | None, tyro.conf.arg(metavar="DIR")]
File = Annotated[Path | None, tyro.conf.arg(metavar="FILE")]


def parse(options, description=None):
    """Reads the command line into a dataclass of options.

    Its docstring and those below its fields are the text of `--help`. Unknown
    options and impossible values end the program with what is wrong.
    """
    with one_line():
        return tyro.cli(
            options,
            description=description,
            config=(tyro.conf.FlagCreatePairsOff,),
        )


def run(main, options):
    """The exit status of `main(options)`; says in one line what is wrong."""
    with one_line():
        return main(options) or 0


@contextlib.contextmanager
def one_line(advice=""):
    """Ends the program with one line for what is wrong, and for Ctrl-C."""
    try:
        yield
    except EXPECTED as e:
        # Of a message of several lines, one.
        print(f"error: {' '.join(str(e).split())}", file=sys.stderr)
        raise SystemExit(EXIT_USAGE) from None
    except KeyboardInterrupt:
        print(f"interrupted{advice}", file=sys.stderr)
        raise SystemExit(EXIT_INTERRUPTED) from None


def choose_backend(name):
    """Makes Keras run on a backend: the program starts again if it must."""
    with one_line():
        if importlib.util.find_spec(name) is None:
            raise ValueError(f"No {name} is installed: pip install {name}")
    # Of TensorFlow's notes and warnings none is about GAR. Those of its C++
    # code are left out in processes that are started from here.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    # For the processes that this one starts as well.
    os.environ["KERAS_BACKEND"] = name
    if keras.backend.backend() != name:
        sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def check_at_least(option, value, least):
    """Raises unless the value of an option is at least the least."""
    if value is not None and not value >= least:
        raise ValueError(
            f"{option} must be at least {least}. Received: {value}"
        )
