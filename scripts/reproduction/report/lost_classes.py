"""Whether stage 2 lost a class, by what a record holds; see docs/limits.md."""

from gar_keras.metrics import lost_classes
from gar_keras.regularizers import expected_balance

# Data sets of ten classes.
_DIGITS = ("mnist", "svhn", "svhn-grey")


def lost_class(record, arrays):
    """Whether stage 2 of a record lost a class; `None` if nothing can tell."""
    if "lost_classes" in record:
        return record["lost_classes"] != []
    # Earlier versions did not note it.
    if record.get("first_epoch"):
        last_batch = record["first_epoch"]["v"][-1]
        return bool(dead_outputs([last_batch]))
    if arrays:
        first, *_, last = arrays.logits.values()
        return lost_classes(first, last) != []
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


def dead_outputs(batches):
    """The classes without energy in some batch, by the energies of each.

    Example:

    >>> dead_outputs([[9.0, 0.0, 8.0], [9.0, 7.0, 8.0]])
    {1}
    """
    return {
        j
        for v in batches
        for j, energy in enumerate(v)
        if energy <= 1e-3 * sum(v) / len(v)
    }
