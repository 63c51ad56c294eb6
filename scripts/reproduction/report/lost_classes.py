"""Whether stage 2 lost a class, by what a record holds; see docs/limits.md."""

from gar_keras.regularizers import expected_balance

# Data sets of ten classes.
_DIGITS = ("mnist", "svhn", "svhn-grey")


def lost_class(record, arrays):
    """Whether stage 2 of a record lost a class; `None` if nothing can tell."""
    if record.get("first_epoch"):
        return bool(empty_classes(record["first_epoch"]["v"][-1]))
    if arrays:
        first, *_, last = arrays.logits.values()
        return bool({*first.argmax(axis=1)} - {*last.argmax(axis=1)})
    settings, curve = record["experiment"], record["regularization"]["curve"]
    if settings["dataset"] not in _DIGITS:
        return None
    n = settings["world"]["known_classes"] or 10
    baseline = record["result"]["baseline_error"]
    if baseline is None or baseline >= 1 - 1 / n:
        # No stage 1, or at chance after it: there was nothing to lose.
        return None
    if curve.get("classes_in_use"):
        return curve["classes_in_use"][-1] < n
    balance = curve.get("balance", ())
    uneven = settings["world"]["shares"] or settings["class_prior"]
    # The mean over the first epoch is also that of the way there; of
    # unrectified logits, outputs that get no image count as well.
    if len(balance) <= 2 or uneven or settings["ablation"] == "unrectified":
        return None
    m = settings["labeled_per_batch"] + settings["unlabeled_per_batch"]
    # Of n - 1 outputs used equally; n outputs have more pairs.
    return balance[-1] <= expected_balance(m, n - 1) * (n - 2) / (n - 1)


def empty_classes(v):
    """The classes without energy, by the energies of a batch.

    Example:

    >>> empty_classes([9.0, 0.0, 8.0])
    [1]
    """
    least = 1e-3 * sum(v) / len(v)
    return [j for j, energy in enumerate(v) if energy <= least]
