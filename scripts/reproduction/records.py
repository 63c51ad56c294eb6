"""Records of runs: reading and writing them.

A record is a dict, as JSON has it; `run.Run.write` says what it holds. Beside
it, `seedN.npz` has what the network made of test images at some epochs of
stage 2.
"""

import contextlib
import io
import json
import re
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

from reproduction.files import writing
from reproduction.paths import path_of
from reproduction.settings import Experiment

FORMAT = 2

# Test images of which a run keeps the logits.
KEPT_IMAGES = 2000


class RecordError(ValueError):
    """A file among the records that is not a record."""


def first_line(error):
    """What an error says, in a line."""
    return next(iter(str(error).splitlines()), type(error).__name__)


@contextlib.contextmanager
def reading(path):
    """Around what reads a file: whatever goes wrong is a `RecordError`."""
    try:
        yield
    # Anything comes of a file that is no record.
    except Exception as e:
        raise RecordError(
            f"{path} is not a whole record of this version: {first_line(e)}. "
            "If it is damaged, delete what there is of the run, and make it "
            "again."
        ) from e


def chosen_epoch(curve):
    """The epoch of the least validation error, by the curves of stage 2."""
    # Epoch 0 does not compete: it is the end of stage 1.
    errors = curve["val_error"][1:]
    # Of equal errors the last one counts.
    return len(errors) - errors[::-1].index(min(errors))


def typical_seconds(stage):
    """Seconds of a stage of a record, each epoch as long as the median one.

    The pauses of a machine with other work do not count.
    """
    # Epoch 0 of stage 2, the end of stage 1, has no seconds.
    seconds = stage["curve"].get("seconds", [])
    known = [s for s in seconds if s is not None]
    return median(known) * len(known) if known else stage["seconds"]


def write(path, record):
    """Writes a record, whole or not at all; NaN and infinity are refused."""
    text = json.dumps(record, indent=1, allow_nan=False)
    # Each innermost list on one line, so that curves stay readable.
    text = re.sub(
        r"\[\n\s+([^\[\]{}]*?)\n\s+\]",
        lambda match: "[" + re.sub(r"\n\s+", " ", match[1]) + "]",
        text,
    )
    with writing(path) as file:
        file.write(text)


def read(path):
    """Reads the record of a run.

    Raises:
        RecordError: if the file is not a sound record of this format, or is
            not at the path of its run: so no run can count twice.
    """
    path = Path(path)
    with reading(path):
        record = json.loads(path.read_text(encoding="utf-8"))
        check("format", record["format"], FORMAT)
        e = Experiment.from_json(record["experiment"])
        check("fingerprint", record["fingerprint"], e.fingerprint())
        own = path_of(e, record["seed"], "").as_posix()
        check("path", record["path"], own)
        check("place", "/".join(path.absolute().parts[-3:]), own)
        curve = record["regularization"]["curve"]
        last = e.epochs if e.trains_network else 1
        for name in ("epoch", "val_error", "test_error"):
            check(f"length of {name}", len(curve[name]), last + 1)
    return record


def check(name, received, expected):
    """Raises unless a part of a record is what the rest of it says."""
    if received != expected:
        raise ValueError(f"{name}: {received}, but {expected} is expected")


def read_all(folder):
    """The records of the runs in a folder by path, sorted by it and the seed.

    Raises:
        RecordError: if one of them is not a sound record.
    """
    paths = sorted(
        Path(folder).glob("*/*/seed*.json"),
        key=lambda path: (path.parent, len(path.name), path.name),
    )
    return {path: read(path) for path in paths}


def kept_images(seed, num_images):
    """Indices of the test images of which a run keeps the logits."""
    return np.random.default_rng(seed).permutation(num_images)[:KEPT_IMAGES]


class Arrays(NamedTuple):
    """What the network of a run made of test images at epochs of stage 2.

    Attributes:
        indices: Of the images, int `(m,)`.
        labels: Their true classes, `(m,)`.
        predicted: The classes that the network gives them, `(m,)` by epoch.
        logit_indices: Of the images whose logits are kept, `(k,)`; none of a
            run that kept none.
        logits: Of these, `(k, n)` by epoch.
    """

    indices: np.ndarray
    labels: np.ndarray
    predicted: dict
    logit_indices: np.ndarray
    logits: dict

    @property
    def logit_labels(self):
        """The true classes of the images whose logits are kept."""
        order = np.argsort(self.indices)
        at = np.searchsorted(self.indices, self.logit_indices, sorter=order)
        return self.labels[order[at]]


def write_arrays(path, owner, arrays):
    """Writes the `Arrays` of a run; `owner` is its fingerprint and its seed."""
    # An image a row, whose classes hardly change: so the file is small.
    classes = np.stack([*arrays.predicted.values()], axis=1)
    content = {
        "owner": [*map(str, owner)],
        "epochs": [*arrays.predicted],
        "indices": np.asarray(arrays.indices, "int32"),
        "labels": np.asarray(arrays.labels, "uint8"),
        "predicted": classes.astype("uint8"),
    }
    if arrays.logits:
        content["logit_indices"] = np.asarray(arrays.logit_indices, "int32")
        content["logits"] = np.stack([*arrays.logits.values()])
    with writing(path, "wb") as file:
        np.savez_compressed(file, **content)


def read_arrays(path, record):
    """The `Arrays` beside the record of a run; `None` without the file.

    Raises:
        RecordError: if the file is damaged, or not of this run.
    """
    file = Path(path).with_suffix(".npz")
    if not file.exists():
        return None
    # From memory: NumPy leaves a file open that it cannot read.
    with reading(file), np.load(io.BytesIO(file.read_bytes())) as found:
        owner = [record["fingerprint"], str(record["seed"])]
        check("owner", found["owner"].tolist(), owner)
        epochs = found["epochs"].tolist()
        check("epochs", epochs, record["snapshot_epochs"])
        classes = found["predicted"].T.astype(int)
        predicted = dict(zip(epochs, classes, strict=True))
        logits, at = {}, np.zeros(0, int)
        if "logits" in found:
            logits = dict(zip(epochs, found["logits"], strict=True))
            at = found["logit_indices"]
        labels = found["labels"].astype(int)
        return Arrays(found["indices"], labels, predicted, at, logits)


def lost_of(arrays):
    """Classes given to some images after stage 1 and to none in the end."""
    first, *_, last = arrays.predicted.values()
    return np.setdiff1d(first, last).tolist()


def balanced_errors_of(arrays):
    """Mean over the classes of the errors on each, of some test images."""
    first, *_, last = arrays.predicted.values()
    found = {}
    for name, predicted in {"stage_1": first, "last": last}.items():
        wrong, classes = predicted != arrays.labels, set(arrays.labels)
        errors = [wrong[arrays.labels == c].mean() for c in classes]
        found[name] = float(np.mean(errors))
    return found
