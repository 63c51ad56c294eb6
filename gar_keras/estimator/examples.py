"""Examples and labels as the stages take them, of what a user gives."""

import numpy as np

from gar_keras.engine.precision import blocks
from gar_keras.utils.images import (
    LAYOUTS,
    channel_axis,
    standardize_data_format,
)
from gar_keras.utils.validation import check_number, check_real
from gar_keras.utils.warnings import warn

# What stands in for the class of an unlabelled example.
UNLABELED = -1


def as_labels(y):
    """`y` with -1 for what has no label in pandas: `None`, NaN and NA.

    Example:

    >>> as_labels(["cat", None, "dog"]).tolist()
    ['cat', '-1', 'dog']
    """
    # NumPy would make the string "nan" of a NaN among strings, and a float of
    # an integer where pandas has NA beside it.
    has_numpy_dtype = isinstance(getattr(y, "dtype", None), np.dtype)
    labels = np.asarray(y, dtype=None if has_numpy_dtype else object)
    if y is None or labels.dtype.kind not in "fOUT":
        return y
    # The first label of each kind of marker, and of each kind of label.
    markers, kinds, given = {}, {}, []
    for label in labels.ravel().tolist():
        # A comparison with pandas' NA is neither true nor false.
        is_na = label is None or type(label).__name__ == "NAType"
        if is_na or label != label:
            markers.setdefault("missing", label)
        elif label in (UNLABELED, str(UNLABELED)):
            markers.setdefault("-1", label)
        elif isinstance(label, str) and not label:
            markers.setdefault("empty", label)
        else:
            is_name = isinstance(label, str | bytes)
            kinds.setdefault(type(label) if is_name else "number", label)
            given.append(label)
            continue
        given.append(UNLABELED)
    if len(markers) > 1:
        raise ValueError(
            "y must mark rows without a label in one way. Received: both "
            f"{' and '.join(map(repr, markers.values()))}. If one of them is a "
            "class, give it another name; else replace one by the other."
        )
    # NumPy would make names of the numbers.
    if len(kinds) > 1:
        raise ValueError(
            "y must have labels of one kind, names or numbers. Received: "
            f"{' and '.join(map(repr, kinds.values()))}. Give all of them as "
            "names, or all as numbers."
        )
    is_plain = labels.dtype.kind != "O" or labels.size != len(labels)
    if is_plain and "missing" not in markers:
        return y
    # NumPy would make integers of booleans beside -1.
    are_booleans = all(
        isinstance(label, bool | np.bool_) or label == UNLABELED
        for label in given
    )
    return np.array(given, dtype=object if are_booleans else None)


def is_unlabeled(y):
    """Which labels mark an example as unlabelled: -1, `"-1"`, `""`, NaT."""
    if y.dtype.kind in "mM":
        return np.isnat(y)
    marked = y == UNLABELED
    if y.dtype.kind in "OUT":
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
            "trained on a few labels: give some of each class. A label of -1 "
            "says that there is none."
        )
    if all(isinstance(name, bool | np.bool_) for name in classes):
        classes = classes.astype(bool)
    targets = np.full(len(y), UNLABELED, "int64")
    targets[~marked] = indices
    return classes, targets


def keep_back(y, fraction, seed, class_names):
    """Indices of the validation examples: a share of each class of y.

    One at least of each class that has two.
    """
    if not check_number("validation_fraction", fraction, high=1):
        return np.zeros(0, "int64")
    rng = np.random.default_rng([seed, len(y)])
    kept, single = [], []
    for c in np.unique(y[y != UNLABELED]):
        of_class = rng.permutation(np.flatnonzero(y == c))
        if len(of_class) == 1:
            single.append(str(class_names[c]))
        # One at least is trained on.
        share = max(1, round(fraction * len(of_class)))
        kept.append(of_class[: min(share, len(of_class) - 1)])
    if len(single) == len(kept):
        raise ValueError(
            f"There are too few labels to keep {fraction:g} of each class "
            f"back. Received: {len(kept)} labels, "
            f"validation_fraction={fraction:g}. Label more examples, or set "
            "validation_fraction to 0."
        )
    if single:
        warn(
            "The validation error is without classes that have one label. "
            f"Received: {', '.join(single)}, trained on alone. Label more "
            "examples of these."
        )
    return np.sort(np.concatenate(kept))


def as_input(X, scaler=None):
    """Examples as the network gets them.

    In float32, those of a table scaled in float64 before and dense; images get
    an axis of channels, and stay as they are in uint8.
    """
    is_image = len(X.shape) in (3, 4)
    if not (is_image or len(X.shape) == 2) or 0 in X.shape:
        layout = LAYOUTS[standardize_data_format()][1:]
        raise ValueError(
            "X must be features (m, f), or images (m, h, w) or "
            f"(m, {layout}, none of these 0. Received: shape={X.shape}"
        )
    check_real("X", X.dtype, "biuf")
    if not is_image or X.dtype != "uint8":
        x = np.empty(X.shape, "float32")
        infinite = 0
        for rows, block in blocks(X):
            with np.errstate(over="ignore"):
                is_infinite = np.isinf(block.astype("float32"))
                x[rows] = block if scaler is None else scaler.transform(block)
            infinite += np.count_nonzero(is_infinite | ~np.isfinite(x[rows]))
        if infinite:
            raise ValueError(
                f"X must be finite in float32. Received: {infinite} values "
                "that are not"
            )
        X = x
    return np.expand_dims(X, channel_axis()) if len(X.shape) == 3 else X
