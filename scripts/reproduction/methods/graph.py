"""Methods without a network: on a graph of the images, or a linear classifier.

The images are raw pixels, in float64. The test images have no part in the
graph, as for the networks: they get their classes afterwards.
"""

from dataclasses import dataclass

import numpy as np

from gar_keras.methods.embed_cnn import pixels, scikit_learn
from gar_keras.utils.validation import (
    check_array,
    check_count,
    check_fields,
    check_labels,
    check_number,
    check_seed,
)
from reproduction.methods import terms


class GraphMethod:
    """A method without a network: a subclass is a dataclass with `infer`."""

    def fit_predict(self, x_labeled, y_labeled, x_unlabeled, x_test, seed=0):
        """The class indices of the test images; all images in memory."""
        check_array("x_labeled", x_labeled)
        check_array("x_unlabeled", x_unlabeled, ("x_labeled", x_labeled))
        check_array("x_test", x_test, ("x_labeled", x_labeled))
        y = check_labels("y_labeled", y_labeled, len(x_labeled))
        check_seed("seed", seed)
        x = np.concatenate([pixels(x_labeled), pixels(x_unlabeled)])
        return self.infer(x, y, pixels(x_test), seed)

    def infer(self, x, y, x_test, seed):
        """The same of rows of pixels; those of the labels `y` come first."""
        raise NotImplementedError


@dataclass(frozen=True)
class LabelSpreading(terms.LabelSpreading, GraphMethod):
    """Labels spread over a graph of nearest neighbours.

    D. Zhou, O. Bousquet, T. N. Lal, J. Weston and B. Schölkopf, *Learning with
    local and global consistency*, NIPS 2003. The images are a graph, and each
    takes on its neighbours' labels, `F <- α S F + (1 - α) Y`, where `S` is the
    normalized adjacency matrix and `Y` the labels given, until nothing changes.
    The work is done by scikit-learn's `LabelSpreading` on the graph of the k
    nearest neighbours, which is sparse (the paper's graph, with all edges, has
    60,000^2 of them). A test image gets the class that its nearest neighbours
    have most of.

    An image that no label reaches gets the first class. Nothing is random.
    """

    def __post_init__(self):
        check_fields(self, check_number, "alpha", high=1, closed="neither")
        check_fields(self, check_count, "neighbors", "iterations", least=1)

    def infer(self, x, y, x_test, seed):
        spreading = scikit_learn("semi_supervised").LabelSpreading(
            kernel="knn",
            n_neighbors=self.neighbors,
            alpha=self.alpha,
            max_iter=self.iterations,
        )
        spreading.fit(x, np.concatenate([y, np.full(len(x) - len(y), -1)]))
        # 0/0 where no label has reached any neighbour.
        with np.errstate(invalid="ignore"):
            return spreading.predict(x_test).astype("int64")


@dataclass(frozen=True)
class SelfTraining(terms.SelfTraining, GraphMethod):
    """A linear classifier that labels what it is sure of, and learns from it.

    scikit-learn's `SelfTrainingClassifier` of a logistic regression, with its
    defaults.
    """

    def __post_init__(self):
        check_fields(self, check_number, "threshold", high=1)
        check_fields(self, check_count, "iterations", least=1)

    def infer(self, x, y, x_test, seed):
        linear = scikit_learn("linear_model").LogisticRegression(
            max_iter=self.iterations
        )
        training = scikit_learn("semi_supervised").SelfTrainingClassifier(
            linear, threshold=self.threshold
        )
        training.fit(x, np.concatenate([y, np.full(len(x) - len(y), -1)]))
        return training.predict(x_test).astype("int64")
