"""Packages that only some of the work needs."""

import importlib

# Names for `pip install`, where they are not those of the modules.
_DISTRIBUTIONS = {"sklearn": "scikit-learn"}


def optional(module, use, extra):
    """A module of a package that may not be installed.

    Example:

    >>> optional("nowhere.io", "A sum", "far")
    Traceback (most recent call last):
    ImportError: A sum needs the package nowhere: pip install 'gar_keras[far]'
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(
            f"{use} needs the package {_DISTRIBUTIONS.get(package, package)}: "
            f"pip install 'gar_keras[{extra}]'"
        ) from error
