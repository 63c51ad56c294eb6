"""Packages that only some of the work needs."""

import importlib
import importlib.util

# Names for `pip install`, where they are not those of the modules.
_DISTRIBUTIONS = {"sklearn": "scikit-learn"}


def optional(module, use, extra="experiments"):
    """A module of a package that may not be installed.

    Args:
        module: Name of the module, e.g. `"scipy.io"`.
        use: What needs it, as the subject of a sentence.
        extra: The extra of gar_keras that brings the package.

    Example:

    >>> optional("nowhere.io", "The reader")  # doctest: +NORMALIZE_WHITESPACE
    Traceback (most recent call last):
    ImportError: The reader needs the package nowhere, which is not installed:
    pip install 'gar_keras[experiments]'
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        advice = _advice(module, use, f"'gar_keras[{extra}]'")
        raise ImportError(advice) from error


def check_installed(package, use, extra=None):
    """Raises `ValueError` unless a package is there; imports nothing."""
    if importlib.util.find_spec(package) is None:
        what = f"'gar_keras[{extra}]'" if extra else package
        raise ValueError(_advice(package, use, what))


def _advice(module, use, what):
    package = module.partition(".")[0]
    return (
        f"{use} needs the package {_DISTRIBUTIONS.get(package, package)}, "
        f"which is not installed: pip install {what}"
    )
