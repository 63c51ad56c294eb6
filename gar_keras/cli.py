"""What the scripts' command lines have in common."""

import contextlib
from dataclasses import dataclass
from dataclasses import fields
from dataclasses import replace
import io
import os
from pathlib import Path
import re
import sys
from typing import Annotated
from typing import Literal

import tyro

EXIT_USAGE = 2
# Unfinished for want of time, as `timeout` reports it.
EXIT_TIME = 124


def fail(message):
    """Prints one line `error: message` and ends the program with status 2."""
    print(f"error: {message}", file=sys.stderr)
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
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            return tyro.cli(
                options,
                description=description,
                config=(tyro.conf.FlagCreatePairsOff,),
            )
    except ValueError as e:
        fail(e)
    except SystemExit as e:
        if e.code in (0, None):
            raise
        fail(_one_line(complaint.getvalue(), options))


def choose_backend(name):
    """Sets Keras' backend; to be called before keras is imported."""
    if "keras" in sys.modules:
        raise RuntimeError("The backend is chosen before keras is loaded.")
    os.environ["KERAS_BACKEND"] = name
    # TensorFlow's notes on its build would bury the progress.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def check_at_least(option, value, least):
    """Raises unless the value of an option is at least the least."""
    if value is not None and not value >= least:
        raise ValueError(
            f"{option} must be at least {least}. Received: {value}"
        )


def parse_seeds(text):
    """Seeds from text such as `0-9` or `0,2,5-7`.

    Example:

    >>> parse_seeds("0,2,5-7")
    [0, 2, 5, 6, 7]
    """
    seeds = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part)
        first = int(match[1]) if match else 0
        last = int(match[2] or first) if match else -1
        if last < first:
            raise ValueError(
                "--seeds takes numbers and ranges such as 0-9 or 0,2,5-7. "
                f"Received: {text!r}"
            )
        seeds.extend(range(first, last + 1))
    return seeds


def check_labels(labels, experiments):
    """Raises unless there is an experiment for each number of labels."""
    wrong = [m for m in labels if m not in experiments]
    if wrong or not labels:
        allowed = ", ".join(map(str, experiments))
        raise ValueError(
            f"--labels takes {allowed}. Received: "
            f"{', '.join(map(str, wrong)) or 'none'}"
        )


def _one_value(convert, what, metavar):
    """Tyro's rule for an option of one value that may be left out."""

    def from_text(words):
        try:
            return convert(words[0])
        except ValueError:
            raise ValueError(
                f"{what} is needed. Received: {words[0]!r}"
            ) from None

    return tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar=metavar,
        instance_from_str=from_text,
        is_instance=lambda value: True,
        str_from_instance=lambda value: [str(value)],
    )


Count = Annotated[int | None, _one_value(int, "a whole number", "N")]
Seconds = Annotated[
    float | None, _one_value(float, "a number of seconds", "SECONDS")
]
Folder = Annotated[Path | None, _one_value(Path, "a folder", "DIR")]


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
    backend: Literal["tensorflow", "jax", "torch"] = "tensorflow"
    """Keras backend."""
    results: Folder = Path("results")
    """Folder of the run records."""
    data_dir: Folder = None
    """Folder of the data files, for data that are not in the package."""
    time_limit: Seconds = None
    """Stop cleanly after so many seconds. The same command goes on later."""
    save_models: bool = False
    """Save the model of the validation-chosen epoch beside its record."""
    tensorboard: Folder = None
    """Folder for TensorBoard logs of stage 2 (needs tensorboard)."""

    def __post_init__(self):
        parse_seeds(self.seeds)
        for name in ("epochs", "pretrain_epochs"):
            value = getattr(self, name)
            if value is not None and value < 1:
                option = name.replace("_", "-")
                raise ValueError(
                    f"--{option} must be at least 1. Received: {value}"
                )
        if self.time_limit is not None and not self.time_limit > 0:
            raise ValueError(
                f"--time-limit must be above 0. Received: {self.time_limit}"
            )

    def apply(self, experiment):
        """The experiment with these options in place of its settings."""
        from gar_keras.backend import fast_precision

        auto = self.precision == "auto"
        changes = {
            "precision": fast_precision() if auto else self.precision,
            "backend": self.backend,
            "frobenius_of": self.frobenius_of,
        }
        if self.epochs is not None:
            changes["epochs"] = self.epochs
        if self.pretrain_epochs is not None:
            changes["pretrain_epochs"] = self.pretrain_epochs
        return replace(experiment, **changes)


def run_table(options, experiments, table):
    """Runs a table's experiments and shows the table.

    Args:
        options: `RunOptions`.
        experiments: List of `Experiment`, before the options apply.
        table: A `gar_keras.experiments.paper.Table`.

    Returns:
        The exit status: 0, or 124 if the time limit came first.
    """
    choose_backend(options.backend)
    from gar_keras import report
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
        )
    except (DataError, RecordError) as e:
        fail(e)
    if records:
        report.show(table, records, options.results)
    return 0 if complete else EXIT_TIME


def _one_line(box, options):
    """The sentence of an error box of `tyro`, without the box."""
    lines = [line.strip(" │╭╮╰╯─\n") for line in box.splitlines()]
    text = " ".join(line for line in lines if line)
    text = text.split(" For full helptext")[0]
    unknown = re.search(r"Unrecognized options: (.*)", text)
    if unknown:
        names = (f"--{f.name.replace('_', '-')}" for f in fields(options))
        return (
            f"unknown option {unknown[1].split(',')[0]}. Allowed: "
            f"{', '.join(names)}"
        )
    text = text.split(" Argument helptext")[0]
    text = re.sub(r"^Value error Error parsing \S+: ", "", text)
    return re.sub(r"^Invalid choice ", "", text)
