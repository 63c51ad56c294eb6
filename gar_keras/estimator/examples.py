"""Examples and labels as the stages take them, of what a user gives."""

import numpy as np

from gar_keras.engine.backend import aligned_empty
from gar_keras.engine.precision import blocks, columns_of, warn_if_coarse
from gar_keras.utils.images import (
    LAYOUTS,
    channel_axis,
    standardize_data_format,
)
from gar_keras.utils.validation import check_number, check_real
from gar_keras.utils.warnings import warn

# What stands in for the class of an unlabelled example.
UNLABELED = -1


def is_unlabeled(y):
    """Which labels mark an example as unlabelled: -1, `"-1"`, `""`, NaT."""
    if y.dtype.kind in "mM":
        return np.isnat(y)
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


def keep_back(y, fraction, seed, class_names):
    """Indices of the validation examples: a share of each class of y.

    One at least of each class that has two.
    """
    if not check_number("validation_fraction", fraction, high=1):
        return np.zeros(0, "int64")
    labels = y[y != UNLABELED]
    rng = np.random.default_rng([seed, len(y)])
    kept, single = [], []
    for c in np.unique(labels):
        of_class = rng.permutation(np.flatnonzero(y == c))
        # One at least is trained on.
        share = max(1, round(fraction * len(of_class)))
        share = min(share, len(of_class) - 1)
        kept.append(of_class[:share])
        if not share:
            single.append(repr(class_names[c]))
    kept = np.sort(np.concatenate(kept))
    if not len(kept):
        raise ValueError(
            f"There are too few labels to keep {fraction:g} of each class "
            f"back. Received: {len(labels)} labels, "
            f"validation_fraction={fraction:g}. Label more examples, or set "
            "validation_fraction to 0."
        )
    if single:
        warn(
            "The validation error is without classes that have one label. "
            f"Received: {', '.join(single)}, trained on alone. Label more "
            "examples of these."
        )
    return kept


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
    if y is None or labels.dtype.kind not in "fOU":
        return y
    _check_markers(labels.ravel().tolist())
    if labels.dtype.kind == "U":
        return y
    is_mixed = labels.dtype.kind == "O" and labels.size == len(labels)
    if not is_mixed and not any(map(_is_missing, labels.flat)):
        return y
    given = [UNLABELED if _is_marked(x) else x for x in labels.ravel().tolist()]
    # Strings where there are strings.
    found = np.array(given)
    _check_kept(given, found)
    return found


def _check_markers(labels):
    """Raises if labels are marked as missing in more than one way."""
    kinds = {}
    for label in labels:
        if _is_missing(label):
            kinds.setdefault("missing", label)
        elif label in (UNLABELED, str(UNLABELED)):
            kinds.setdefault("-1", label)
        elif isinstance(label, str) and not label:
            kinds.setdefault("empty", label)
    if len(kinds) > 1:
        raise ValueError(
            "y must mark rows without a label in one way. Received: both "
            f"{' and '.join(map(repr, kinds.values()))}. If one of them is a "
            "class, give it another name; else replace one by the other."
        )


def _check_kept(given, found):
    """Raises if NumPy has made another label of one, as "0" of 0."""
    # An integer beyond its own makes floats or objects of all of them.
    beyond = [x for x in given if isinstance(x, int) and abs(x) >= 2**63]
    if beyond and found.dtype.kind in "fO":
        raise ValueError(
            "y must have labels that an integer of 64 bits holds. Received: "
            f"{beyond[0]}. Give them as names: as strings."
        )
    pairs = zip(given, found.tolist(), strict=True)
    changed = [old for old, new in pairs if old != new and old != UNLABELED]
    if changed:
        kinds = {type(label).__name__ for label in given if label != UNLABELED}
        raise ValueError(
            "y must have labels of one kind, names or numbers. Received: "
            f"{changed[0]!r} among labels of {' and '.join(sorted(kinds))}. "
            "Give all of them as names, or all as numbers."
        )


def _is_marked(label):
    return _is_missing(label) or label in (UNLABELED, str(UNLABELED), "")


def _is_missing(label):
    # Of pandas' NA, no comparison is true or false.
    is_na = label is None or type(label).__name__ == "NAType"
    return is_na or bool(label != label)


def scaling_of(X):
    """`offset` and `scale` of the columns: 0 and 1 where float32 holds them.

    Else mean and standard deviation, in float64.
    """
    _check_rows(X)
    warn_if_coarse("X", X)
    columns = columns_of(X)
    offset = np.where(columns.is_lost, columns.mean, 0.0)
    return offset, np.where(columns.is_lost, columns.std, 1.0)


def as_input(X, offset=0.0, scale=1.0):
    """`(X - offset) / scale`, float32, images with channels; uint8 ones as is.

    A sparse X becomes dense, some rows at a time.
    """
    _check_rows(X)
    if len(X.shape) == 2 or X.dtype != "uint8":
        X = _rounded(X, offset, scale)
    return np.expand_dims(X, channel_axis()) if X.ndim == 3 else X


def _check_rows(X):
    if len(X.shape) not in (2, 3, 4) or 0 in X.shape:
        layout = LAYOUTS[standardize_data_format()][1:]
        raise ValueError(
            "X must be features (m, f), or images (m, h, w) or "
            f"(m, {layout}, none of these 0. Received: shape={X.shape}"
        )
    check_real("X", X.dtype, "biuf")


def _rounded(X, offset, scale):
    x, infinite = aligned_empty(X.shape, "float32"), 0
    for rows, block in blocks(X):
        with np.errstate(over="ignore"):
            x[rows] = (block - offset) / scale
        infinite += np.count_nonzero(~np.isfinite(x[rows]))
    if infinite:
        raise ValueError(
            f"X must be finite in float32. Received: {infinite} values that "
            "are not"
        )
    return x
