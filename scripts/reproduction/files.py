"""Files written whole or not at all."""

import contextlib
import os
import secrets
from pathlib import Path


@contextlib.contextmanager
def writing(path, mode="w"):
    """A temporary file, open to be written, that becomes `path` at the end.

    It lies in the same folder, made if need be. If the block fails, it is
    removed and `path` stays as it was. An `OSError` such as that of a full disk
    names the path, and says what to do.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    encoding = None if "b" in mode else "utf-8"
    try:
        with open(temporary, mode, encoding=encoding) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as e:
        advice = f"{e.strerror or e}. Make room there, or write elsewhere"
        raise OSError(e.errno, advice, str(path)) from e
    finally:
        temporary.unlink(missing_ok=True)


def delete_leftovers(path):
    """Deletes what a killed process left of writing this file."""
    path = Path(path)
    for leftover in path.parent.glob(f".{path.name}.*"):
        leftover.unlink(missing_ok=True)
