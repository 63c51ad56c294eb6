"""Where run records are: the project's reference, and the user's own."""

from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]


def reference():
    """Folder of the reference: the records that the project came with.

    Returns:
        Its path, or `None` where the package is installed without it.
    """
    folder = _ROOT / "results"
    return _short(folder) if _in_clone() and folder.is_dir() else None


def own():
    """Folder of the user's runs, unless another one is named.

    Returns:
        `runs` in the clone, wherever the command was called; without a clone,
        `runs` in the working directory.
    """
    return _short(_ROOT / "runs") if _in_clone() else Path("runs")


def is_reference(folder):
    """Whether a folder is that of the reference."""
    found = reference()
    return found is not None and Path(folder).resolve() == found.resolve()


def _in_clone():
    return (_ROOT / "setup.cfg").is_file()


def _short(path):
    """A path from the working directory, where it lies below."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
