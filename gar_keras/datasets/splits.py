"""Splits into labelled images (X_L), validation images and the rest."""

import hashlib
from dataclasses import dataclass

import numpy as np

from gar_keras.utils.validation import check_count, check_labels


@dataclass(frozen=True)
class Split:
    """Indices into the training set.

    Attributes:
        labeled: Indices of X_L, `m_L` of them.
        validation: Indices of the validation images, disjoint from `labeled`.
    """

    labeled: np.ndarray
    validation: np.ndarray

    def fingerprint(self):
        """SHA-256 over both index arrays, to compare splits between records."""
        digest = hashlib.sha256()
        for part in (self.labeled, self.validation):
            digest.update(np.ascontiguousarray(part, "<i8").tobytes())
            digest.update(b"|")
        return digest.hexdigest()


def make_split(y_train, num_labeled, seed, num_validation=1000):
    """Draws the labelled and the validation images (paper, section 4).

    The labelled images are drawn at random, evenly over the classes; the
    validation images at random from the rest. Both depend on `seed` alone.

    Args:
        y_train: Class indices of the training set, `(m,)`.
        num_labeled: m_L. A multiple of the number of classes.
        seed: Non-negative integer.
        num_validation: Number of validation images.

    Returns:
        A `Split`.

    Raises:
        ValueError: if the numbers cannot be drawn from `y_train`.

    Example:

    >>> split = make_split(np.arange(100) % 10, 20, seed=0, num_validation=5)
    >>> sorted(np.bincount(split.labeled % 10))[0]
    np.int64(2)
    """
    y_train = check_labels("y_train", y_train, np.size(y_train))
    num_images = len(y_train)
    check_count("seed", seed, least=0)
    check_count("num_labeled", num_labeled, least=1, most=num_images)
    check_count("num_validation", num_validation, least=0)
    if num_validation > num_images - num_labeled:
        raise ValueError(
            f"Of {num_images} images, {num_labeled} labelled, "
            f"{num_images - num_labeled} are left for validation. Received: "
            f"num_validation={num_validation}. Give a smaller num_validation, "
            "e.g. 0."
        )
    classes, sizes = np.unique(y_train, return_counts=True)
    n = len(classes)
    if num_labeled % n or num_labeled > n * sizes.min():
        raise ValueError(
            f"num_labeled must be a multiple of the {n} classes, from {n} to "
            f"{n * sizes.min()}: labels are even over the classes, and the "
            f"smallest holds {sizes.min()}. Received: num_labeled={num_labeled}"
        )
    per_class = num_labeled // n
    rng = np.random.default_rng([seed, num_labeled])
    drawn = [
        rng.choice(np.flatnonzero(y_train == c), per_class, replace=False)
        for c in classes
    ]
    labeled = rng.permutation(np.concatenate(drawn))
    others = np.setdiff1d(np.arange(num_images), labeled)
    validation = rng.choice(others, num_validation, replace=False)
    return Split(labeled, validation)
