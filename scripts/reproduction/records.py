"""Records of runs: their model, and reading and writing all records."""

import io
import json
import re
import reprlib
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import ConfigDict, Field, ValidationError, model_validator

from gar_keras.metrics import lost_classes
from gar_keras.utils.files import write_atomically
from gar_keras.utils.validation import check_labels
from reproduction import paths
from reproduction.benchmarks.benchmark_records import Benchmark
from reproduction.methods import METHODS
from reproduction.settings import GRAPH_BASELINES, Experiment, as_recorded
from reproduction.strict_models import (
    Environment,
    Number,
    Part,
    Share,
    Text,
    Whole,
    check,
    check_same,
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


class RecordError(ValueError):
    """A file among the records that is not a record."""


class Data(Part):
    title: Text
    source: Text
    unlabeled: Text | None = None


class Stage(Part):
    """The curves of a stage: lists by name, with an entry an epoch."""

    seconds: Number
    curve: dict[str, list[int | float | None]]
    environment: Environment | None = None

    @model_validator(mode="after")
    def _check_curve(self):
        lengths = {name: len(values) for name, values in self.curve.items()}
        check(len({*lengths.values()}) < 2, "curve: equally long", lengths)
        for name, values in self.curve.items():
            # Epoch 0 has errors alone, if it has any.
            known = None not in values[1:]
            check(known, f"curve.{name}: numbers", values)
            if "error" in name:
                shares = all(0 <= value <= 1 for value in values if value)
                check(shares, f"curve.{name}: shares from 0 to 1", values)
        return self


class FirstEpoch(Part):
    """The first epoch of stage 2 by step, where it was traced."""

    # More was traced than is shown.
    model_config = ConfigDict(extra="allow")

    v: Annotated[list[list[Number]], Field(min_length=1)]


class Progress(Part):
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
    experiment: Annotated[Experiment, or_dict(as_recorded)]
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
        check(not lost, "regularization.curve: complete", sorted(curve))
        check_same("cell", self.cell, e.cell)
        check_same("fingerprint", self.fingerprint, e.fingerprint())
        check_same("number of labeled", len({*self.labeled}), e.num_labeled)
        epochs = [*range(2 if alone else e.epochs + 1)]
        check_same("regularization.curve.epoch", curve["epoch"], epochs)
        check_same("result", self.result, result_of(curve))
        known = alone or self.result["baseline_error"] is not None
        check(known, "result.baseline_error: a number", None)
        return self

    @property
    def expected_paths(self):
        """Where it belongs in a results folder."""
        return [paths.path_of(self.experiment, self.seed, "")]


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
        record["experiment"] = found.experiment.as_json()
    return record


def read_all(folder):
    """The records of the runs in a folder by path, sorted by it and the seed.

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
    return found


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


def read_arrays(path, record):
    """The `Arrays` beside the record of a run; `None` without the file.

    Raises:
        RecordError: if the file is damaged, or not of this run.
    """
    file = Path(path).with_suffix(".npz")
    if not file.exists():
        return None
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
                check(sound, "finite logits of one shape", Z)
            labels = check_labels("labels", found["labels"], m, n)
            _check_owner(record, found, labels, logits)
            if "lost_classes" in record:
                first, *_, last = logits.values()
                lost = lost_classes(first, last)
                check_same("lost_classes", record["lost_classes"], lost)
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
        check_same("owner", found["owner"].tolist(), owner)
        return
    # Those of earlier versions do not say it.
    if "indices" in found:
        indices = found["indices"]
        least = int(indices.max()) + 1
        # Of evenly drawn indices, the largest is about the last of all.
        likely = range(least, least + 50 * (least // len(indices)))
        drawn = (kept_images(record["seed"], num) for num in likely)
        of_seed = any(np.array_equal(indices, images) for images in drawn)
        check(of_seed, f"indices drawn by seed {record['seed']}", indices)
    for epoch, Z in logits.items():
        error = record["regularization"]["curve"]["test_error"][epoch]
        wrong = np.mean(Z.argmax(axis=1) != labels)
        # Six standard deviations of the error of so many images.
        far = 6 * np.sqrt(error * (1 - error) / len(labels))
        near = abs(wrong - error) <= far + 1 / len(labels)
        check(near, f"an error of {error:.4f} in epoch {epoch}", wrong)


def _one_line_lists(text):
    """Puts each innermost list on one line, so that curves stay readable."""
    return re.sub(
        r"\[\n\s+([^\[\]{}]*?)\n\s+\]",
        lambda match: "[" + re.sub(r"\n\s+", " ", match[1]) + "]",
        text,
    )
