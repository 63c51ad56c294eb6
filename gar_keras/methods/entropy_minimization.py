"""Entropy minimization.

Y. Grandvalet and Y. Bengio, *Semi-supervised learning by entropy
minimization*, NIPS 2004.

The unlabelled images are to lie away from the decision boundary: their
predictions are to be sure ones. To the log likelihood of the labelled images
the paper adds `-λ H`, with `H` the entropy of the predictions for the
unlabelled images. It sums both parts over their images; here both are means, so
that λ does not depend on how many images of each kind a batch holds.
"""

from dataclasses import dataclass

from gar_keras.methods import losses
from gar_keras.methods.base import Method
from gar_keras.utils.validation import check_fields, check_number


@dataclass(frozen=True)
class EntropyMinimization(Method):
    """`cross-entropy + λ * mean entropy of the unlabelled images`.

    Args:
        weight: λ. The paper chooses it from 0 to 1 by cross-validation; here
            it is 1, as where Miyato et al. (2018) take up the term.
    """

    terms = ("supervised", "entropy")

    weight: float = 1.0

    def __post_init__(self):
        check_fields(self, check_number, "weight")

    def losses(self, stage_2, x, y, logits):
        entropy = losses.mean_over(y < 0, losses.entropy(logits))
        terms = super().losses(stage_2, x, y, logits)
        return terms | {"entropy": self.weight * entropy}
