"""GAR: graph-based activity regularization for semi-supervised learning.

`import gar_keras` loads Keras, and makes the classes that a saved model may
hold known to it.
"""

from typing import TYPE_CHECKING

from gar_keras.augmentation import RandomAffine
from gar_keras.callbacks import GARAfter
from gar_keras.engine.optimizers import sgd
from gar_keras.layers import GraphActivityRegularization
from gar_keras.methods import (
    GAR,
    VAT,
    Consistency,
    CrossEntropy,
    EmbedCNN,
    Entropy,
    MeanTeacher,
    PseudoLabel,
    SafeGAR,
)
from gar_keras.metrics import SparseCategoricalAccuracy, error_rate
from gar_keras.models import attach, cnn6, cnn9, detach, without_dropout
from gar_keras.regularizers import (
    GraphActivityRegularizer,
    affinity,
    balance,
    class_prior_of,
    expected_balance,
)
from gar_keras.training import pretrain, regularize
from gar_keras.utils.version import __version__ as __version__
from gar_keras.utils.warnings import GARWarning

# All but GARClassifier, which needs a package that may not be installed.
__all__ = [
    "GAR",
    "VAT",
    "Consistency",
    "CrossEntropy",
    "EmbedCNN",
    "Entropy",
    "GARAfter",
    "GARWarning",
    "GraphActivityRegularization",
    "GraphActivityRegularizer",
    "MeanTeacher",
    "PseudoLabel",
    "RandomAffine",
    "SafeGAR",
    "SparseCategoricalAccuracy",
    "affinity",
    "attach",
    "balance",
    "class_prior_of",
    "cnn6",
    "cnn9",
    "detach",
    "error_rate",
    "expected_balance",
    "pretrain",
    "regularize",
    "sgd",
    "without_dropout",
]

if TYPE_CHECKING:
    from gar_keras.estimator.classifier import GARClassifier as GARClassifier
else:

    def __getattr__(name):
        # An estimator of scikit-learn, which only the experiments need.
        if name == "GARClassifier":
            from gar_keras.estimator.classifier import GARClassifier

            return GARClassifier
        raise AttributeError(f"module 'gar_keras' has no attribute {name!r}")
