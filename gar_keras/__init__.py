"""GAR: graph-based activity regularization for semi-supervised learning."""

import importlib
import sys
from typing import TYPE_CHECKING

from gar_keras._moved import OldNames
from gar_keras.utils.deprecation import warn_renamed

# For type checkers and editors, which cannot follow `__getattr__`.
if TYPE_CHECKING:
    from gar_keras.augmentation import RandomAffine as RandomAffine
    from gar_keras.augmentation import RandomShift as RandomShift
    from gar_keras.augmentation import (
        random_augmentation as random_augmentation,
    )
    from gar_keras.callbacks import GARAfter as GARAfter
    from gar_keras.callbacks import error_rate as error_rate
    from gar_keras.classification.estimator import (
        GARClassifier as GARClassifier,
    )
    from gar_keras.layers import (
        GraphActivityRegularization as GraphActivityRegularization,
    )
    from gar_keras.methods.gar import ExtendedGAR as ExtendedGAR
    from gar_keras.metrics import (
        SparseCategoricalAccuracy as SparseCategoricalAccuracy,
    )
    from gar_keras.metrics import (
        SparseCategoricalCrossentropy as SparseCategoricalCrossentropy,
    )
    from gar_keras.models import attach as attach
    from gar_keras.models import cnn6 as cnn6
    from gar_keras.models import cnn9 as cnn9
    from gar_keras.models import detach as detach
    from gar_keras.models import without_dropout as without_dropout
    from gar_keras.optimizers import sgd as sgd
    from gar_keras.regularizers import (
        GraphActivityRegularizer as GraphActivityRegularizer,
    )
    from gar_keras.regularizers import affinity as affinity
    from gar_keras.regularizers import balance as balance
    from gar_keras.regularizers import class_prior_of as class_prior_of
    from gar_keras.regularizers import expected_balance as expected_balance
    from gar_keras.regularizers import rectify as rectify
    from gar_keras.training import pretrain as pretrain
    from gar_keras.training import regularize as regularize
    from gar_keras.utils.warnings import GARWarning as GARWarning

# Loaded on first use, so that a script can choose Keras' backend before.
_EXPORTS = {
    "ExtendedGAR": "methods.gar",
    "GARAfter": "callbacks",
    "GARClassifier": "classification.estimator",
    "GARWarning": "utils.warnings",
    "GraphActivityRegularization": "layers",
    "GraphActivityRegularizer": "regularizers",
    "RandomAffine": "augmentation",
    "RandomShift": "augmentation",
    "SparseCategoricalAccuracy": "metrics",
    "SparseCategoricalCrossentropy": "metrics",
    "affinity": "regularizers",
    "attach": "models",
    "balance": "regularizers",
    "class_prior_of": "regularizers",
    "expected_balance": "regularizers",
    "cnn6": "models",
    "cnn9": "models",
    "detach": "models",
    "error_rate": "callbacks",
    "pretrain": "training",
    "random_augmentation": "augmentation",
    "rectify": "regularizers",
    "regularize": "training",
    "sgd": "optimizers",
    "without_dropout": "models",
}

# Names that have become others of these.
_FORMER = {"random_moves": "random_augmentation"}

# What a saved model may hold is in these.
_SERIALIZABLE = (
    "regularizers",
    "layers",
    "augmentation",
    "metrics",
    "models",
    "optimizers",
)

# All but what needs a package that may not be installed.
__all__ = sorted(_EXPORTS.keys() - {"GARClassifier"})
__version__ = "0.1.0"


class _KerasImport:
    """Finder that makes the classes known to Keras once Keras is imported.

    A saved model then loads after `import gar_keras` alone, in whatever order
    the two are imported.
    """

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != "keras":
            return None
        others = (finder for finder in sys.meta_path if finder is not cls)
        specs = (finder.find_spec(name, path, target) for finder in others)
        spec = next(filter(None, specs), None)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def run_and_register(module):
                run(module)
                if cls in sys.meta_path:
                    sys.meta_path.remove(cls)
                _register()

            spec.loader.exec_module = run_and_register
        return spec


def _register():
    """Imports the modules whose classes a saved model may hold."""
    try:
        for module in _SERIALIZABLE:
            importlib.import_module(f"gar_keras.{module}")
    except ImportError:
        # One of them is being imported, and imports Keras: see __getattr__.
        pass


if OldNames not in sys.meta_path:
    # The first: a folder of old bytecode would count as a package.
    sys.meta_path.insert(0, OldNames)
if "keras" in sys.modules:
    _register()
else:
    sys.meta_path.insert(0, _KerasImport)


def _load(name):
    if name in _FORMER:
        warn_renamed(f"gar_keras.{name}", _FORMER[name])
        name = _FORMER[name]
    if name in _EXPORTS:
        module = importlib.import_module(f"gar_keras.{_EXPORTS[name]}")
        if "keras" in sys.modules:
            _register()
        return getattr(module, name)
    raise AttributeError(f"module 'gar_keras' has no attribute {name!r}")


if not TYPE_CHECKING:
    # A type checker that saw it would take every name for one of ours.
    __getattr__ = _load


def __dir__():
    return [*globals(), *__all__]
