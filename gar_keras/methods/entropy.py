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
from typing import ClassVar

from keras import ops

from gar_keras.methods import losses
from gar_keras.methods.base import Term
from gar_keras.utils.validation import check_flag


@dataclass(frozen=True)
class Entropy(Term):
    """`λ * mean entropy of the unlabelled images`.

    Args:
        weight: λ. The paper chooses it from 0 to 1 by cross-validation; here
            it is 1, as where Miyato et al. (2018) take up the term.
        of_labeled: Whether it is of the labelled images too, as there.
    """

    name: ClassVar[str] = "entropy"

    of_labeled: bool = False

    def __post_init__(self):
        super().__post_init__()
        check_flag("of_labeled", self.of_labeled)

    def loss(self, stage_2, x, y, logits):
        entropy = losses.entropy(logits)
        if self.of_labeled:
            return ops.mean(entropy)
        return losses.mean_over(y < 0, entropy)
