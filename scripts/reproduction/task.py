"""What a run learns from: a data set, changed as its `DataSettings` say."""

import functools
from dataclasses import replace

import numpy as np

from gar_keras.datasets import make_split
from gar_keras.datasets.splits import Split
from gar_keras.methods.safe_gar import given_prior
from gar_keras.utils.validation import check_class_prior, check_count
from reproduction.datasets import UNLABELED, load
from reproduction.methods.terms import PRIOR_OF_LABELS

# Each choice has random numbers of its own: one does not change another.
IMBALANCE, LABEL_NOISE, OUT_OF_CLASS = 1, 2, 3

# One after another, runs of a table have the same data.
_load = functools.lru_cache(maxsize=1)(load)


class Task:
    """The data of a run.

    Attributes:
        data: The `Dataset`, with the training and test images of the task.
        split: Indices of X_L and of the validation images in its training set.
        labeled: Indices of X_L in the data set as loaded, a list.
        x_labeled, y_labeled: X_L, and the labels that the network is told.
        unlabeled: X_U.
        sets: Validation and test images with their labels, by the name of the
            error on them.
        described: What a record says of all this.
    """

    def __init__(self, experiment, seed, data_dir=None):
        e, changes = experiment, experiment.data_settings
        data = _load(e.dataset, data_dir)
        kept, others = np.arange(len(data.y_train)), np.arange(0)
        if changes.shares is not None:
            kept = with_imbalance(data.y_train, changes.shares, seed)
        elif changes.known_classes is not None:
            is_known = data.y_train < changes.known_classes
            kept = np.flatnonzero(is_known)
            others = np.flatnonzero(~is_known)
            # So many that they are the wanted share of the whole.
            share = changes.out_of_class
            wanted = len(kept) * share / max(1 - share, 1e-9)
            if wanted > len(others):
                raise ValueError(
                    "There are too few out-of-class images: they can be at "
                    f"most {len(others) / len(is_known):.3f} of X_U. Received: "
                    f"out_of_class={share}"
                )
            rng = np.random.default_rng([seed, OUT_OF_CLASS])
            others = np.sort(rng.permutation(others)[: round(wanted)])
            tested = data.y_test < changes.known_classes
            data = replace(
                data,
                x_test=data.x_test[tested],
                y_test=data.y_test[tested],
                num_classes=changes.known_classes,
            )
        out_of_class = data.x_train[others]
        if len(kept) < len(data.y_train):
            x, y = data.x_train[kept], data.y_train[kept]
            data = replace(data, x_train=x, y_train=y)
        self.data = data

        draws = {"even": make_split, "random": random_split}
        # Images of -1 have no label: they are for X_U alone.
        known = np.flatnonzero(data.y_train != -1)
        drawn = draws[changes.labels_drawn](
            data.y_train[known], e.num_labeled, seed, e.num_validation
        )
        labeled, held_out = known[drawn.labeled], known[drawn.validation]
        self.split = Split(labeled, held_out)
        self.labeled = kept[labeled].tolist()
        self.x_labeled = data.x_train[labeled]
        self.y_labeled = with_label_noise(
            data.y_train[labeled], changes.wrong_labels, data.num_classes, seed
        )
        self.sets = {
            "val_error": (data.x_train[held_out], data.y_train[held_out]),
            "test_error": (data.x_test, data.y_test),
        }

        source = "all training images"
        if e.unlabeled == "train":
            self.unlabeled = data.x_train
            if len(out_of_class):
                both = data.x_train, out_of_class
                self.unlabeled = np.concatenate(both)
                source += f" and {len(out_of_class)} of other classes"
        else:
            self.unlabeled, source = UNLABELED[e.unlabeled](data_dir)
        prior = e.class_prior
        if prior == PRIOR_OF_LABELS:
            prior = given_prior("labeled", self.y_labeled, data.num_classes)
        if prior is not None:
            prior = [*check_class_prior(prior, data.num_classes)]
        self.described = {
            "data": {
                "title": data.title,
                "source": data.source,
                "unlabeled": source,
            },
            "split_fingerprint": self.split.fingerprint(),
            "class_prior": prior,
        }


def with_imbalance(y, shares, seed):
    """Sorted indices of images of which the classes have the shares wanted.

    Of class i, `round(k * p_i)` images are drawn at random, with the largest k
    for which there are enough of each class.
    """
    sizes, p = np.bincount(y), np.asarray(shares)
    total = np.min(sizes / p)
    counts = np.minimum(np.round(total * p).astype(int), sizes)
    rng = np.random.default_rng([seed, IMBALANCE])
    drawn = [
        rng.choice(np.flatnonzero(y == c), count, replace=False)
        for c, count in enumerate(counts)
    ]
    return np.sort(np.concatenate(drawn))


def random_split(y, num_labeled, seed, num_validation):
    """A `Split` drawn without regard to the class.

    As when one labels what comes: a rare class gets few labels or none.

    Example:

    >>> random_split(np.zeros(9), 4, seed=0, num_validation=5).labeled.size
    4
    """
    m = len(y)
    check_count("seed", seed, least=0)
    check_count("num_labeled", num_labeled, least=1, most=m)
    left = m - num_labeled
    check_count("num_validation", num_validation, least=0, most=left)
    drawn = np.random.default_rng([seed, num_labeled]).permutation(m)
    wanted = num_labeled + num_validation
    return Split(drawn[:num_labeled], drawn[num_labeled:wanted])


def with_label_noise(y, share, num_classes, seed):
    """Labels of which a share is another class's, drawn evenly.

    Example:

    >>> y = np.zeros(10, int)
    >>> int(np.sum(with_label_noise(y, 0.2, num_classes=3, seed=0) != y))
    2
    """
    rng = np.random.default_rng([seed, LABEL_NOISE])
    wrong = rng.permutation(len(y))[: round(share * len(y))]
    moved = rng.integers(1, num_classes, len(wrong))
    y = y.copy()
    y[wrong] = (y[wrong] + moved) % num_classes
    return y
