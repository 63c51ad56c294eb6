"""Consistency of two noisy predictions, the term of the Π model.

S. Laine and T. Aila, *Temporal ensembling for semi-supervised learning*,
ICLR 2017.

Every image goes through the network twice. Dropout, or augmentation by random
layers of the model, makes the two predictions `z` and `z'` differ, and the loss
pulls them together:

`w(t) * mean over images and classes of (z - z')^2`, with the Gaussian ramp-up
`w(t) = w_max exp(-5 (1 - t/T)^2)`.

Beside it the paper has the cross-entropy of the labelled images, divided by all
images of a batch, and it multiplies w_max by the share of the labelled ones: so
the factor between the two means is w_max. Its ramp-down of the rate and its
Adam are left out: the optimizer is GAR's.
"""

from dataclasses import dataclass
from typing import ClassVar

from keras import ops

from gar_keras.methods import losses
from gar_keras.methods.base import Term
from gar_keras.methods.preprocessing import is_random
from gar_keras.utils.validation import check_fields, check_flag, check_number


@dataclass(frozen=True)
class Consistency(Term):
    """`w(t) * mean squared distance of two noisy predictions`.

    Args:
        weight: w_max. The paper: 100.
        ramp: T as a share of the training; 0 for `w(t) = w_max` throughout.
            The paper: 80 of 300 epochs.
        keeps_dropout: Whether the Dropout layers of the model are noise too,
            as in the paper, or left out, so that augmentation alone is.

    Raises:
        ValueError: if a value is not valid; in training, if the network has no
            noise, with which both predictions would always be the same.
    """

    name: ClassVar[str] = "consistency"

    weight: float = 100.0
    ramp: float = 80 / 300
    keeps_dropout: bool = True

    def __post_init__(self):
        super().__post_init__()
        check_fields(self, check_number, "ramp", high=1, closed="both")
        check_flag("keeps_dropout", self.keeps_dropout)

    def check(self, network, x_unlabeled):
        if not is_random(network):
            raise ValueError(
                "Consistency compares two noisy passes, but the network has "
                f"no noise. Received: model={network.name!r}. Give a model "
                "with Dropout layers, or with random layers such as "
                "gar_keras.RandomAffine."
            )

    def loss(self, stage_2, x, y, logits):
        again = stage_2.network(x, training=True)
        distance = ops.mean(losses.squared_distance(logits, again))
        if not self.ramp:
            return distance
        return losses.gaussian_ramp(stage_2.done(), self.ramp) * distance
