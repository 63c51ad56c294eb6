"""Packages that only some of the work needs."""

import importlib
import importlib.util

# Names for `pip install`, where they are not those of the modules.
_DISTRIBUTIONS = {"sklearn": "scikit-learn"}


def optional(module, use, extra):
    """A module of a package that may not be installed.

    Args:
        module: Name of the module, e.g. `"scipy.io"`.
        use: What needs it, as the subject of a sentence.
        extra: The extra of gar_keras that brings the package.

    Returns:
        The module.

    Raises:
        ImportError: if it cannot be imported; it says what to install.

    Example:

    >>> optional("nowhere.io", "The reader", extra="experiments")
    ... # doctest: +NORMALIZE_WHITESPACE
    Traceback (most recent call last):
        ...
    ImportError: The reader needs the package nowhere, which is not installed:
    pip install 'gar_keras[experiments]'
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(_advice(module, use, extra)) from error


def check_installed(package, use, extra=None):
    """Raises `ValueError` unless a package is installed; imports nothing.

    Args:
        package: Name of the package.
        use: What needs it, as the subject of a sentence.
        extra: The extra of gar_keras that brings it; `None` for the package by
            itself.

    Example:

    >>> check_installed("nowhere", "--there")
    ... # doctest: +NORMALIZE_WHITESPACE
    Traceback (most recent call last):
        ...
    ValueError: --there needs the package nowhere, which is not installed: pip
    install nowhere
    """
    if importlib.util.find_spec(package) is None:
        raise ValueError(_advice(package, use, extra))


def _advice(module, use, extra):
    package = module.partition(".")[0]
    package = _DISTRIBUTIONS.get(package, package)
    what = f"'gar_keras[{extra}]'" if extra else package
    return (
        f"{use} needs the package {package}, which is not installed: pip "
        f"install {what}"
    )
