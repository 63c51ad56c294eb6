"""Packages that only some of the work needs."""

import importlib

# Names for `pip install`, where they are not those of the modules.
_DISTRIBUTIONS = {"sklearn": "scikit-learn"}


def optional(module, use, extra="experiments"):
    """A module of a package that may not be installed.

    Example:

    >>> optional("nowhere.io", "The reader")  # doctest: +NORMALIZE_WHITESPACE
    Traceback (most recent call last):
    ImportError: The reader needs the package nowhere, which is not installed:
    pip install 'gar_keras[experiments]'
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(
            f"{use} needs the package {_DISTRIBUTIONS.get(package, package)}, "
            f"which is not installed: pip install 'gar_keras[{extra}]'"
        ) from error
