"""Records of runs and of benchmarks: one model for all the report reads."""

import io
import json
import re
import reprlib
import statistics
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from gar_keras.experiments import placement
from gar_keras.experiments.checked import (
    STRICT,
    Count,
    Number,
    Share,
    Whole,
    in_one_line,
    or_dict,
)
from gar_keras.experiments.settings import (
    GRAPH_RIVALS,
    Experiment,
    Precision,
    with_defaults,
)
from gar_keras.methods import METHODS
from gar_keras.utils.files import NPZ_DAMAGE, write_atomically
from gar_keras.utils.validation import check_labels

FORMAT = 1

# What a record must have in common with the run that it stands for.
MUST_AGREE = {
    "labeled": "labels",
    "split_fingerprint": "split",
    "data": "data",
    "class_prior": "class prior",
    "method_settings": "hyper-parameters of the method",
}

# What is shown in a row of a table: no line breaks, bars nor tags.
Text = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f<>|]*$")]
Positive = Annotated[float, Field(gt=0)]


class RecordError(ValueError):
    """A file among the records that is not a record."""


class _Part(BaseModel):
    """A part of a record, of which all is checked."""

    model_config = ConfigDict(**STRICT, frozen=True)


class Environment(_Part):
    """What a run was made on; `environment.describe` has more than this."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Text | int | None] = Field(init=False)

    device: Text
    cores: Count | None


class Data(_Part):
    """What a run was made with, in words."""

    title: Text
    source: Text
    unlabeled: Text | None = None


def _check_lengths(name, lists):
    """Raises unless lists, by name, are equally long."""
    lengths = {key: len(values) for key, values in lists.items()}
    if len({*lengths.values()}) > 1:
        raise ValueError(
            f"{name} must have equally long lists. Received: {lengths}"
        )


class Stage(_Part):
    """The curves of a stage: lists by name, with an entry an epoch."""

    seconds: Number
    curve: dict[str, list[int | float | None]]
    environment: Environment | None = None

    @model_validator(mode="after")
    def _check_curve(self):
        _check_lengths("curve", self.curve)
        for name, values in self.curve.items():
            if "error" in name and not all(0 <= v <= 1 for v in values if v):
                raise ValueError(
                    f"curve.{name} must be shares from 0 to 1. Received: "
                    f"{_short(values)}"
                )
        return self


class FirstEpoch(_Part):
    """The first epoch of stage 2 by step, where it was traced."""

    step: list[Whole]
    v: list[list[Number]]
    affinity: list[float]
    balance: list[float]
    top_logit: list[float]
    gradient_norm: list[Number]
    error_step: list[Whole]
    test_error: list[Share]

    @model_validator(mode="after")
    def _check_steps(self):
        steps = dict(self)
        errors = {key: steps.pop(key) for key in ("error_step", "test_error")}
        _check_lengths("first_epoch", steps)
        _check_lengths("first_epoch", errors)
        return self


class Result(_Part):
    """The test errors that the tables show."""

    baseline_error: Share | None
    chosen_epoch: int
    chosen_error: Share
    last_epoch: int
    last_error: Share


class Progress(_Part):
    """What a record and the saved state of an unfinished run both have."""

    pretraining: Stage
    regularization: Stage
    environment: Environment
    data: Data
    snapshot_epochs: list[Whole] = []
    resumed_in: list[Environment] = []
    split_fingerprint: str | None = None
    class_prior: list[Share] | None = None
    predicted_prior: list[Share] | None = None
    method_settings: dict[str, int | float | str | bool | None | list[Any]] = {}
    evaluation_seconds: Number = 0.0
    warnings: list[str] = []
    first_epoch: FirstEpoch | None = None


class Run(Progress):
    """A finished run.

    What was added after the first runs has a default.
    """

    format: Literal[1]
    experiment: Annotated[Experiment, or_dict(Experiment)]
    cell: str
    fingerprint: str
    seed: Whole
    labeled: list[Whole]
    result: Result

    @model_validator(mode="after")
    def _agrees(self):
        """Refuses what was altered by hand, or only in part."""
        e = self.experiment
        curve = self.regularization.curve
        _check_same("cell", self.cell, e.cell)
        _check_same("fingerprint", self.fingerprint, e.fingerprint())
        _check_same("number of labeled", len({*self.labeled}), e.num_labeled)
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
        for name, value in result_of(curve).items():
            _check_same(f"result.{name}", getattr(self.result, name), value)
        if self.result.baseline_error is None and e.method not in GRAPH_RIVALS:
            raise ValueError("result.baseline_error must be a number")
        return self


class Machine(Environment):
    """What a benchmark was made on."""

    backend: Text
    backend_version: Text
    device_kind: Text
    git_revision: Text | None
    keras: Text
    processor: Text
    python: Text


class Spread(_Part):
    """Values, their median and their quartiles."""

    median: float
    quartiles: list[float]
    all: Annotated[list[float], Field(min_length=2)]

    @model_validator(mode="after")
    def _agrees(self):
        low, middle, high = statistics.quantiles(
            self.all, n=4, method="inclusive"
        )
        _check_same("median", self.median, middle)
        _check_same("quartiles", self.quartiles, [low, high])
        return self


class Measured(_Part):
    """What each case of a benchmark has."""

    # Earlier versions measured more, which is not shown any more.
    model_config = ConfigDict(extra="allow")

    environment: Machine
    reference_ms: Spread
    ms: Spread
    ratio: Spread
    difference_ms: Spread


class OverheadSettings(_Part):
    """What the costs of the regularizer were measured with."""

    batch_size: Count
    num_classes: Count
    num_images: Count
    precision: Precision
    steps: Count
    pairs: Count


class OverheadCase(Measured):
    """What the regularizer cost."""

    case: OverheadSettings


class SpeedSettings(_Part):
    """What a speed was measured with."""

    task: Literal["regularize", "pretrain", "evaluate"]
    network: Text
    path: Text
    precision: Precision
    images: Count
    stretch: Count
    pairs: Count


class SpeedCase(Measured):
    """How fast a way was, beside the plain one."""

    case: SpeedSettings
    speedup: Spread
    images_per_second: Positive
    seconds: Positive | None
    reference_seconds: Positive | None


class Overhead(_Part):
    """What the regularizer costs on a machine."""

    format: Literal[1]
    kind: Literal["overhead"]
    cases: list[OverheadCase]


class Speed(_Part):
    """The speed of training on a machine."""

    format: Literal[1]
    kind: Literal["benchmark"]
    cases: list[SpeedCase]


Benchmark = TypeAdapter(
    Annotated[Overhead | Speed, Field(discriminator="kind")]
)


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
            f"Received: {_short(received)}"
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


def read(path):
    """Reads one record, of a run or of benchmarks.

    Returns:
        A dict, as in the file. Settings that were added to `Experiment` after
        a run have their defaults.

    Raises:
        RecordError: if the file is not a sound record of this format, or lies
            where another record belongs. So no run can count twice.
    """
    path = Path(path)
    advice = "If it is a damaged record, delete it and make it again."
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError) as e:
        reason = str(e).splitlines()[0]
        raise RecordError(
            f"{path} is not readable JSON ({reason}). {advice}"
        ) from e
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise RecordError(
            f"{path} is not a record of format {FORMAT}. {advice}"
        )
    is_run = "kind" not in record
    try:
        kind = Run.model_validate if is_run else Benchmark.validate_python
        kind(record)
    except (ValidationError, RecursionError) as e:
        reason = in_one_line(e) if isinstance(e, ValidationError) else e
        raise RecordError(
            f"{path} is not a whole record of this version: {reason}. {advice}"
        ) from e
    for place in _places(record):
        if path.absolute().parts[-len(place.parts) :] != place.parts:
            raise RecordError(
                f"{path} holds what belongs in {place}: it was renamed or "
                "copied. Give it that place, or move it out of the results "
                "folder."
            )
    if is_run:
        record["experiment"] = with_defaults(record["experiment"])
    return record


def _places(record):
    """Where a record belongs in a results folder."""
    if "kind" not in record:
        return [placement.path_of_record(record, "")]
    return [
        placement.path_of_benchmark(record["kind"], case["environment"], "")
        for case in record["cases"]
    ]


def read_all(folder):
    """The records of the runs in a folder, by cell, experiment and seed.

    Raises:
        RecordError: if one of them is not a sound record, or if runs of one
            experiment were made with different hyper-parameters of its method,
            and so are not repetitions of one run.
    """
    found = {path: read(path) for path in placement.all_paths(folder)}
    firsts = {}
    for path, record in found.items():
        settings = record.get("method_settings", {})
        expected = firsts.setdefault(record["fingerprint"], settings)
        check_is_of(path, record, method_settings=expected)
    return [*found.values()]


def check_is_of(path, record, **expected):
    """Raises a `RecordError` if a record was made from something else.

    Args:
        path: Path of the record.
        record: The record of a run.
        **expected: What the run would be made from, by names in `MUST_AGREE`.
            What an earlier version did not note is not compared.
    """
    for name, value in expected.items():
        received = record.get(name, {} if name == "method_settings" else value)
        if received != value:
            raise RecordError(
                f"{path} was made with other {MUST_AGREE[name]} than this run "
                f"would be: {_short(received)}, not {_short(value)}. Move it "
                "out of the results folder to run it again."
            )


class Arrays(NamedTuple):
    """What a run kept beside its record.

    Attributes:
        labels: True classes of the test images kept, `(m,)`.
        logits: Their logits, `(m, n)`, by epoch of stage 2.
        test_labels: True classes of all test images, or `None`.
        probabilities: Those that the network of the chosen epoch gave to the
            classes of all test images, or `None`.
    """

    labels: np.ndarray
    logits: dict
    test_labels: np.ndarray | None
    probabilities: np.ndarray | None


def read_arrays(path):
    """Reads what lies beside the record of a run.

    Args:
        path: Path of the record.

    Returns:
        `Arrays`, or `None` without the file.

    Raises:
        RecordError: if the file is damaged, or not of this run.
    """
    record = read(path)
    file = Path(path).with_suffix(".npz")
    if not file.exists():
        return None
    try:
        # From memory: NumPy leaves a file open that it cannot read.
        with np.load(io.BytesIO(file.read_bytes())) as archive:
            return _arrays({**archive}, record)
    except (*NPZ_DAMAGE, MemoryError, OverflowError) as e:
        reason = next(iter(str(e).splitlines()), type(e).__name__)
        raise RecordError(
            f"{file} is not what the run of {Path(path).name} kept ({reason}). "
            "Delete both to run it again."
        ) from e


def _arrays(found, record):
    logits = {
        int(name.removeprefix("epoch_")): Z
        for name, Z in sorted(found.items())
        if name.startswith("epoch_")
    }
    logits = dict(sorted(logits.items()))
    _check_same("its epochs", [*logits], sorted(record["snapshot_epochs"]))
    m, n = next(iter(logits.values())).shape
    labels = check_labels("labels", found["labels"], m, n)
    for Z in logits.values():
        if Z.shape != (m, n) or Z.dtype.kind != "f" or not np.isfinite(Z).all():
            raise ValueError("its logits are not finite numbers of one shape")
    probabilities = found.get("chosen_probabilities")
    if probabilities is None:
        return Arrays(labels, logits, None, None)
    test_labels = check_labels(
        "test_labels", found["test_labels"], *probabilities.shape
    )
    error = np.mean(probabilities.argmax(axis=1) != test_labels)
    # In half precision two classes can be equal.
    if not abs(error - record["result"]["chosen_error"]) < 1e-3:
        raise ValueError("its predictions are another run's")
    return Arrays(labels, logits, test_labels, probabilities)


def _one_line_lists(text):
    """Puts each innermost list on one line, so that curves stay readable."""
    return re.sub(
        r"\[\n\s+([^\[\]{}]*?)\n\s+\]",
        lambda match: "[" + re.sub(r"\n\s+", " ", match[1]) + "]",
        text,
    )
