"""EmbedCNN: embedding by a graph of nearest neighbours.

J. Weston, F. Ratle, H. Mobahi and R. Collobert, *Deep learning via
semi-supervised embedding*, in *Neural networks: tricks of the trade*, 2012
(first at ICML 2008). The margin loss is that of R. Hadsell, S. Chopra and Y.
LeCun, CVPR 2006, in the form of the GAR paper's section 2.

The images are a graph: `A_ij = 1` if j is one of the k nearest neighbours of
i. The predictions of neighbours are pulled together, those of others are
pushed apart up to a margin:

`U = ‖f_i - f_j‖^2 if A_ij = 1, max(0, γ - ‖f_i - f_j‖^2) if A_ij = 0`

As in the paper's algorithm, each unlabelled image takes part in one pair of
each kind in a step: with a neighbour at random and with another image at
random, here the next one in the batch (neighbours are too rare to look out
for). The term is on the output of the network ("output" mode). The neighbours
are found once, among all unlabelled images, by the distance of their raw
pixels.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from keras import ops

from gar_keras.engine.streams import Stream
from gar_keras.methods import losses
from gar_keras.methods.base import Term
from gar_keras.utils.optional import optional
from gar_keras.utils.validation import (
    check_array,
    check_count,
    check_fields,
    check_number,
)


@dataclass(frozen=True)
class EmbedCNN(Term):
    """`λ * mean margin loss on pairs of the graph`.

    Args:
        weight: λ. The paper: 1.
        margin: γ, between the softmax outputs, whose squared distance is at
            most 2. The paper: 1.
        neighbors: k. The paper: 10 for MNIST.

    Raises:
        ValueError: if a value is not valid; in training, if the unlabelled
            images are not in memory or fewer than k + 1.
        ImportError: in training, if scikit-learn is not installed.
    """

    name: ClassVar[str] = "margin"

    margin: float = 1.0
    neighbors: int = 10

    def __post_init__(self):
        super().__post_init__()
        check_fields(self, check_number, "margin")
        check_fields(self, check_count, "neighbors", least=1)

    def check(self, network, x_unlabeled):
        # The neighbours of each image are looked for among all.
        if isinstance(x_unlabeled, Stream):
            # The refusal names what the user gave.
            x_unlabeled = x_unlabeled.batches
        check_array("x_unlabeled", x_unlabeled)
        most = len(x_unlabeled) - 1
        check_count("neighbors", self.neighbors, least=1, most=most)
        scikit_learn("neighbors")

    def setup(self, network, data, initial_epoch=0):
        neighbors = nearest_neighbors(data.images, self.neighbors)
        data = replace(data, sampler=_Pairs(data.sampler, neighbors))
        return self, network, data

    def loss(self, stage_2, x, y, logits):
        f = losses.probabilities(logits)
        images = (ops.shape(f)[0] - stage_2.labeled_per_batch) // 2
        mine, theirs = f[:images], f[images : 2 * images]
        others = ops.roll(mine, 1, axis=0)
        near = ops.sum(ops.square(mine - theirs), axis=-1)
        far = ops.sum(ops.square(mine - others), axis=-1)
        apart = ops.maximum(self.margin - far, 0.0)
        return ops.mean(near) + ops.mean(apart)


def nearest_neighbors(images, k):
    """Indices `(m, k)` of the nearest others of each image, nearest first."""
    # float32 is enough to rank distances, at half the time.
    search = scikit_learn("neighbors").NearestNeighbors(
        n_neighbors=k, algorithm="brute"
    )
    # `kneighbors()` does not make a point its own neighbour.
    return search.fit(pixels(images, "float32")).kneighbors(
        return_distance=False
    )


def pixels(images, dtype="float64"):
    """The images as a matrix `(m, pixels)`."""
    return images.reshape(len(images), -1).astype(dtype)


def scikit_learn(module):
    """A module of scikit-learn, such as `"neighbors"`."""
    return optional(f"sklearn.{module}", "A graph method", "scikit-learn")


class _Pairs:
    """A sampler that adds a neighbour to each image of another's batches.

    First the images, then their neighbours in the same order.
    """

    def __init__(self, sampler, neighbors):
        self.sampler = sampler
        self.neighbors = neighbors
        self.steps = sampler.steps
        self.batch = 2 * sampler.batch
        self.images_per_epoch = 2 * sampler.images_per_epoch
        self.labeled_per_batch = sampler.labeled_per_batch
        # A `setup` of SafeGAR finds this number, wherever it is in the list.
        self.images_per_step = sampler.images_per_step

    def epoch(self, number):
        order, chosen = self.sampler.epoch(number)
        rng = np.random.default_rng([self.sampler.seed, number, 1])
        drawn = rng.integers(self.neighbors.shape[1], size=len(order))
        near = self.neighbors[order, drawn]
        cuts = range(self.sampler.batch, len(order), self.sampler.batch)
        parts = zip(np.split(order, cuts), np.split(near, cuts), strict=True)
        return np.concatenate([i for pair in parts for i in pair]), chosen
