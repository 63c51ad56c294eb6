"""Run records: one JSON file for each run, written whole or not at all."""

import json
import os
from pathlib import Path
import re
import tempfile

FORMAT = 1

# What every record has; the runner adds more.
KEYS = (
    "cell",
    "data",
    "environment",
    "experiment",
    "fingerprint",
    "labeled",
    "pretraining",
    "regularization",
    "result",
    "seed",
)


class RecordError(ValueError):
    """A file among the records that is no record."""


def file_name(cell, seed, fingerprint):
    """Name of the file of a record, e.g. `mnist-100_seed0_f9c7d9ca.json`."""
    return f"{cell}_seed{seed}_{fingerprint}.json"


def write(path, record):
    """Writes a record atomically: readers see all of it or nothing.

    Args:
        path: Path of the JSON file.
        record: Dict of what `json` can hold. NaN and infinity are refused.
    """
    text = json.dumps(record, indent=1, allow_nan=False)
    write_atomically(path, lambda file: file.write(_one_line_lists(text)))


def write_atomically(path, write_to, mode="w"):
    """Calls `write_to(file)` and gives the file its name when it is whole."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(
        dir=path.parent, prefix=_temporary_prefix(path)
    )
    encoding = None if "b" in mode else "utf-8"
    try:
        with os.fdopen(descriptor, mode, encoding=encoding) as file:
            write_to(file)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes files that only their owner may read.
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def delete_leftovers(path):
    """Deletes what a killed process left of writing this file."""
    path = Path(path)
    for leftover in path.parent.glob(f"{_temporary_prefix(path)}*"):
        leftover.unlink(missing_ok=True)


def read_json(path, purpose):
    """The content of a JSON file; a `RecordError` says what to delete it for.

    Args:
        path: Path of the file.
        purpose: What becomes possible without it, e.g. `"run it again"`.
    """
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, OSError) as e:
        raise RecordError(
            f"{path} is not readable JSON ({e}). Delete it to {purpose}."
        ) from e


def read(path):
    """Reads one record.

    Raises:
        RecordError: if the file is not a record of this format, or has not
            the name of its record. So no run can count twice.
    """
    path = Path(path)
    record = read_json(path, "run it again")
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise RecordError(
            f"{path} is not a run record of format {FORMAT}. Move it out of "
            "the results folder."
        )
    missing = [key for key in KEYS if key not in record]
    if missing:
        raise RecordError(
            f"{path} is not a whole run record: it has no "
            f"{', '.join(missing)}. Delete it to run it again."
        )
    name = file_name(record["cell"], record["seed"], record["fingerprint"])
    if path.name != name:
        raise RecordError(
            f"{path} holds the record that belongs in {name}: it was renamed "
            "or copied. Give it that name, or move it out of the results "
            "folder."
        )
    return record


def read_all(folder):
    """The run records of a results folder, in the order of their names."""
    return [read(path) for path in sorted(Path(folder).glob("*_seed*.json"))]


def _temporary_prefix(path):
    return f".{path.name}."


def _one_line_lists(text):
    """Puts each innermost list on one line, so that curves stay readable."""
    return re.sub(
        r"\[\n\s+([^\[\]{}]*?)\n\s+\]",
        lambda match: "[" + re.sub(r"\n\s+", " ", match[1]) + "]",
        text,
    )
