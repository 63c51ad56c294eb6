"""GAR: graph-based activity regularization for semi-supervised learning."""

import importlib

# Loaded on first use, so that a script can choose Keras' backend before.
_EXPORTS = {
    "ExtendedGAR": "extended",
    "GARClassifier": "estimator",
    "GARWarning": "alerts",
    "GraphActivityRegularization": "layers",
    "GraphActivityRegularizer": "regularizers",
    "RandomAffine": "augmentation",
    "RandomShift": "augmentation",
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
    "random_moves": "augmentation",
    "rectify": "regularizers",
    "regularize": "training",
    "sgd": "training",
    "without_dropout": "models",
}

# All but what needs a package that may not be installed.
__all__ = sorted(_EXPORTS.keys() - {"GARClassifier"})
__version__ = "0.1.0"


def __getattr__(name):
    if name in _EXPORTS:
        module = importlib.import_module(f"gar_keras.{_EXPORTS[name]}")
        return getattr(module, name)
    raise AttributeError(f"module 'gar_keras' has no attribute {name!r}")


def __dir__():
    return [*globals(), *__all__]
