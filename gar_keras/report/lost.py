"""Runs in which stage 2 lost a class."""

from dataclasses import replace

import numpy as np

from gar_keras.experiments.placement import path_of_record
from gar_keras.experiments.settings import KEPT_IMAGES
from gar_keras.report.layout import MISSING

# What a reader of a count has to know.
LOST_NOTE = (
    "A run lost a class if its network gives it to some of the test images "
    f"kept ({KEPT_IMAGES:,}) after stage 1, and to none at the end. Where none "
    "were kept, the classes in use in the last batches tell (of digits); in "
    "records that have not counted them it is the balance at the end (for "
    "classes of equal size), at most that of one output fewer than there are "
    "classes, all used equally."
)

# Of the mean energy of the classes in a batch.
LEAST_ENERGY = 1e-3

# Data sets of ten classes.
_DIGITS = ("mnist", "svhn", "svhn-grey")


def kept_file(record, results):
    """Path of what a run may have kept for the figures beside its record."""
    return path_of_record(record, results).with_suffix(".npz")


def kept_predictions(record, results):
    """The classes that a run gave to the test images it kept.

    Args:
        record: Run record.
        results: Folder of the records.

    Returns:
        `(labels, predictions)`, the true classes and a dict of the predicted
        ones by epoch of stage 2; `None` if the run kept none.
    """
    path = kept_file(record, results)
    if not path.exists():
        return None
    with np.load(path) as file:
        predictions = {
            int(key.removeprefix("epoch_")): file[key].argmax(axis=1)
            for key in file.files
            if key.startswith("epoch_")
        }
        if not predictions:
            return None
        return file["labels"], dict(sorted(predictions.items()))


def chosen_probabilities(record, results):
    """The probabilities that a run gave to test images at its chosen epoch.

    Args:
        record: Run record.
        results: Folder of the records.

    Returns:
        `(labels, probabilities)`, the true classes of all test images, and
        the probability of each class for each of them; `None` if the run did
        not keep them.
    """
    path = kept_file(record, results)
    if not path.exists():
        return None
    with np.load(path) as file:
        if "chosen_probabilities" not in file.files:
            return None
        return file["test_labels"], file["chosen_probabilities"]


def chosen_predictions(record, results):
    """The classes that are the most likely by `chosen_probabilities`.

    Returns:
        `(labels, predictions)`, the true classes and the predicted ones;
        `None` if the run did not keep them.
    """
    kept = chosen_probabilities(record, results)
    if kept is None:
        return None
    labels, probabilities = kept
    return labels, probabilities.argmax(axis=1)


def lost_classes(record):
    """The classes that were lost by the end of the first epoch.

    Args:
        record: Record of a run whose first epoch was noted by step.

    Example:

    >>> lost_classes({"first_epoch": {"v": [[9.0, 8.0, 7.0], [9.0, 0.0, 8.0]]}})
    [1]
    """
    return _empty(record["first_epoch"]["v"][-1])


def has_emptied(record):
    """Whether a class had no energy at some step of the first epoch."""
    return any(map(_empty, record["first_epoch"]["v"]))


def _empty(v):
    """The classes without energy, by the energies of a batch."""
    least = LEAST_ENERGY * sum(v) / len(v)
    return [j for j, energy in enumerate(v) if energy <= least]


def lost_class(record, results=None):
    """Whether stage 2 lost a class; see `LOST_NOTE`.

    Args:
        record: Run record.
        results: Folder of the records, with what lies beside them; `None` to
            go by the curves alone.

    Returns:
        A bool, or `None` if neither predictions nor curves can tell.
    """
    if record.get("first_epoch"):
        return bool(lost_classes(record))
    kept = results and kept_predictions(record, results)
    if not kept:
        return _lost_by_curve(record)
    _, predictions = kept
    first, *_, last = predictions.values()
    return bool(set(first) - set(last))


def lost_text(records, results=None):
    """Number of runs that lost a class, of those that can tell: `1 of 9`."""
    found = [lost_class(r, results) for r in records]
    known = [lost for lost in found if lost is not None]
    return f"{sum(known)} of {len(known)}" if known else MISSING


def seeds_lost(records, results=None):
    """Seeds of the runs that lost a class."""
    return [r["seed"] for r in records if lost_class(r, results)]


def without_lost(g, results=None):
    """A group without its runs that lost a class.

    Args:
        g: A `Group`.
        results: Folder of its records, with what lies beside them, if at hand.

    Returns:
        A `Group`; `None` if no run lost one, or all did.
    """
    lost = seeds_lost(g.records, results)
    kept = tuple(r for r in g.records if r["seed"] not in lost)
    return replace(g, records=kept) if lost and kept else None


def balance_without_a_class(batch_size, num_classes):
    """The balance of random batches whose images fill n - 1 outputs equally.

    `gar_keras.expected_balance(m, n - 1)`, which counts pairs of n - 1 outputs,
    times `(n - 2) / (n - 1)`, since n outputs have more of them.

    Example:

    >>> round(balance_without_a_class(128, 10), 3)
    0.83
    """
    m, n = batch_size, num_classes
    return (m - 1) / (m + n - 2) * (n - 2) / (n - 1)


def _lost_by_curve(record):
    settings = record["experiment"]
    curve = record["regularization"]["curve"]
    if settings["dataset"] not in _DIGITS:
        return None
    n = settings["world"]["known_classes"] or 10
    baseline = record["result"]["baseline_error"]
    if baseline is None or baseline >= 1 - 1 / n:
        # No stage 1, or at chance after it: there was nothing to lose.
        return None
    if curve.get("classes_in_use"):
        return curve["classes_in_use"][-1] < n
    return _lost_by_balance(settings, curve.get("balance", ()), n)


def _lost_by_balance(settings, balance, n):
    # The mean over the first epoch is also that of the way there.
    enough = len(balance) > 2
    even = settings["world"]["shares"] is None
    even = even and settings["class_prior"] is None
    # Of unrectified logits, outputs that get no image count as well.
    rectified = settings["ablation"] != "unrectified"
    if not (enough and even and rectified):
        return None
    m = settings["labeled_per_batch"] + settings["unlabeled_per_batch"]
    return balance[-1] <= balance_without_a_class(m, n)
