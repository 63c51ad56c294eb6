"""Where run records are: the project's reference, and the user's own."""

from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]


def reference():
    """Folder of the records that the project came with; `None` if installed."""
    folder = _ROOT / "results"
    return _short(folder) if _in_clone() and folder.is_dir() else None


def own():
    """Folder of the user's runs: `runs` in the clone, or else here."""
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
