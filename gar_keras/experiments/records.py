"""Run records: one JSON file for each run, written whole or not at all."""

import json
import re
import reprlib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from gar_keras.experiments import placement
from gar_keras.experiments.checked import STRICT, in_one_line, or_dict
from gar_keras.experiments.settings import (
    GRAPH_RIVALS,
    Experiment,
    with_defaults,
)
from gar_keras.methods import METHODS
from gar_keras.utils.files import write_atomically

FORMAT = 1

_Share = Annotated[float, Field(ge=0, le=1)]
_Seconds = Annotated[float, Field(ge=0)]


class RecordError(ValueError):
    """A file among the records that is not a record."""


class _Part(BaseModel):
    """A part of a record, of which all is checked."""

    model_config = ConfigDict(**STRICT, frozen=True)


class Environment(_Part):
    """What a run was made on. Versions and the like may be any."""

    model_config = ConfigDict(extra="allow")

    device: str
    cores: int | None


class Data(_Part):
    """What a run was made with, in words."""

    title: str
    source: str
    unlabeled: str | None = None


class Stage(_Part):
    """The curves of a stage: lists by name, with an entry an epoch."""

    seconds: _Seconds
    curve: dict[str, list[int | float | None]]
    environment: Environment | None = None

    @model_validator(mode="after")
    def _one_entry_an_epoch(self):
        lengths = {len(values) for values in self.curve.values()}
        if self.curve and ("epoch" not in self.curve or len(lengths) > 1):
            raise ValueError(
                "a curve must have an entry for each epoch. Received: lengths "
                f"{ {name: len(v) for name, v in self.curve.items()} }"
            )
        return self


class FirstEpoch(_Part):
    """The first epoch of stage 2 by step, where it was traced."""

    step: list[int]
    v: list[list[float]]
    affinity: list[float]
    balance: list[float]
    top_logit: list[float]
    gradient_norm: list[float]
    error_step: list[int]
    test_error: list[_Share]


class Result(_Part):
    """The test errors that the tables show."""

    baseline_error: _Share | None
    chosen_epoch: int
    chosen_error: _Share
    last_epoch: int
    last_error: _Share


class Progress(_Part):
    """What a record and the saved state of an unfinished run both have."""

    pretraining: Stage
    regularization: Stage
    environment: Environment
    data: Data
    snapshot_epochs: list[int] = []
    resumed_in: list[Environment] = []
    split_fingerprint: str | None = None
    class_prior: list[float] | None = None
    method_settings: dict[str, Any] = {}
    evaluation_seconds: _Seconds = 0.0
    warnings: list[str] = []
    first_epoch: FirstEpoch | None = None


class Record(Progress):
    """A finished run.

    What was added after the first runs has a default.
    """

    format: Literal[1]
    experiment: Annotated[Experiment, or_dict(Experiment)]
    cell: str
    fingerprint: str
    seed: Annotated[int, Field(ge=0)]
    labeled: list[int]
    result: Result

    @model_validator(mode="after")
    def _agrees(self):
        """Refuses what was altered by hand, or only in part."""
        e = self.experiment
        curve = self.regularization.curve
        _check_same("cell", self.cell, e.cell)
        _check_same("fingerprint", self.fingerprint, e.fingerprint())
        last = 1 if e.method in GRAPH_RIVALS else e.epochs
        epochs = [*range(last + 1)]
        _check_same("regularization.curve.epoch", curve.get("epoch"), epochs)
        wanted = {"val_error", "test_error"}
        wanted |= {n for n in METHODS[e.method].terms if getattr(e, n)}
        lost = sorted(wanted - curve.keys())
        if lost:
            raise ValueError(f"regularization.curve.{lost[0]} is missing")
        for name, values in curve.items():
            # Epoch 0 has errors alone, if it has any.
            if None in values[1:]:
                raise ValueError(
                    f"regularization.curve.{name} must be numbers. Received: "
                    f"null in epoch {values.index(None, 1)}"
                )
        _check_same("result", self.result.model_dump(), result_of(curve))
        if self.result.baseline_error is None and e.method not in GRAPH_RIVALS:
            raise ValueError("result.baseline_error must be a number")
        return self


def result_of(curve):
    """The results of a run, by the curves of its stage 2.

    Args:
        curve: Dict of the lists `epoch`, `val_error` and `test_error`.
    """
    # Stage 2's own epochs compete; of equals, the first is taken.
    chosen = min(curve["epoch"][1:], key=lambda i: curve["val_error"][i])
    return {
        "baseline_error": curve["test_error"][0],
        "chosen_epoch": chosen,
        "chosen_error": curve["test_error"][chosen],
        "last_epoch": curve["epoch"][-1],
        "last_error": curve["test_error"][-1],
    }


def _check_same(name, received, expected):
    if received != expected:
        raise ValueError(
            f"{name} must be {_short(expected)}, by the rest of the record. "
            f"Received: {name}={_short(received)}"
        )


def _short(value):
    return reprlib.repr(value)


def write(path, record):
    """Writes a record atomically: readers see all of it or nothing.

    Args:
        path: Path of the JSON file.
        record: Dict of what `json` can hold. NaN and infinity are refused.
    """
    text = json.dumps(record, indent=1, allow_nan=False)
    write_atomically(path, lambda file: file.write(_one_line_lists(text)))


def read_json(path, purpose):
    """The content of a JSON file; a `RecordError` says what to delete it for.

    Args:
        path: Path of the file.
        purpose: What becomes possible without it, e.g. `"run it again"`.
    """
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError) as e:
        raise RecordError(
            f"{path} is not readable JSON ({e}). Delete it to {purpose}."
        ) from e


def read(path):
    """Reads one record.

    Returns:
        A dict, as in the file. Settings that were added to `Experiment` after
        the run have their defaults.

    Raises:
        RecordError: if the file is not a sound record of this format, or lies
            where another record belongs. So no run can count twice.
    """
    path = Path(path)
    record = read_json(path, "run it again")
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise RecordError(
            f"{path} is not a run record of format {FORMAT}. Move it out of "
            "the results folder."
        )
    try:
        checked = Record.model_validate(record)
    except ValidationError as e:
        raise RecordError(
            f"{path} is not a whole run record of this version: "
            f"{in_one_line(e)}. Delete it to run it again, or move it out of "
            "the results folder."
        ) from e
    place = placement.path_of(checked.experiment, checked.seed, "")
    if path.absolute().parts[-3:] != place.parts:
        raise RecordError(
            f"{path} holds the record that belongs in {place}: it was renamed "
            "or copied. Give it that place, or move it out of the results "
            "folder."
        )
    return {**record, "experiment": with_defaults(record["experiment"])}


def read_all(folder):
    """The run records of a results folder, by cell, experiment and seed.

    Raises:
        RecordError: if one of them is not a sound record, or if runs of one
            experiment were made with different hyper-parameters of its method,
            and so are not repetitions of one run.
    """
    found = {path: read(path) for path in placement.all_paths(folder)}
    made_with = {}
    for path, record in found.items():
        settings = record.get("method_settings", {})
        first, expected = made_with.setdefault(
            record["fingerprint"], (path, settings)
        )
        if settings != expected:
            raise RecordError(
                f"{path} was made with other hyper-parameters of the method "
                f"{record['experiment']['method']!r} than {first}: "
                f"{settings}, not {expected}. Move those of one version out "
                "of the results folder."
            )
    return [*found.values()]


def _one_line_lists(text):
    """Puts each innermost list on one line, so that curves stay readable."""
    return re.sub(
        r"\[\n\s+([^\[\]{}]*?)\n\s+\]",
        lambda match: "[" + re.sub(r"\n\s+", " ", match[1]) + "]",
        text,
    )
