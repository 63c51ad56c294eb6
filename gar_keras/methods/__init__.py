"""GAR and other semi-supervised methods on the same network and labels.

`METHODS` is the one list of them, by the names that `regularize` takes as
`method`. All go on where stage 1 ends, with the labels, batches, steps and
optimizer of GAR, and without the augmentation of their papers.

>>> METHODS["entropy"](weight=0.5)
EntropyMinimization(weight=0.5)
"""

from dataclasses import fields

from gar_keras.methods.base import Method
from gar_keras.methods.embed_cnn import EmbedCNN
from gar_keras.methods.entropy_minimization import EntropyMinimization
from gar_keras.methods.gar import GAR
from gar_keras.methods.mean_teacher import MeanTeacher
from gar_keras.methods.pi_model import PiModel
from gar_keras.methods.pseudo_label import PseudoLabel
from gar_keras.methods.safe_gar import SafeGAR
from gar_keras.methods.supervised import Supervised
from gar_keras.methods.vat import (
    VirtualAdversarialTraining,
    VirtualAdversarialTrainingEntropy,
)
from gar_keras.utils.validation import check_choice, received

__all__ = ["METHODS", "method_of"]

METHODS = {
    "gar": GAR,
    "safe-gar": SafeGAR,
    "supervised": Supervised,
    "entropy": EntropyMinimization,
    "pseudo-label": PseudoLabel,
    "pi": PiModel,
    "vat": VirtualAdversarialTraining,
    "vat-entropy": VirtualAdversarialTrainingEntropy,
    "mean-teacher": MeanTeacher,
    "embed-cnn": EmbedCNN,
}


def method_of(method, options):
    """A method for stage 2, by its name and a dict of settings, or itself."""
    if isinstance(method, str):
        check_choice("method", method, METHODS)
        kind = METHODS[method]
        known = [f.name for f in fields(kind) if f.init]
    elif isinstance(method, Method):
        kind, known = type(method), []
    else:
        raise ValueError(
            f"method must be one of {', '.join(METHODS)}, or made of a class "
            "such as gar_keras.SafeGAR. Received: "
            f"{received('method', method)}"
        )
    unknown = sorted(options.keys() - set(known))
    if unknown:
        raise TypeError(
            f"There is no argument {unknown[0]!r}: neither regularize has it, "
            f"nor {kind.__name__}, whose settings are: "
            f"{', '.join(known) or 'none beside a method that is made'}."
        )
    return kind(**options) if isinstance(method, str) else method
