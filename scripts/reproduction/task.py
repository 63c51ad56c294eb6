"""The data set of a run, changed as its `DataSettings` say."""

import functools
from dataclasses import dataclass, replace

import numpy as np

from gar_keras.datasets import Dataset, Split, make_split
from gar_keras.datasets.splits import draw_split
from gar_keras.methods.safe_gar import given_prior
from gar_keras.utils.validation import check_class_prior
from reproduction.datasets import UNLABELED, load
from reproduction.datasets.norb import NorbPreprocessing
from reproduction.datasets.registry import NORB
from reproduction.methods.terms import PRIOR_OF_LABELS

# Each choice has random numbers of its own: one does not change another.
IMBALANCE, LABEL_NOISE, OUT_OF_CLASS = 1, 2, 3

# Runs of a table, one after another, have the same; NORB's has two versions.
_load = functools.lru_cache(maxsize=2)(load)


@dataclass(frozen=True)
class Task:
    """What a run learns from."""

    data: Dataset
    # Indices of its training images in the data set as loaded.
    kept: np.ndarray
    split: Split
    # As the network is told them.
    y_labeled: np.ndarray
    # To be added to X_U.
    out_of_class: np.ndarray


def learned_from(experiment, seed, data_dir=None):
    """The `Task` of a run, X_U, and what a record says of both."""
    e = experiment
    data = load_data(e, data_dir)
    task = make_task(
        e.data_settings, data, e.num_labeled, e.num_validation, seed
    )
    unlabeled, source = unlabeled_images(e, task, data_dir)
    described = {
        "data": {
            "title": task.data.title,
            "source": task.data.source,
            "unlabeled": source,
        },
        "split_fingerprint": task.split.fingerprint(),
        "class_prior": class_prior(e, task),
    }
    return task, unlabeled, described


def labeled_of(task):
    """Indices of X_L in the data set as loaded."""
    return task.kept[task.split.labeled].tolist()


def class_prior(experiment, task):
    """The shares that the balance expects, a list; `None` for equal ones."""
    prior, n = experiment.class_prior, task.data.num_classes
    if prior is None:
        return None
    if prior == PRIOR_OF_LABELS:
        prior = given_prior("labeled", task.y_labeled, n)
    return [*check_class_prior(prior, n)]


def load_data(experiment, data_dir=None, **norb):
    """The `Dataset` of an experiment, with what it changes in the images."""
    e, options = experiment, {}
    if e.dataset in NORB:
        options["preprocessing"] = NorbPreprocessing(**norb)
    # The folder is of its own files then, which go with the package's MNIST.
    folder = None if e.unlabeled == "infimnist" else data_dir
    return _load(e.dataset, folder, **options)


def versions_of_test(experiment, data, data_dir=None):
    """Further versions of the test images, by the name of the error on them."""
    e = experiment
    if e.dataset not in NORB or e.data_settings.known_classes is not None:
        return {}
    # Without their own feature-wise mean, as the authors' code made them.
    images = load_data(e, data_dir, test_mean="own").x_test
    return {"test_error_own_mean": (images, data.y_test)}


def make_task(conditions, data, num_labeled, num_validation, seed):
    """The `Task` of a `Dataset` under `DataSettings`, drawn by the seed."""
    kept, others = np.arange(len(data.y_train)), np.arange(0)
    if conditions.shares is not None:
        kept = with_imbalance(data.y_train, conditions.shares, seed)
    elif conditions.known_classes is not None:
        kept, others = _known_and_out_of_class(conditions, data, seed)
    out_of_class = data.x_train[others]
    data = _only(data, kept, conditions.known_classes)
    draw = {"even": make_split, "random": draw_split}[conditions.labels_drawn]
    split = draw(data.y_train, num_labeled, seed, num_validation)
    y = data.y_train[split.labeled]
    y = with_label_noise(y, conditions.wrong_labels, data.num_classes, seed)
    return Task(data, kept, split, y, out_of_class)


def unlabeled_images(experiment, task, data_dir=None):
    """X_U of an experiment with a `Task`, and what it is, in words."""
    origin = UNLABELED[experiment.unlabeled]
    if origin.loader is not None:
        images = origin.loader(data_dir)
        return images, origin.source or images.source
    images, source = task.data.x_train, "all training images"
    if len(task.out_of_class):
        images = np.concatenate([images, task.out_of_class])
        source += f" and {len(task.out_of_class)} of other classes"
    return images, source


def with_imbalance(y, shares, seed):
    """Sorted indices of images of which the classes have the shares wanted.

    Of class i, `round(k * p_i)` images are drawn at random, with the largest k
    for which there are enough of each class.
    """
    sizes, p = np.bincount(y), np.asarray(shares)
    if len(p) != len(sizes):
        raise ValueError(
            "shares must have one share for each class. Received: "
            f"{len(p)} shares for {len(sizes)} classes"
        )
    total = np.min(sizes / p)
    counts = np.minimum(np.round(total * p).astype(int), sizes)
    rng = np.random.default_rng([seed, IMBALANCE])
    drawn = [
        rng.choice(np.flatnonzero(y == c), count, replace=False)
        for c, count in enumerate(counts)
    ]
    return np.sort(np.concatenate(drawn))


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


def _known_and_out_of_class(conditions, data, seed):
    """Indices of the images of known classes, and of those of others."""
    known = data.y_train < conditions.known_classes
    kept, others = np.flatnonzero(known), np.flatnonzero(~known)
    # So many that they are the wanted share of the whole.
    share = conditions.out_of_class
    wanted = len(kept) * share / max(1 - share, 1e-9)
    if wanted > len(others):
        raise ValueError(
            "There are too few out-of-class images: they can be at most "
            f"{len(others) / len(known):.3f} of X_U. Received: "
            f"out_of_class={share}"
        )
    rng = np.random.default_rng([seed, OUT_OF_CLASS])
    return kept, np.sort(rng.permutation(others)[: round(wanted)])


def _only(data, kept, known_classes):
    """The data set with some of its training images and the known classes."""
    if len(kept) == len(data.y_train):
        return data
    known = known_classes or data.num_classes
    test = data.y_test < known
    return replace(
        data,
        x_train=data.x_train[kept],
        y_train=data.y_train[kept],
        x_test=data.x_test[test],
        y_test=data.y_test[test],
        num_classes=known,
    )
