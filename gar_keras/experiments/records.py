"""Run records: one JSON file for each run, written whole or not at all."""

import json
import os
from pathlib import Path
import re
import tempfile

FORMAT = 1


class RecordError(ValueError):
    """A file among the records that is no record."""


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
        dir=path.parent, prefix=f".{path.name}."
    )
    try:
        with os.fdopen(descriptor, mode) as file:
            write_to(file)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes files that only their owner may read.
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read(path):
    """Reads one record.

    Raises:
        RecordError: if the file is not a record of this format.
    """
    try:
        record = json.loads(Path(path).read_text())
    except ValueError as e:
        raise RecordError(
            f"{path} is not JSON ({e}). Delete it to run it again."
        ) from e
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise RecordError(
            f"{path} is not a run record of format {FORMAT}. Move it out of "
            "the results folder."
        )
    return record


def read_all(folder):
    """The run records of a results folder, in the order of their names."""
    return [read(path) for path in sorted(Path(folder).glob("*_seed*.json"))]


def _one_line_lists(text):
    """Puts each innermost list on one line, so that curves stay readable."""
    return re.sub(
        r"\[\n\s+([^\[\]{}]*?)\n\s+\]",
        lambda match: "[" + " ".join(match[1].split()) + "]",
        text,
    )
