"""Label spreading.

D. Zhou, O. Bousquet, T. N. Lal, J. Weston and B. Schölkopf, *Learning with
local and global consistency*, NIPS 2003.

No network: the images are a graph, and each takes on its neighbours' labels,
`F <- α S F + (1 - α) Y`, where `S` is the normalized adjacency matrix and `Y`
the labels given, until nothing changes. The work is done by scikit-learn's
`LabelSpreading` on the graph of the k nearest neighbours of the raw pixels,
which is sparse (the paper's graph, with all edges, has 60,000^2 of them).

The test images have no part in the graph, as for the networks: afterwards each
gets the class that its nearest neighbours have most of.
"""

from dataclasses import dataclass

import numpy as np

from gar_keras.methods.transductive import GraphMethod, scikit_learn
from gar_keras.utils.validation import check_count, check_number


@dataclass(frozen=True)
class LabelSpreading(GraphMethod):
    """Labels spread over a graph of nearest neighbours.

    An image that no label reaches gets the first class. Nothing is random.

    Args:
        alpha: α, how much an image takes from its neighbours. The paper: 0.99.
        neighbors: k, the image itself among them. scikit-learn's default: 7.
        iterations: Steps at most; α = 0.99 needs about 2,000.

    Raises:
        ValueError: if α is not between 0 and 1, or a number is not an integer
            of at least 1.
    """

    alpha: float = 0.99
    neighbors: int = 7
    iterations: int = 5000

    def __post_init__(self):
        check_number("alpha", self.alpha, high=1, closed="neither")
        check_count("neighbors", self.neighbors, least=1)
        check_count("iterations", self.iterations, least=1)

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
