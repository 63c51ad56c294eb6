"""Methods without a network: on a graph of the images, or a linear classifier.

The images are raw pixels, in float64. The test images have no part in the
graph, as for the networks: they get their classes afterwards.
"""

import functools
import operator

import numpy as np

from gar_keras.methods.embed_cnn import pixels, scikit_learn
from reproduction.methods import terms

multiply = functools.partial(functools.reduce, operator.matmul)

# Passes of k-means over the images, and images in a batch of it.
KMEANS_PASSES = 10
KMEANS_BATCH = 10_240


def fit_predict(term, x_labeled, y_labeled, x_unlabeled, x_test, seed=0):
    """The class indices of the test images, by a `Graph` of `terms`."""
    x = np.concatenate([pixels(x_labeled), pixels(x_unlabeled)])
    y = np.concatenate([y_labeled, np.full(len(x_unlabeled), -1)])
    infer = {
        terms.LabelSpreading: label_spreading,
        terms.SelfTraining: self_training,
        terms.HAGR: hagr,
    }[type(term)]
    return infer(term, x, y, pixels(x_test), seed)


# Each takes a term, rows of pixels, their labels, -1 behind the labelled ones,
# and the rows of the test images.


def label_spreading(term, x, y, x_test, seed):
    """Labels spread over a graph of nearest neighbours.

    D. Zhou, O. Bousquet, T. N. Lal, J. Weston and B. Schölkopf, *Learning with
    local and global consistency*, NIPS 2003, by scikit-learn on the graph of
    the k nearest neighbours, which is sparse (the paper's graph, with all
    edges, has 60,000^2 of them). A test image gets the class that its nearest
    neighbours have most of. An image that no label reaches gets the first
    class. Nothing is random.
    """
    spreading = scikit_learn("semi_supervised").LabelSpreading(
        kernel="knn",
        n_neighbors=term.neighbors,
        alpha=term.alpha,
        max_iter=term.iterations,
    )
    spreading.fit(x, y)
    # 0/0 where no label has reached any neighbour.
    with np.errstate(invalid="ignore"):
        return spreading.predict(x_test).astype("int64")


def self_training(term, x, y, x_test, seed):
    """scikit-learn's `SelfTrainingClassifier` of a logistic regression."""
    linear = scikit_learn("linear_model").LogisticRegression(
        max_iter=term.iterations
    )
    training = scikit_learn("semi_supervised").SelfTrainingClassifier(
        linear, threshold=term.threshold
    )
    training.fit(x, y)
    return training.predict(x_test).astype("int64")


def hagr(term, x, y, x_test, seed):
    """HAGR: hierarchical anchor graph regularization.

    M. Wang, W. Fu, S. Hao, H. Liu and X. Wu, *Learning on big graph: label
    inference and regularization with anchor hierarchy*, IEEE TKDE 2017; the
    graph of one level is that of W. Liu, J. He and S.-F. Chang, *Large graph
    construction for scalable semi-supervised learning*, ICML 2010.

    A few anchors, the centres of k-means, stand for the images, and coarser
    anchors for these, level by level. `Z^1` has the weights of each image on
    its s nearest anchors of the finest level, `Z^l` those of the anchors of
    level l - 1 on their nearest ones of level l. Labels are inferred from soft
    labels `A` of the coarsest anchors alone, `F = Z A` with
    `Z = Z^1 Z^2 ... Z^h`. An image belongs to the class j with the largest
    `(Z A)_ij / λ_j`, where `λ_j = 1ᵀ Z a_j` is the mass of the class. No matrix
    is larger than the images.
    """
    finest, levels = hierarchy(term, x, seed)
    A = soft_labels(levels, y[y >= 0], term.weight)
    mass = (multiply(levels) @ A).sum(0)
    test = local_weights(x_test, finest, term.nearest)
    F = multiply([test, *levels[1:]]) @ A
    present = mass > 0
    shares = F / np.where(present, mass, 1)
    return np.where(present, shares, -np.inf).argmax(1)


def hierarchy(term, x, seed=0):
    """The anchors of the finest level, and `[Z^1, Z^2, ...]`."""
    points, all_anchors, levels = x, [], []
    for number in term.anchors:
        means = scikit_learn("cluster").MiniBatchKMeans(
            n_clusters=min(number, len(points)),
            init="random",
            max_iter=KMEANS_PASSES,
            batch_size=KMEANS_BATCH,
            n_init=1,
            random_state=seed,
        )
        anchors = means.fit(points).cluster_centers_
        levels.append(local_weights(points, anchors, term.nearest))
        all_anchors.append(anchors)
        points = anchors
    return all_anchors[0], levels


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
    """The soft labels `A` of the coarsest anchors.

    Smoothness is measured on the images through the finest anchors, by
    `L = I - Z^1 Λ^{-1} Z^{1T}` with `Λ = diag(1ᵀ Z^1)`. The minimum of

    `‖Z_L A - Y_L‖^2_F + γ tr((Z A)ᵀ L (Z A))`

    has a closed form, with `L̃ = ZᵀZ - (ZᵀZ^1) Λ^{-1} (Z^{1T}Z)`:

    `A = (Z_Lᵀ Z_L + γ L̃)^{-1} Z_Lᵀ Y_L`

    The images of the class indices `y` are the first of `Z^1`.
    """
    finest, Z = levels[0], multiply(levels)
    mass = np.asarray(finest.sum(0)).ravel()
    cross = (Z.T @ finest).toarray()
    # An anchor that is near to no image has a column of zeros.
    through = (cross / np.where(mass > 0, mass, 1)) @ cross.T
    smooth = (Z.T @ Z).toarray() - through
    Z_L = Z[: len(y)].toarray()
    Y = np.eye(y.max() + 1)[y]
    # The least solution: what no label reaches stays 0.
    return np.linalg.lstsq(Z_L.T @ Z_L + weight * smooth, Z_L.T @ Y)[0]
