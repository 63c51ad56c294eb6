"""What the scripts' command lines have in common."""

import contextlib
import io
import os
import re
import stat
import sys
from dataclasses import fields
from pathlib import Path
from types import NoneType
from typing import Annotated, get_args

import tyro

from gar_keras.utils.optional import check_installed

EXIT_USAGE = 2
# Unfinished for want of time, as `timeout` reports it.
EXIT_TIME = 124
# Ended by Ctrl-C, as shells report it.
EXIT_INTERRUPTED = 130

# Keras takes no larger seed.
MAX_SEED = 2**32 - 1


def fail(message):
    """Prints one line `error: message` and ends the program with status 2."""
    line = " ".join(str(message).split())
    print(f"error: {line}", file=sys.stderr)
    raise SystemExit(EXIT_USAGE)


def parse(options, description=None):
    """Reads the command line into a dataclass of options.

    Args:
        options: A dataclass, with a docstring below each field.
        description: What the script does, for `--help`.

    Returns:
        An instance of it. Unknown options and impossible values end the
        program with one line that says what is allowed.
    """
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            return _read(options, description)
    except ValueError as e:
        fail(_with_option(e, options))
    except SystemExit as e:
        if e.code in (0, None):
            raise
        fail(_complaint(options))


def run(main, options):
    """Calls `main(options)`, and says in one line what is wrong.

    Returns:
        The exit status: 0, or 130 after Ctrl-C.
    """
    try:
        main(options)
    except (ValueError, OSError, ImportError) as e:
        fail(e)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    return 0


def choose_backend(name):
    """Sets Keras' backend; to be called before keras is imported."""
    if "keras" in sys.modules:
        raise RuntimeError("The backend is chosen before keras is loaded.")
    try:
        check_installed(name, f"--backend {name}")
    except ValueError as e:
        fail(e)
    os.environ["KERAS_BACKEND"] = name


def flag(name):
    """How the command line calls an option.

    Example:

    >>> flag("keep_state")
    '--keep-state'
    """
    return f"--{name.replace('_', '-')}"


def check_at_least(option, value, least):
    """Raises unless the value of an option is at least the least."""
    if value is not None and not value >= least:
        raise ValueError(
            f"{option} must be at least {least}. Received: {value}"
        )


def check_folder(option, path):
    """Raises unless a path is that of a folder, or of nothing yet."""
    try:
        is_folder = stat.S_ISDIR(path.stat().st_mode)
    except FileNotFoundError:
        return
    # Too long a name, or one below a file or a folder that lets nobody in.
    except OSError as e:
        raise ValueError(
            f"{option} takes a folder. Received: {str(path)!r} ({e.strerror})"
        ) from None
    if not is_folder:
        raise ValueError(
            f"{option} takes a folder. Received a file: {str(path)!r}"
        )


def check_data_dir(path):
    """Raises unless --data-dir, if it is given, is a folder that is there."""
    if path is not None and not os.path.isdir(path):
        raise ValueError(
            "--data-dir takes a folder that is there. Received: "
            f"{str(path)!r}. Make it first if data are to be downloaded to it"
        )


def check_output(option, path, suffixes):
    """Raises unless a file to write, if it is given, has a place to go to."""
    if path is None:
        return
    allowed = " or ".join(suffixes)
    if path.suffix not in suffixes:
        raise ValueError(
            f"{option} takes the name of a {allowed} file. Received: {path}"
        )
    if os.path.isdir(path):
        raise ValueError(f"{option} takes a file. Received a folder: {path}")
    if not os.path.isdir(path.parent):
        raise ValueError(f"{option} is in a folder that is not there: {path}")


def one_value(convert, what, metavar):
    """Tyro's rule for an option of one value that may be left out.

    Args:
        convert: Function that makes the value of a word, or raises ValueError.
        what: What it must be, for the message, e.g. `"a file"`.
        metavar: Its name in `--help`.
    """

    def from_text(words):
        try:
            return convert(words[0])
        except ValueError:
            # The name of the option is put in front: see `_sentence`.
            raise ValueError(f"{what}. Received: {words[0]!r}") from None

    return tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar=metavar,
        instance_from_str=from_text,
        is_instance=lambda value: True,
        str_from_instance=lambda value: [str(value)],
    )


def _path(word):
    """A path; that of an empty word would be the working directory."""
    if not word:
        raise ValueError
    return Path(word)


Seconds = Annotated[
    float | None, one_value(float, "a number of seconds", "SECONDS")
]
Folder = Annotated[Path | None, one_value(_path, "a folder", "DIR")]
File = Annotated[Path | None, one_value(_path, "a file", "FILE")]


_registry = tyro.constructors.ConstructorRegistry()


@_registry.primitive_rule
def _number(info):
    """The rule for an option that is a number, or may be left out."""
    kinds = {_bare(kind) for kind in get_args(info.type) or (info.type,)}
    if kinds - {NoneType} == {int}:
        return one_value(int, "a whole number", "N")
    if kinds - {NoneType} == {float}:
        return one_value(float, "a number", "NUMBER")
    return None


def _bare(kind):
    """A type without what annotates it."""
    return get_args(kind)[0] if hasattr(kind, "__metadata__") else kind


def _with_option(error, options):
    """What is wrong, with the name of an option for that of its field."""
    name, space, text = str(error).partition(" ")
    if name in {f.name for f in fields(options)}:
        name = flag(name)
    return f"{name}{space}{text}"


def _complaint(options):
    """What `tyro` says of the command line, as one sentence."""
    box = io.StringIO()
    columns = os.environ.get("COLUMNS")
    # Wide enough to hold every sentence on one line.
    os.environ["COLUMNS"] = "100000"
    try:
        with contextlib.redirect_stderr(box):
            _read(options)
    except SystemExit:
        return _sentence(box.getvalue(), options)
    finally:
        del os.environ["COLUMNS"]
        if columns is not None:
            os.environ["COLUMNS"] = columns


def _read(options, description=None):
    return tyro.cli(
        options,
        description=description,
        config=(tyro.conf.FlagCreatePairsOff,),
        registry=_registry,
    )


def _sentence(box, options):
    """The message in an error box of `tyro`, in the words of this module."""
    # A title, a rule if the box is not drawn in UTF-8, and the message.
    lines = [line.strip("│ ") for line in box.splitlines()]
    message = next(line for line in lines[1:] if line.strip("-"))
    if match := re.match(r"Unrecognized options: ([^\s,]+)", message):
        names = [flag(f.name) for f in fields(options)]
        if match[1].isdecimal() and "--seeds" in names:
            return (
                f"unexpected value {match[1]}. Several seeds are written "
                "without a space, such as --seeds 0,2 or --seeds 0-9"
            )
        what = "option" if match[1].startswith("-") else "value"
        return f"unknown {what} {match[1]}. Allowed: {', '.join(names)}"
    if match := re.match(r"Missing value for argument .*?(--[\w-]+)", message):
        return f"{match[1]} needs a value"
    if match := re.match(
        r"invalid choice (.*) for argument '(.*?)'\. Expected one of \((.*)\)",
        message,
    ):
        allowed = match[3].replace("'", "").rstrip(",")
        return f"{match[2]} takes {allowed}. Received: {match[1]}"
    if match := re.match(r"Error parsing (--\S+): (.*)", message):
        return f"{match[1]} takes {match[2]}"
    return _with_option(re.sub(r"^Error parsing \S+: ", "", message), options)
