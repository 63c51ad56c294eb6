"""What the scripts' command lines have in common."""

import contextlib
from dataclasses import dataclass
from dataclasses import field
from dataclasses import fields
from dataclasses import replace
import importlib.util
import io
import os
from pathlib import Path
import re
import stat
import sys
from typing import Annotated
from typing import Literal

import tyro

from gar_keras.experiments import folders
from gar_keras.experiments.settings import BACKENDS
from gar_keras.experiments.settings import GRAPH_RIVALS
from gar_keras.experiments.workers import processes
from gar_keras.utils.loading import load_keras
from gar_keras.utils.validation import check_choice

EXIT_USAGE = 2
# Unfinished for want of time, as `timeout` reports it.
EXIT_TIME = 124
# Ended by Ctrl-C, as shells report it.
EXIT_INTERRUPTED = 130

# Keras takes no larger seed.
MAX_SEED = 2**32 - 1
MAX_SEEDS = 10_000


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
        fail(e)
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
    if importlib.util.find_spec(name) is None:
        fail(
            f"--backend {name} needs the package {name}, which is not "
            f"installed: pip install {name}"
        )
    os.environ["KERAS_BACKEND"] = name


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


def parse_seeds(text):
    """Seeds from text such as `0-9` or `0,2,5-7`.

    Example:

    >>> parse_seeds("0,2,5-7")
    [0, 2, 5, 6, 7]
    """
    ranges = [_seed_range(part) for part in text.split(",")]
    if not all(ranges) or sum(map(len, ranges)) > MAX_SEEDS:
        raise ValueError(
            "--seeds takes numbers and ranges such as 0-9 or 0,2,5-7, up to "
            f"{MAX_SEED}, at most {MAX_SEEDS} of them. Received: {text!r}"
        )
    return [seed for part in ranges for seed in part]


def _seed_range(text):
    """The seeds of `3` or `5-7`; none if the text is neither."""
    match = re.fullmatch(r"\s*(\d{1,10})(?:-(\d{1,10}))?\s*", text)
    if match is None:
        return range(0)
    first, last = int(match[1]), int(match[2] or match[1])
    return range(first, last + 1) if last <= MAX_SEED else range(0)


def check_labels(labels, experiments):
    """Raises unless there is an experiment for each number of labels."""
    wrong = [m for m in labels if m not in experiments]
    if wrong or not labels:
        allowed = ", ".join(map(str, experiments))
        raise ValueError(
            f"--labels takes {allowed}. Received: "
            f"{', '.join(map(str, wrong)) or 'none'}"
        )


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


Count = Annotated[int | None, one_value(int, "a whole number", "N")]
Seconds = Annotated[
    float | None, one_value(float, "a number of seconds", "SECONDS")
]
Number = Annotated[float | None, one_value(float, "a number", "NUMBER")]
# What is no number is left to `check_labels`, which knows what is allowed.
Labels = Annotated[
    tuple[int, ...],
    tyro.constructors.PrimitiveConstructorSpec(
        nargs="*",
        metavar="N ...",
        instance_from_str=lambda words: tuple(
            int(word) if word.isdecimal() else word for word in words
        ),
        is_instance=lambda value: True,
        str_from_instance=lambda value: [str(m) for m in value],
    ),
]
Folder = Annotated[Path | None, one_value(_path, "a folder", "DIR")]
File = Annotated[Path | None, one_value(_path, "a file", "FILE")]
Address = Annotated[str | None, one_value(str, "an address", "ADDRESS")]


def default_backend():
    """The backend named in `KERAS_BACKEND`, else TensorFlow."""
    name = os.environ.get("KERAS_BACKEND") or "tensorflow"
    check_choice("KERAS_BACKEND", name, BACKENDS)
    return name


@dataclass(frozen=True)
class RunOptions:
    """Options of every script that trains."""

    seeds: str = "0-9"
    """Seeds to run, e.g. 0-9 or 0,2,5-7."""
    epochs: Count = None
    """Epochs of stage 2. The authors' code ran 200 (SVHN: 100)."""
    pretrain_epochs: Count = None
    """Epochs of stage 1. The authors' code ran 2,000."""
    frobenius_of: Literal["B", "Z"] = "B"
    """Matrix of the Frobenius term: the rectified logits B, as in the paper,
    or the unrectified ones Z, as in the authors' code."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Precision between the layers. auto: bfloat16 where the hardware computes
    in it."""
    backend: Literal["tensorflow", "jax", "torch"] = field(
        default_factory=default_backend
    )
    """Keras backend; what KERAS_BACKEND names, if it is set."""
    results: Folder = field(default_factory=folders.own)
    """Folder of the run records."""
    data_dir: Folder = None
    """Folder of the data files, for data that are not in the package."""
    time_limit: Seconds = None
    """Stop cleanly after so many seconds. The same command goes on later."""
    save_models: bool = False
    """Save the model of the validation-chosen epoch beside its record."""
    tensorboard: Folder = None
    """Folder for TensorBoard logs of stage 2 (needs tensorboard)."""
    share_stage_1: bool = False
    """Keep the end of stage 1 in the folder .checkpoints of the results, and
    take it up in runs that have the same stage 1, such as GAR and its
    rivals."""
    keep_state: bool = False
    """Keep the state at the end of each run in the folder .checkpoints of the
    results, and go on from it in a run of more epochs. Not for a rival, nor
    for a rate that is laid over all epochs."""
    jobs: Count = 1
    """Runs to make at once, in processes of their own, each with an equal
    share of the cores. On a CPU a run repeats bit for bit only with as many
    threads: TensorFlow adds in another order with another number of them,
    which TF_NUM_INTRAOP_THREADS sets. On a GPU the runs share its memory; for
    several GPUs take --ray local."""
    ray: Address = None
    """Make the runs on the Ray cluster at this address: auto, HOST:PORT or
    ray://HOST:10001, or local to start one here. A run gets a GPU, or else an
    equal share of the cores; of a machine that is lost, it goes on on another
    one from its state some 5 minutes before. --data-dir has to be there on
    each machine. --precision auto looks at this machine."""

    def __post_init__(self):
        parse_seeds(self.seeds)
        check_at_least("--epochs", self.epochs, 1)
        check_at_least("--pretrain-epochs", self.pretrain_epochs, 1)
        check_folder("--results", self.results)
        # On a cluster it is there on each machine, which may not be this one.
        if self.ray is None:
            check_data_dir(self.data_dir)
        if self.tensorboard and not importlib.util.find_spec("tensorboard"):
            raise ValueError(
                "--tensorboard needs the package tensorboard, which is not "
                "installed: pip install tensorboard"
            )
        check_at_least("--jobs", self.jobs, 1)
        if self.ray is not None:
            self._check_ray()
        if self.time_limit is not None and not self.time_limit > 0:
            raise ValueError(
                f"--time-limit must be above 0. Received: {self.time_limit}"
            )

    def _check_ray(self):
        if self.jobs > 1:
            raise ValueError(
                "--jobs is for this machine alone: with --ray, as many runs "
                "are made at once as the cluster has room for. Leave one of "
                f"them out. Received: --jobs {self.jobs} --ray {self.ray}"
            )
        if self.tensorboard is not None:
            raise ValueError(
                "--tensorboard cannot be had with --ray: the logs would stay "
                "on the machines of the cluster. Leave one of them out."
            )
        if self.keep_state:
            raise ValueError(
                "--keep-state cannot be had with --ray: the states would stay "
                "on the machines of the cluster. Leave one of them out."
            )
        if not importlib.util.find_spec("ray"):
            raise ValueError(
                "--ray needs the package ray, which is not installed: pip "
                "install gar_keras[ray]"
            )

    def apply(self, experiment):
        """The experiment with these options in place of its settings."""
        from gar_keras.engine.backend import fast_precision

        auto = self.precision == "auto"
        changes = {
            "precision": fast_precision() if auto else self.precision,
            "backend": self.backend,
        }
        # What a method has no part in stays as it is: its runs are the same.
        if experiment.method == "gar":
            changes["frobenius_of"] = self.frobenius_of
        if experiment.method not in GRAPH_RIVALS:
            epochs = {
                "epochs": self.epochs,
                "pretrain_epochs": self.pretrain_epochs,
            }
            changes |= {k: v for k, v in epochs.items() if v is not None}
        return replace(experiment, **changes)


def run_table(options, experiments, show):
    """Runs a table's experiments and shows the table.

    Args:
        options: `RunOptions`.
        experiments: List of `Experiment`, before the options apply.
        show: Function of the records and the results folder that shows what
            was made, such as `gar_keras.report.show_rivals`.

    Returns:
        The exit status: 0, 124 if runs are left to be done, for want of time
        or because another process is at them, or 130 after Ctrl-C.
    """
    if options.keep_state:
        _check_can_be_extended(experiments)
    try:
        choose_backend(options.backend)
        # Before anything that takes long.
        options.results.mkdir(parents=True, exist_ok=True)
        if options.jobs > 1 or options.ray is not None:
            processes.share_gpu()
        load_keras()
        return _table(options, experiments, show)
    except OSError as e:
        where = f" Received: {e.filename}." if e.filename else ""
        fail(
            f"{e.strerror or e}.{where} Make room, or choose another folder "
            "with --results. The same command goes on with what is saved."
        )
    except KeyboardInterrupt:
        print(
            "interrupted: the same command goes on from the last finished "
            "epoch",
            file=sys.stderr,
        )
        return EXIT_INTERRUPTED


def _check_can_be_extended(experiments):
    for e in experiments:
        if not e.can_be_extended:
            fail(
                "--keep-state is for GAR at the paper's rate: other epochs "
                "depend on how many there are. Received: method="
                f"{e.method}, rate={e.extensions.rate}. Leave it out"
            )


def _table(options, experiments, show):
    from gar_keras.datasets import DataError
    from gar_keras.experiments.records import RecordError
    from gar_keras.experiments.sweep import sweep

    experiments = [options.apply(e) for e in experiments]
    try:
        records, complete = sweep(
            experiments,
            parse_seeds(options.seeds),
            options.results,
            time_limit=options.time_limit,
            data_dir=options.data_dir,
            save_models=options.save_models,
            tensorboard=options.tensorboard,
            share_stage_1=options.share_stage_1,
            keep_state=options.keep_state,
            jobs=options.jobs,
            ray=options.ray,
        )
        if records:
            show(records, options.results)
    except (
        DataError,
        RecordError,
        FloatingPointError,
        ImportError,
        processes.WorkerError,
    ) as e:
        fail(e)
    return 0 if complete else EXIT_TIME


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
    )


def _sentence(box, options):
    """The message in an error box of `tyro`, in the words of this module."""
    # A title, a rule if the box is not drawn in UTF-8, and the message.
    lines = [line.strip("│ ") for line in box.splitlines()]
    message = next(line for line in lines[1:] if line.strip("-"))
    if match := re.match(r"Unrecognized options: ([^\s,]+)", message):
        names = [f"--{f.name.replace('_', '-')}" for f in fields(options)]
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
    return re.sub(r"^Error parsing \S+: ", "", message)
