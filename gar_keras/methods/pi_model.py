"""The Π model.

S. Laine and T. Aila, *Temporal ensembling for semi-supervised learning*,
ICLR 2017.

Every image goes through the network twice. Dropout makes the two predictions
`z` and `z'` differ, and the loss pulls them together:

`cross-entropy of the labelled images + w(t) * mean over images and classes of
(z - z')^2`, with the Gaussian ramp-up `w(t) = w_max exp(-5 (1 - t/T)^2)`.

The paper divides the cross-entropy by all images of a batch and multiplies
w_max by the share of the labelled ones, so the factor between the two means is
w_max. Its ramp-down of the rate and its Adam are left out: the optimizer is
GAR's.
"""

from dataclasses import dataclass
from typing import ClassVar

from keras import ops

from gar_keras.methods import losses
from gar_keras.methods.base import Method
from gar_keras.utils.validation import check_fields, check_number


@dataclass(frozen=True)
class PiModel(Method):
    """`cross-entropy + w(t) * mean squared distance of two noisy predictions`.

    Args:
        weight: w_max. The paper: 100.
        ramp: T as a share of the training. The paper: 80 of 300 epochs.

    Raises:
        ValueError: if a value is not valid; in training, if the network has no
            noise, with which both predictions would always be the same.
    """

    keeps_dropout: ClassVar[bool] = True
    terms = ("supervised", "consistency")

    weight: float = 100.0
    ramp: float = 80 / 300

    def __post_init__(self):
        check_fields(self, check_number, "weight")
        check_fields(self, check_number, "ramp", high=1, closed="right")

    def build(self, stage_2):
        network = stage_2.network
        # What variables has and weights lacks are the states of seeds.
        if len(network.variables) == len(network.weights):
            raise ValueError(
                "The Π model compares two noisy passes, but the network has "
                f"no noise. Received: model={network.name!r}. Give a model "
                "with Dropout layers."
            )

    def losses(self, stage_2, x, y, logits):
        again = stage_2.network(x, training=True)
        w = self.weight * losses.gaussian_ramp(stage_2.done(), self.ramp)
        distance = ops.mean(losses.squared_distance(logits, again))
        terms = super().losses(stage_2, x, y, logits)
        return terms | {"consistency": w * distance}
