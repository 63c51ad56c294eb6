"""Virtual adversarial training.

T. Miyato, S. Maeda, M. Koyama and S. Ishii, *Virtual adversarial training: a
regularization method for supervised and semi-supervised learning*, IEEE TPAMI
2018 (arXiv 1704.03976).

Each image is moved by `r` of length ε to where the prediction changes most,
and the prediction there is pulled to the one before:

`LDS(x) = KL(p(y|x, θ^) ‖ p(y|x + r, θ))`, and
`loss = cross-entropy of the labelled images + α * mean LDS of all images`,

where θ^ are the weights taken as constants. A second method adds the mean
entropy of all predictions. The direction of `r` is found by power iteration on
the Hessian of the divergence: from a random unit vector `d`,
`d <- ∇_r KL(p(x) ‖ p(x + r))` at `r = ξ d`, scaled to unit length.
"""

from dataclasses import dataclass
from typing import ClassVar

import keras
from keras import ops

from gar_keras.engine import autodiff
from gar_keras.engine.data import MEASURED, first_examples, other_sizes
from gar_keras.methods import losses
from gar_keras.methods.base import Term
from gar_keras.methods.preprocessing import is_random, preprocessed, split
from gar_keras.utils.validation import check_count, check_fields, check_number
from gar_keras.utils.warnings import warn


@dataclass(frozen=True)
class VAT(Term):
    """`α * mean LDS`, the local distributional smoothness.

    ε and ξ are lengths in the space of the images that the network sees, after
    a `Rescaling` or a standardization: pixels from 0 to 1 for MNIST. Random
    layers without weights that the model begins with, such as augmentation,
    draw once for a batch: what is moved are the images that they give.

    Args:
        weight: α. The paper: 1.
        epsilon: ε. The paper chooses it by validation for each data set; 2.5
            is its value for SVHN without augmentation, on pixels from 0 to 1.
        xi: ξ. The paper: 1e-6, which is lost in the rounding of float32
            logits, let alone in bfloat16. A random step of length 1 moves a
            pixel of MNIST by 0.04.
        iterations: Power iterations. The paper: 1.

    Raises:
        ValueError: if a value is not valid; in training, if the model takes
            integers that are not images, or begins with an `Embedding`.

    Warns:
        GARWarning: if the examples are of another size where they are moved,
            and ε is the default; if no prediction changes when they are moved.
    """

    name: ClassVar[str] = "lds"

    epsilon: float = 2.5
    xi: float = 1.0
    iterations: int = 1

    def __post_init__(self):
        super().__post_init__()
        check_fields(self, check_number, "epsilon", "xi", closed="neither")
        check_fields(self, check_count, "iterations", least=1)

    def check(self, network, x_unlabeled):
        front, _ = split(network, "VAT")
        some = first_examples(x_unlabeled, MEASURED)
        sizes = other_sizes(preprocessed(front, some, training=False))
        if sizes and self.epsilon == type(self).epsilon:
            warn(
                f"VAT moves the examples by {self.epsilon:g}, where they hold "
                f"{sizes}: that is the size of other numbers. Begin the model "
                "with a keras.layers.Rescaling or Normalization, behind which "
                "they are moved, or give VAT an epsilon and xi of their size."
            )

    def build(self, stage_2):
        stage_2.front, stage_2.rest = split(stage_2.network, "VAT")
        stage_2.noise = keras.random.SeedGenerator(stage_2.seed)

    def loss(self, stage_2, x, y, logits):
        images = preprocessed(stage_2.front, x, training=True)
        statistics = stage_2.network.non_trainable_weights
        before = [ops.copy(variable) for variable in statistics]
        if any(map(is_random, stage_2.front)):
            # The logits given are of images that were drawn otherwise.
            logits = stage_2.rest(images, training=True)
        clean = ops.stop_gradient(logits)
        r = self.perturbation(stage_2, images, clean)
        moved = stage_2.rest(images + r, training=True)
        # The statistics of BatchNormalization stay free of adversarial images.
        for variable, value in zip(statistics, before, strict=True):
            variable.assign(value)
        return ops.mean(losses.divergence(clean, moved))

    def callbacks(self, evaluated, data, has_validation, class_names):
        return [WarnOfNoChange(self.name)] if self.weight else []

    def perturbation(self, stage_2, images, clean):
        """`r` of each image, whose logits are `clean`: of length ε."""
        start = keras.random.normal(
            ops.shape(images), dtype="float32", seed=stage_2.noise
        )

        def change(step):
            moved = stage_2.rest(images + step, training=True)
            # Of this alone the direction counts, which float16 would lose.
            return 2**10 * ops.sum(losses.divergence(clean, moved))

        direction = unit(start)
        for _ in range(self.iterations):
            slope = autodiff.gradient(change, self.xi * direction)
            direction = unit(ops.stop_gradient(slope))
        return self.epsilon * direction


class WarnOfNoChange(keras.callbacks.Callback):
    """Warns, once, if the term was 0 in all of an epoch."""

    def __init__(self, term):
        super().__init__()
        self.term = term
        self._is_told = False

    def on_epoch_end(self, epoch, logs=None):
        if (logs or {}).get(self.term) == 0 and not self._is_told:
            self._is_told = True
            warn(
                "VAT does nothing: no prediction changes when the examples are "
                f"moved. Received: {self.term}=0 in epoch {epoch + 1}. It "
                "needs numbers that the model takes as they are, not such as "
                "the indices of words."
            )


def unit(x):
    """Each image of `x` scaled to length 1; zeros stay zeros."""
    axes = tuple(range(1, len(x.shape)))
    # First by the largest entry: the squares of small ones would vanish.
    largest = ops.max(ops.abs(x), axis=axes, keepdims=True)
    x = x / ops.where(largest > 0, largest, ops.ones_like(largest))
    length = ops.sqrt(ops.sum(ops.square(x), axis=axes, keepdims=True))
    return x / ops.where(length > 0, length, ops.ones_like(length))
