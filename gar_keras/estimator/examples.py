"""Examples and labels as the stages take them, of what a user gives."""

import numpy as np

from gar_keras.utils.validation import check_real

# What stands in for the class of an unlabelled example.
UNLABELED = -1


def is_unlabeled(y):
    """Which labels mark an example as unlabelled: -1, `"-1"` and `""`."""
    marked = y == UNLABELED
    if y.dtype.kind in "OU":
        marked = marked | (y == str(UNLABELED)) | (y == "")
    return marked


def encode(y):
    """The classes, sorted, and their indices in `y`, -1 without a label."""
    marked = is_unlabeled(y)
    classes, indices = np.unique(y[~marked], return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            "y must have labels of two or more classes. Received: labels of "
            f"{len(classes)} class(es). GAR starts from a network that is "
            "trained on a few labels: give some of each class."
        )
    targets = np.full(len(y), UNLABELED, "int64")
    targets[~marked] = indices
    return classes, targets


def as_labels(y):
    """`y` with -1 for what has no label in pandas: `None`, NaN and NA.

    Example:

    >>> as_labels(["cat", None, "dog"]).tolist()
    ['cat', '-1', 'dog']
    """
    # NumPy would make the string "nan" of a NaN among strings.
    labels = np.asarray(y, dtype=None if hasattr(y, "__array__") else object)
    if labels.dtype.kind not in "fO":
        return y
    missing = [_is_missing(label) for label in labels.flat]
    mixed = labels.dtype.kind == "O" and labels.ndim == 1
    if y is None or not (mixed or any(missing)):
        return y
    # Strings where there are strings.
    return np.array(np.where(missing, UNLABELED, labels.ravel()).tolist())


def _is_missing(label):
    # Of pandas' NA, no comparison is true or false.
    is_na = label is None or type(label).__name__ == "NAType"
    return is_na or bool(label != label)


def as_input(x):
    """Features, or images with channels, float32; uint8 images stay so."""
    if x.ndim not in (2, 3, 4) or not x.size:
        raise ValueError(
            "X must be features (m, f), or images (m, h, w) or "
            f"(m, h, w, c), none of these 0. Received: shape={x.shape}"
        )
    check_real("X", x.dtype, "biuf")
    if x.ndim == 2 or x.dtype != "uint8":
        # What float32 cannot hold becomes infinite, and is seen below.
        with np.errstate(over="ignore"):
            x = x.astype("float32")
        if not np.isfinite(x).all():
            raise ValueError(
                "X must be finite in float32. Received: "
                f"{np.count_nonzero(~np.isfinite(x))} values that are not"
            )
    return x[..., None] if x.ndim == 3 else x
