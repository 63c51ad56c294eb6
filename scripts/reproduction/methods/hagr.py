"""HAGR: hierarchical anchor graph regularization.

M. Wang, W. Fu, S. Hao, H. Liu and X. Wu, *Learning on big graph: label
inference and regularization with anchor hierarchy*, IEEE TKDE 2017; the graph
of one level is that of W. Liu, J. He and S.-F. Chang, *Large graph
construction for scalable semi-supervised learning*, ICML 2010.

No network: a few anchors stand for the raw images, and coarser anchors for
these, level by level. `Z^1` has the weights of each image on its s nearest
anchors of the finest level, `Z^l` those of the anchors of level l - 1 on their
nearest ones of level l; the weights of a row are positive and sum to 1. Labels
are inferred from soft labels `A` of the coarsest anchors alone,

`F = Z A` with `Z = Z^1 Z^2 ... Z^h`,

while smoothness is measured on the images through the finest anchors,
`L = I - Z^1 Λ^{-1} Z^{1T}` with `Λ = diag(1ᵀ Z^1)`. The minimum of

`‖Z_L A - Y_L‖^2_F + γ tr((Z A)ᵀ L (Z A))`

over `A` has a closed form, with `L̃ = ZᵀZ - (ZᵀZ^1) Λ^{-1} (Z^{1T}Z)`:

`A = (Z_Lᵀ Z_L + γ L̃)^{-1} Z_Lᵀ Y_L`

An image belongs to the class j with the largest `(Z A)_ij / λ_j`, where
`λ_j = 1ᵀ Z a_j` is the mass of the class. Weights are Gaussian in the distance;
the bandwidth is each point's own, its distance to the s-th nearest anchor. No
matrix is larger than the images.
"""

import functools
import operator
from dataclasses import dataclass

import numpy as np

from gar_keras.utils.validation import check_count, check_fields, check_number
from reproduction.methods import terms
from reproduction.methods.graph import GraphMethod, scikit_learn

# Passes of k-means over the images, and images in a batch of it.
KMEANS_PASSES = 10
KMEANS_BATCH = 10_240


@dataclass(frozen=True)
class HAGR(terms.HAGR, GraphMethod):
    """Labels inferred from a hierarchy of anchors, the centres of k-means."""

    def __post_init__(self):
        for number in self.anchors:
            check_count("anchors", number, least=1)
        falling = sorted(set(self.anchors), reverse=True)
        if not self.anchors or list(self.anchors) != falling:
            raise ValueError(
                "anchors must be the numbers of anchors of one or more "
                "levels, each less than the one before. Received: "
                f"anchors={self.anchors}"
            )
        check_fields(self, check_count, "nearest", least=1)
        check_fields(self, check_number, "weight")

    def infer(self, x, y, x_test, seed):
        finest, levels = self.hierarchy(x, seed)
        A = soft_labels(levels, y, self.weight)
        mass = (_product(levels) @ A).sum(0)
        test = local_weights(x_test, finest, self.nearest)
        return classify(_product([test, *levels[1:]]) @ A, mass)

    def hierarchy(self, x, seed=0):
        """The anchors of the finest level, and `[Z^1, Z^2, ...]`."""
        points, all_anchors, levels = x, [], []
        for number in self.anchors:
            anchors = find_anchors(points, number, seed)
            levels.append(local_weights(points, anchors, self.nearest))
            all_anchors.append(anchors)
            points = anchors
        return all_anchors[0], levels


def find_anchors(points, number, seed=0):
    """The centres of k-means, `(number, pixels)`; no more than points."""
    means = scikit_learn("cluster").MiniBatchKMeans(
        n_clusters=min(number, len(points)),
        init="random",
        max_iter=KMEANS_PASSES,
        batch_size=KMEANS_BATCH,
        n_init=1,
        random_state=seed,
    )
    return means.fit(points).cluster_centers_


def local_weights(points, anchors, nearest):
    """The weights of points on their s nearest anchors, sparse `(m, a)`.

    `exp(-d^2 / (2 h^2))` of the distance d to each of them, scaled to sum to
    1; h is the distance to the last of them.
    """
    from scipy import sparse

    s = min(nearest, len(anchors))
    search = scikit_learn("neighbors").NearestNeighbors(
        n_neighbors=s, algorithm="brute"
    )
    distances, indices = search.fit(anchors).kneighbors(points)
    h = distances[:, -1:]
    weights = np.exp(-((distances / np.where(h > 0, h, 1)) ** 2) / 2)
    weights /= weights.sum(1, keepdims=True)
    rows = np.arange(0, s * len(points) + 1, s)
    return sparse.csr_array(
        (weights.ravel(), indices.ravel(), rows),
        shape=(len(points), len(anchors)),
    )


def soft_labels(levels, y, weight):
    """`A`; the images of the class indices `y` are the first of `Z^1`."""
    finest, Z = levels[0], _product(levels)
    mass = np.asarray(finest.sum(0)).ravel()
    cross = (Z.T @ finest).toarray()
    # An anchor that is near to no image has a column of zeros.
    through = (cross / np.where(mass > 0, mass, 1)) @ cross.T
    smooth = (Z.T @ Z).toarray() - through
    Z_L = Z[: len(y)].toarray()
    Y = np.eye(y.max() + 1)[y]
    # The least solution: what no label reaches stays 0.
    return np.linalg.lstsq(Z_L.T @ Z_L + weight * smooth, Z_L.T @ Y)[0]


def classify(F, mass):
    """The class of each row of `F`, by its share of the class's mass."""
    present = mass > 0
    shares = F / np.where(present, mass, 1)
    return np.where(present, shares, -np.inf).argmax(1)


def _product(matrices):
    return functools.reduce(operator.matmul, matrices)
