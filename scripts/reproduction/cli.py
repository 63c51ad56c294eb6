"""What the scripts' command lines have in common."""

import contextlib
import importlib.util
import io
import logging
import os
import re
import sys
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import keras
import tyro

from gar_keras.utils import validation

EXIT_USAGE = 2
# Some runs are left to another process.
EXIT_UNFINISHED = 1
# Ended by Ctrl-C, as shells report it.
EXIT_INTERRUPTED = 130

# What is told in one line: no defect of the program, as a rule.
EXPECTED = (ValueError, OSError, ImportError, FloatingPointError)

# More than any number of epochs, pairs or processes can be.
MOST = 10**9

Folder = Annotated[Path, tyro.conf.arg(metavar="DIR")]
OptionalFolder = Annotated[Path | None, tyro.conf.arg(metavar="DIR")]
File = Annotated[Path | None, tyro.conf.arg(metavar="FILE")]


def parse(options, description=None):
    """Reads the command line into a dataclass of options.

    Its docstring and those below its fields are the text of `--help`. Unknown
    options and impossible values end the program with a line on what is wrong.
    """
    told = io.StringIO()
    with one_line():
        _check_words(sys.argv)
        try:
            # Not to a terminal, for which tyro colours and frames its words.
            with (
                contextlib.redirect_stderr(told),
                contextlib.redirect_stdout(told),
            ):
                return tyro.cli(
                    options,
                    description=description,
                    config=(tyro.conf.FlagCreatePairsOff,),
                )
        except SystemExit as end:
            if end.code != EXIT_USAGE:
                print(told.getvalue(), end="")
                raise
            # A check of the options' own needs no box around what it says.
            if isinstance(end.__context__, ValueError):
                raise end.__context__ from None
            raise ValueError(_told_in(told.getvalue())) from None


def _check_words(words):
    """Raises if an option is given an empty word: a path of one is `.`."""
    for before, word in pairwise(words):
        option, sign, value = word.partition("=")
        if not word or (option.startswith("--") and sign and not value):
            raise ValueError(
                f"{option or before} needs a value. Received: ''. Leave it out "
                "for its default"
            )


def _told_in(box):
    """What is wrong, of a box of `tyro`: a title, a rule, and the message."""
    title, *parts = re.split(r"\n[\s-]*\n", box.strip())
    message = parts[0] if parts else title
    return f"{message.strip().removeprefix('Error parsing ')} (See --help.)"


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
    # Of TensorFlow's notes and warnings none is about GAR.
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    # For the processes that this one starts as well.
    os.environ["KERAS_BACKEND"] = name
    if keras.backend.backend() != name:
        sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def check_count(option, value, least=1):
    """Raises unless the number of an option, if it is given, makes sense."""
    if value is not None:
        validation.check_count(option, value, least=least, most=MOST)


def check_above_0(option, value):
    """Raises unless the number of an option, if it is given, is above 0."""
    if value is not None:
        validation.check_number(option, value, closed="right")


def check_values(option, values, allowed):
    """Raises unless an option, if it is given, has some of these, each once."""
    if values is None:
        return
    chosen = set(values)
    if not chosen or len(chosen) < len(values) or chosen - {*allowed}:
        raise ValueError(
            f"{option} takes {', '.join(map(str, allowed))}, each once. "
            f"Received: {' '.join(map(str, values)) or 'none'}"
        )


def check_folder(option, path):
    """Raises unless a folder can be written to, or made."""
    if not _is_writable(path):
        raise ValueError(
            f"{option} takes a folder that can be written to. Received: "
            f"{str(path)!r}"
        )


def check_png(option, path):
    """Raises unless a PNG, if its name is given, can be written."""
    if path is None:
        return
    named = path.suffix == ".png" and not path.is_dir()
    if not named or not _is_writable(path.parent):
        raise ValueError(
            f"{option} takes the name of a .png file, in a folder that can be "
            f"written to. Received: {str(path)!r}"
        )


def _is_writable(folder):
    """Whether files can be put in a folder, which may have to be made."""
    nearest = folder.absolute()
    while not nearest.exists():
        nearest = nearest.parent
    return nearest.is_dir() and os.access(nearest, os.W_OK)


def check_file(option, path):
    """Raises unless a file to read, if its name is given, is there."""
    if path is not None and not os.path.isfile(path):
        raise ValueError(
            f"{option} takes a file that is there. Received: {str(path)!r}"
        )


def check_data_dir(path):
    """Raises unless --data-dir, if it is given, is a folder that is there."""
    if path is not None and not os.path.isdir(path):
        raise ValueError(
            "--data-dir takes a folder that is there. Received: "
            f"{str(path)!r}. Make it first if data are to be downloaded to it"
        )
