"""Pseudo-Label.

D.-H. Lee, *Pseudo-Label: the simple and efficient semi-supervised learning
method for deep neural networks*, ICML 2013 workshop on challenges in
representation learning.

Each unlabelled image gets the class of its largest logit for a label, anew in
every step, and these labels count in the cross-entropy with the factor

`α(t) = 0 for t < T1; α_f (t - T1) / (T2 - T1) for T1 <= t < T2; α_f from T2`

The method lives on dropout, as in the paper: the labels are those of the pass
that is trained.
"""

from dataclasses import dataclass
from typing import ClassVar

import keras
from keras import ops

from gar_keras.methods import losses
from gar_keras.methods.base import Term
from gar_keras.utils.validation import check_fields, check_number


@dataclass(frozen=True)
class PseudoLabel(Term):
    """`α(t) * cross-entropy with the network's own labels`.

    The paper gives T1 = 100 and T2 = 600 in epochs and does not say of how
    many; here they are shares of the training, as of 1,000 epochs.

    Args:
        weight: α_f.
        start: T1 as a share of the training.
        end: T2 as a share of the training, above `start`.
    """

    name: ClassVar[str] = "pseudo_label"
    keeps_dropout = True

    weight: float = 3.0
    start: float = 0.1
    end: float = 0.6

    def __post_init__(self):
        super().__post_init__()
        check_fields(self, check_number, "start")
        limits = {"low": self.start, "high": 1, "closed": "right"}
        check_fields(self, check_number, "end", **limits)

    def loss(self, stage_2, x, y, logits):
        labels = ops.argmax(ops.stop_gradient(logits), axis=-1)
        each = keras.losses.sparse_categorical_crossentropy(
            labels, ops.cast(logits, "float32"), from_logits=True
        )
        share = (stage_2.done() - self.start) / (self.end - self.start)
        alpha = ops.minimum(ops.maximum(share, 0.0), 1.0)
        return alpha * losses.mean_over(y < 0, each)
