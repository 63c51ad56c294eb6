"""Records of runs and of benchmarks: one model for all the report reads."""

import io
import json
import re
import reprlib
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from gar_keras.metrics import lost_classes
from gar_keras.utils.files import write_atomically
from gar_keras.utils.validation import check_labels
from reproduction import paths
from reproduction.benchmarks import timing
from reproduction.methods import METHODS
from reproduction.settings import GRAPH_BASELINES, Experiment, Precision
from reproduction.strict_dataclass import (
    STRICT,
    Count,
    Number,
    Share,
    Whole,
    in_one_line,
    or_dict,
)

FORMAT = 1

# Test images of which a run keeps the logits.
KEPT_IMAGES = 2000

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
    title: Text
    source: Text
    unlabeled: Text | None = None


class Stage(_Part):
    """The curves of a stage: lists by name, with an entry an epoch."""

    seconds: Number
    curve: dict[str, list[int | float | None]]
    environment: Environment | None = None

    @model_validator(mode="after")
    def _check_curve(self):
        lengths = {name: len(values) for name, values in self.curve.items()}
        _check(len({*lengths.values()}) < 2, "curve: equally long", lengths)
        for name, values in self.curve.items():
            # Epoch 0 has errors alone, if it has any.
            known = None not in values[1:]
            _check(known, f"curve.{name}: numbers", values)
            if "error" in name:
                shares = all(0 <= value <= 1 for value in values if value)
                _check(shares, f"curve.{name}: shares from 0 to 1", values)
        return self


class FirstEpoch(_Part):
    """The first epoch of stage 2 by step, where it was traced."""

    # More was traced than is shown.
    model_config = ConfigDict(extra="allow")

    v: Annotated[list[list[Number]], Field(min_length=1)]


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
    # Noted by earlier versions.
    evaluation_seconds: Number = 0.0
    warnings: list[str] = []
    first_epoch: FirstEpoch | None = None


class Run(Progress):
    """A finished run. What was added after the first runs has a default."""

    format: Literal[1]
    experiment: Annotated[Experiment, or_dict(Experiment)]
    cell: str
    fingerprint: str
    seed: Whole
    labeled: list[Whole]
    # As `result_of` makes it.
    result: dict[str, int | float | None]
    # By the test images of which the logits are kept.
    lost_classes: list[Whole] = []

    @model_validator(mode="after")
    def _agrees(self):
        """Refuses what was altered by hand, or only in part."""
        e, curve = self.experiment, self.regularization.curve
        alone = e.method in GRAPH_BASELINES
        terms = [name for name in METHODS[e.method].terms if getattr(e, name)]
        lost = {"epoch", "val_error", "test_error", *terms} - curve.keys()
        _check(not lost, "regularization.curve: complete", sorted(curve))
        _check_same("cell", self.cell, e.cell)
        _check_same("fingerprint", self.fingerprint, e.fingerprint())
        _check_same("number of labeled", len({*self.labeled}), e.num_labeled)
        epochs = [*range(2 if alone else e.epochs + 1)]
        _check_same("regularization.curve.epoch", curve["epoch"], epochs)
        _check_same("result", self.result, result_of(curve))
        known = alone or self.result["baseline_error"] is not None
        _check(known, "result.baseline_error: a number", None)
        return self

    @property
    def expected_paths(self):
        """Where it belongs in a results folder."""
        return [paths.path_of(self.experiment, self.seed, "")]


class Machine(Environment):
    """What a benchmark was made on."""

    backend: Text
    backend_version: Text
    device_kind: Text
    git_revision: Text | None
    keras: Text
    python: Text


class Spread(_Part):
    median: float
    quartiles: list[float]
    all: list[float]

    def is_of(self, values):
        """Whether it is the spread of values, but for what rounding does."""
        spread = timing.spread(values)
        wanted = [spread["median"], *spread["quartiles"], *values]
        received = [self.median, *self.quartiles, *self.all]
        if len(received) != len(wanted):
            return False
        return np.allclose(received, wanted, rtol=1e-9, atol=0)


class OverheadSettings(_Part):
    """What the costs of the regularizer were measured with."""

    batch_size: Count
    num_classes: Count
    num_images: Count
    precision: Precision
    steps: Count
    pairs: Count


class SpeedSettings(_Part):
    """What a speed was measured with."""

    task: Literal["regularize", "pretrain", "evaluate"]
    network: Text
    path: Text
    precision: Precision
    images: Count
    stretch: Count
    pairs: Count


class Case(_Part):
    """What was measured; the last four are of the speed of training."""

    # Earlier versions measured more, which is not shown any more.
    model_config = ConfigDict(extra="allow")

    case: OverheadSettings | SpeedSettings
    environment: Machine
    reference_ms: Spread
    ms: Spread
    ratio: Spread
    difference_ms: Spread
    speedup: Spread | None = None
    images_per_second: Number | None = None
    seconds: Number | None = None
    reference_seconds: Number | None = None

    @model_validator(mode="after")
    def _agrees(self):
        """Refuses what does not follow from the times of the pairs."""
        plain, ours = self.reference_ms.all, self.ms.all
        m = self.case.pairs
        counted = len(plain) == len(ours) == m and min(plain + ours) > 0
        _check(counted, f"ms.all and reference_ms.all: {m} times above 0", ours)
        pairs = [*zip(plain, ours, strict=True)]
        wanted = {
            "reference_ms": plain,
            "ms": ours,
            "ratio": [b / a for a, b in pairs],
            "difference_ms": [b - a for a, b in pairs],
        }
        if isinstance(self.case, SpeedSettings):
            wanted["speedup"] = [a / b for a, b in pairs]
            # In a step, in a pass over all images, or in 1,000 of them.
            images = (self.images_per_second or 0) * self.ms.median / 1000
            known = 0 < images < max(self.case.images, 1000) + 1
            _check(known, "images_per_second", self.images_per_second)
        for name, values in wanted.items():
            found = getattr(self, name)
            follows = found is not None and found.is_of(values)
            _check(follows, f"{name}: what follows from the times", found)
        return self


class Benchmark(_Part):
    """The benchmarks of a kind on a machine."""

    format: Literal[1]
    kind: Literal["overhead", "benchmark"]
    cases: list[Case]

    @model_validator(mode="after")
    def _agrees(self):
        overhead = self.kind == "overhead"
        wanted = OverheadSettings if overhead else SpeedSettings
        cases = [entry.case for entry in self.cases]
        of_kind = all(isinstance(case, wanted) for case in cases)
        _check(of_kind, f"cases: of the kind {self.kind}", cases)
        _check(len({*cases}) == len(cases), "cases: each one once", cases)
        return self

    @property
    def expected_paths(self):
        """Where it belongs in a results folder, by each case."""
        return [
            paths.path_of_benchmark(self.kind, vars(case.environment), "")
            for case in self.cases
        ]


def result_of(curve):
    """The results of a run, by the curves of its stage 2."""
    # Stage 2's own epochs compete; of equals, the first is taken.
    chosen = min(curve["epoch"][1:], key=lambda i: curve["val_error"][i])
    return {
        "baseline_error": curve["test_error"][0],
        "chosen_epoch": chosen,
        "chosen_error": curve["test_error"][chosen],
        "last_epoch": curve["epoch"][-1],
        "last_error": curve["test_error"][-1],
    }


def _check(right, wanted, received):
    if not right:
        received = reprlib.repr(received)
        raise ValueError(f"{wanted} is wanted. Received: {received}")


def _check_same(name, received, expected):
    wanted = f"{name}: {reprlib.repr(expected)}, by the rest of the record,"
    _check(received == expected, wanted, received)


def write(path, record):
    """Writes a record, whole or not at all; NaN and infinity are refused."""
    text = json.dumps(record, indent=1, allow_nan=False)
    write_atomically(path, lambda file: file.write(_one_line_lists(text)))


def read(path):
    """Reads a record, of a run or of benchmarks, as a dict.

    Raises:
        RecordError: if the file is not a sound record of this format, or lies
            where another record belongs. So no run can count twice.
    """
    path = Path(path)
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        kind = Benchmark if "kind" in dict(record) else Run
        found = kind.model_validate(record)
    except (ValueError, TypeError, OSError, RecursionError) as e:
        told = in_one_line(e) if isinstance(e, ValidationError) else str(e)
        raise RecordError(
            f"{path} is not a whole record of this version: "
            f"{told.splitlines()[0]}. If it is damaged, delete it and make it "
            "again."
        ) from e
    for expected in found.expected_paths:
        if path.absolute().parts[-len(expected.parts) :] != expected.parts:
            raise RecordError(
                f"{path} holds what belongs in {expected}: it was renamed or "
                "copied. Give it that place, or move it out of the results "
                "folder."
            )
    if kind is Run:
        # What was added to `Experiment` after the run has its default.
        settings = asdict(found.experiment)
        record["experiment"] = json.loads(json.dumps(settings))
    return record


def read_all(folder):
    """The records of the runs in a folder, by cell, experiment and seed.

    Raises:
        RecordError: if one of them is not a sound record, if runs of one
            experiment were made with different hyper-parameters of its method,
            and so are not repetitions of one run, or if two seeds have the same
            labels, and so are one run under two names.
    """
    paths = sorted(
        Path(folder).glob("*/*/seed*.json"),
        key=lambda path: (path.parent, len(path.name), path.name),
    )
    found = {path: read(path) for path in paths}
    firsts, drawn = {}, {}
    for path, record in found.items():
        settings = record.get("method_settings", {})
        expected = firsts.setdefault(record["fingerprint"], settings)
        check_is_of(path, record, method_settings=expected)
        labels = record["experiment"]["dataset"], *record["labeled"]
        first = drawn.setdefault(labels, path)
        if first.name != path.name:
            raise RecordError(
                f"{path} has the labels of {first}: the same draw under two "
                "seeds. Move the one that is not of its seed out of the "
                "results folder."
            )
    return [*found.values()]


def check_is_of(path, record, **expected):
    """Raises a `RecordError` if a run was made from other than is expected.

    It is by names in `MUST_AGREE`. What an earlier version did not note is not
    compared.
    """
    for name, value in expected.items():
        received = record.get(name, {} if name == "method_settings" else value)
        if received != value:
            raise RecordError(
                f"{path} was made with other {MUST_AGREE[name]} than this run "
                f"would be: {reprlib.repr(received)}, not "
                f"{reprlib.repr(value)}. Move it out of the results folder to "
                "run it again."
            )


def kept_images(seed, num_images):
    """Indices of the test images of which a run keeps the logits."""
    return np.random.default_rng(seed).permutation(num_images)[:KEPT_IMAGES]


class Arrays(NamedTuple):
    """True classes and logits by epoch of some test images of a run."""

    labels: np.ndarray
    logits: dict


def read_arrays(path):
    """The `Arrays` beside the record of a run; `None` without the file.

    Raises:
        RecordError: if the file is damaged, or not of this run.
    """
    file = Path(path).with_suffix(".npz")
    if not file.exists():
        return None
    record = read(path)
    try:
        # From memory: NumPy leaves a file open that it cannot read.
        with np.load(io.BytesIO(file.read_bytes())) as found:
            logits = {
                epoch: found[f"epoch_{epoch}"]
                for epoch in sorted(record["snapshot_epochs"])
            }
            m, n = next(iter(logits.values())).shape
            for Z in logits.values():
                sound = Z.shape == (m, n) and np.isfinite(Z).all()
                _check(sound, "finite logits of one shape", Z)
            labels = check_labels("labels", found["labels"], m, n)
            _check_owner(record, found, labels, logits)
            if "lost_classes" in record:
                first, *_, last = logits.values()
                lost = lost_classes(first, last)
                _check_same("lost_classes", record["lost_classes"], lost)
            return Arrays(labels, logits)
    # NumPy raises many kinds for a damaged file.
    except Exception as e:
        reason = next(iter(str(e).splitlines()), type(e).__name__)
        raise RecordError(
            f"{file} is not what the run of {Path(path).name} kept ({reason}). "
            "Delete both to run it again."
        ) from e


def _check_owner(record, found, labels, logits):
    """Raises unless arrays are of the run of a record, as far as they tell."""
    if "owner" in found:
        owner = [record["fingerprint"], str(record["seed"])]
        _check_same("owner", found["owner"].tolist(), owner)
        return
    # Those of earlier versions do not say it.
    if "indices" in found:
        indices = found["indices"]
        least = int(indices.max()) + 1
        # Of evenly drawn indices, the largest is about the last of all.
        likely = range(least, least + 50 * (least // len(indices)))
        drawn = (kept_images(record["seed"], num) for num in likely)
        of_seed = any(np.array_equal(indices, images) for images in drawn)
        _check(of_seed, f"indices drawn by seed {record['seed']}", indices)
    for epoch, Z in logits.items():
        error = record["regularization"]["curve"]["test_error"][epoch]
        wrong = np.mean(Z.argmax(axis=1) != labels)
        # Six standard deviations of the error of so many images.
        far = 6 * np.sqrt(error * (1 - error) / len(labels))
        near = abs(wrong - error) <= far + 1 / len(labels)
        _check(near, f"an error of {error:.4f} in epoch {epoch}", wrong)


def _one_line_lists(text):
    """Puts each innermost list on one line, so that curves stay readable."""
    return re.sub(
        r"\[\n\s+([^\[\]{}]*?)\n\s+\]",
        lambda match: "[" + re.sub(r"\n\s+", " ", match[1]) + "]",
        text,
    )
