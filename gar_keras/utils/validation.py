"""Checks of arguments, each with one message that says what to do."""

import math
import mmap
import numbers
import operator
import re
import textwrap

import numpy as np

# The least share of a class: below, `v_i / p_i` could leave float32's range.
LEAST_SHARE = 1e-30
# What rounding may take from the sum of a prior, in float32 as well.
SUM_TOLERANCE = 1e-6
# The most characters of an argument that an error repeats.
MOST_CHARACTERS = 200

# The largest seed that all backends of Keras take.
LARGEST_SEED = 2**32 - 1

# What an image source has.
_SOURCE = ("shape", "dtype", "take", "__len__")


def received(name, value):
    """An argument as an error tells of it: in one line, a long one by type."""
    text = f"{name}={value!r}"
    if "\n" in text or len(text) > MOST_CHARACTERS:
        return f"{name} of type {type(value).__name__}"
    return text


def reason_of(error):
    """What an error says is wrong, in a line."""
    # Of a `KeyError`, `str` is the `repr` of its text.
    text = error.args[0] if isinstance(error, KeyError) else str(error)
    text = re.sub(r"\x1b\[\d+m", "", str(text)) or repr(error)
    # Keras puts it between where it was, and what came in.
    text = re.sub(r"^Exception encountered when calling .*\n", "", text)
    text = text.rpartition("Error encountered:\n")[2]
    text = text.partition("\nArguments received by")[0]
    return textwrap.shorten(text, MOST_CHARACTERS, placeholder=" ...")


def check_count(name, value, *, least, most=math.inf):
    """Returns `value` as an int, or raises if it is none from least to most."""
    is_whole = isinstance(value, numbers.Integral)
    if not is_whole or isinstance(value, bool) or not least <= value <= most:
        limits = f"of at least {least}"
        if most < math.inf:
            limits = f"from {least} to {most}"
        raise ValueError(
            f"{name} must be an integer {limits}. Received: "
            f"{received(name, value)}"
        )
    return int(value)


def check_seed(name, value):
    """Returns a seed as an int, or raises if not every backend takes it."""
    return check_count(name, value, least=0, most=LARGEST_SEED)


def check_number(name, value, low=0, high=math.inf, closed="left"):
    """Returns a finite number of an interval as a float, or raises.

    `closed` says which of its ends belong to it, as in `pandas.Interval`.
    """
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    above = operator.ge if closed in ("left", "both") else operator.gt
    below = operator.le if closed in ("right", "both") else operator.lt
    inside = is_number and above(value, low) and below(value, high)
    if not inside or math.isinf(value):
        limits = f"{'of at least' if above is operator.ge else 'above'} {low:g}"
        if high < math.inf:
            word = "at most" if below is operator.le else "below"
            limits += f" and {word} {high:g}"
        raise ValueError(
            f"{name} must be a finite number {limits}. Received: "
            f"{received(name, value)}"
        )
    return float(value)


def check_choice(name, value, allowed):
    """Raises unless `value` is one of the allowed ones."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(
            f"{name} must be one of {', '.join(map(str, allowed))}. "
            f"Received: {received(name, value)}"
        )


def check_flag(name, value):
    """Raises unless `value` is `True` or `False`."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(
            f"{name} must be True or False. Received: {received(name, value)}"
        )


def check_images(name, x, like=None, least_dimensions=2):
    """Raises unless `x` can be batches of one input of a network.

    It is an array `(m, ...)`, an `h5py.Dataset` or an image source. `like` is
    `(name, x)` of another argument, whose examples must be as those.
    """
    unmasked(name, x)
    check_real(name, x.dtype)
    if len(x.shape) < least_dimensions or not len(x):
        raise ValueError(
            f"{name} must have a row for each example, (m, ...), and at least "
            f"one example. Received: shape={tuple(x.shape)}. Give a single "
            "feature as x[:, None]."
        )
    if is_in_memory(x):
        _check_finite(name, x)
    other_name, other = like or (name, x)
    mine, its = (x.shape[1:], x.dtype), (other.shape[1:], other.dtype)
    dtypes = {np.dtype(dtype).newbyteorder("=") for _, dtype in (mine, its)}
    if mine[0] != its[0] or len(dtypes) > 1:
        raise ValueError(
            f"{name} and {other_name} must hold examples of the same shape and "
            f"dtype. Received: {mine[0]} {mine[1]} and {its[0]} {its[1]}"
        )


def check_array(name, x, like=None, least_dimensions=2):
    """Raises unless `x` can be batches of one input, all in memory."""
    if not isinstance(x, np.ndarray):
        raise ValueError(
            f"{name} must be a NumPy array. Received: {name} of type "
            f"{type(x).__name__}. Read its examples into an array first."
        )
    check_images(name, x, like, least_dimensions)
    if not is_in_memory(x):
        _check_finite(name, x)


def unmasked(name, x):
    """`x`, plain if it is a masked array; raises if a value is masked."""
    if not isinstance(x, np.ma.MaskedArray):
        return x
    if np.any(x.mask):
        raise ValueError(
            f"{name} must have no masked values. Received: "
            f"{np.ma.count_masked(x)} masked of {x.size}. Leave their examples "
            f"out, or fill them with {name}.filled(value)."
        )
    return x.data


def check_real(name, dtype, kinds="iuf"):
    """Raises unless a dtype is of real numbers, by its `kind`."""
    if np.dtype(dtype).kind not in kinds:
        raise not_real(name, dtype)


def not_real(name, dtype):
    """The error of what is no array of real numbers."""
    return ValueError(
        f"{name} must be an array of real numbers. Received: "
        f"dtype={dtype}. Make numbers of text first, with "
        "x.astype('float32') or keras.layers.TextVectorization, and leave out "
        "or fill in what is missing."
    )


def check_columns(name, x):
    """Raises if a table has a column of dates, which may pass for numbers.

    Of any library: what is no table is not looked at.
    """
    if not hasattr(x, "columns") or not hasattr(x, "dtypes"):
        return
    for dtype in x.dtypes:
        is_of_polars = getattr(dtype, "is_temporal", bool)()
        if is_of_polars or getattr(dtype, "kind", "") in ("m", "M"):
            raise ValueError(
                f"{name} must hold numbers, but has a column of dates. "
                f"Received: dtype={dtype}. Make numbers of it first, such as "
                "days since the first one."
            )


def as_array(name, x):
    """The NumPy array of anything; raises if values are masked."""
    x = unmasked(name, x)
    try:
        return np.asarray(x)
    except (TypeError, ValueError):
        # Rows of several lengths: no array of numbers.
        return np.asarray(None)


def _check_finite(name, x):
    if x.dtype.kind == "f" and not np.isfinite(x).all():
        raise ValueError(
            f"{name} must be finite, but "
            f"{np.count_nonzero(~np.isfinite(x))} of its values are NaN "
            "or infinite. Remove or replace them."
        )


def check_labels(name, y, num_images, num_classes=None):
    """Returns `y` as int64 class indices `(num_images,)`, or raises."""
    if y is None:
        raise ValueError(
            f"{name} is missing. Give class indices, or a data set of pairs "
            "(x, y)."
        )
    y = as_array(name, y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.shape != (num_images,) or y.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must be integer class indices, one for each of the "
            f"{num_images} examples. Received: dtype={y.dtype}, "
            f"shape={y.shape}. Turn one-hot rows into indices with argmax and "
            "names with np.unique(y, return_inverse=True), and leave out the "
            "examples that have no label."
        )
    n = math.inf if num_classes is None else num_classes
    if y.size and (y.min() < 0 or y.max() >= n):
        limits = "of at least 0"
        if num_classes is not None:
            limits = f"from 0 to {n - 1}, for the {n} outputs of the model"
        advice = ""
        if y.min() < 0:
            advice += " Leave out examples without a label."
        if y.min() == 1 and y.max() == n:
            advice += " Classes count from 0: subtract 1 from the labels."
        elif y.dtype.kind == "u" and y.max() == np.iinfo(y.dtype).max:
            advice += (
                f" In {y.dtype} -1 is {y.max()}: leave out examples without a "
                "label."
            )
        elif y.max() >= n:
            advice += (
                f" An output is missing: give the model {int(y.max()) + 1} "
                "outputs, one for each class from 0 on."
            )
        raise ValueError(
            f"{name} must be class indices {limits}. Received: labels from "
            f"{y.min()} to {y.max()}.{advice}"
        )
    return y.astype("int64")


def check_logits(outputs):
    """Returns n of what a model gives, or raises unless it is `(m, n)`."""
    if not hasattr(outputs, "shape"):
        names = f" of {', '.join(outputs)}" if isinstance(outputs, dict) else ""
        raise ValueError(
            "A model must give one array, its logits (batch, n) with n of at "
            f"least 2. Received: a {type(outputs).__name__}{names}. Give a "
            "model of one output, e.g. "
            "keras.Model(model.inputs, model.output[name])."
        )
    return check_logits_shape(outputs.shape)


def check_logits_shape(shape):
    """Returns n of logits of the shape `(m, n)`, or raises."""
    if len(shape) != 2 or shape[-1] is None or shape[-1] < 2:
        raise ValueError(
            "Logits must be a matrix (batch, n) with n of at least 2 classes, "
            "one row for each example: two units for two classes. Reshape or "
            f"flatten other outputs. Received: shape={tuple(shape)}"
        )
    return shape[-1]


def is_source(x):
    """Whether `x` is an image source: random access, but not in memory."""
    # Arrays of other libraries can take too, but not by a list of indices.
    is_array = hasattr(x, "__array__")
    return not is_array and all(hasattr(x, name) for name in _SOURCE)


def is_in_memory(x):
    """Whether `x` is an array in memory, not a view of a file."""
    if not isinstance(x, np.ndarray):
        return False
    while isinstance(x, np.ndarray):
        x = x.base
    return not isinstance(x, mmap.mmap)


def check_class_prior(class_prior, num_classes=None):
    """Returns a prior as a tuple of floats, or raises if it is none."""
    index = getattr(class_prior, "index", None)
    # A list has a method of that name.
    if not callable(index) and index is not None:
        if list(index) != [*range(len(index))]:
            raise ValueError(
                "class_prior must be in the order of the classes, which a "
                "pandas Series has by its own index. Received: shares of "
                f"{list(index)}. Sort it so, and give its numbers, e.g. "
                "class_prior.sort_index().to_numpy()."
            )
    p = as_array("class_prior", class_prior)
    if p.ndim != 1 or len(p) < 2 or p.dtype.kind not in "iuf":
        raise ValueError(
            "class_prior must be an array of n numbers, the share of each of "
            "n classes, n of at least 2. Received: "
            f"{received('class_prior', class_prior)}"
        )
    p = p.astype("float64")
    # False of NaN as well.
    if not (p >= LEAST_SHARE).all() or abs(p.sum() - 1) > SUM_TOLERANCE:
        raise ValueError(
            f"class_prior must be positive numbers, none below "
            f"{LEAST_SHARE:g}, that sum to 1. Received: class_prior="
            f"{p.tolist()}, of sum {p.sum():g}. Divide it by its sum, and "
            "leave out a class that never occurs, with its output."
        )
    if num_classes is not None and len(p) != num_classes:
        raise ValueError(
            "class_prior must have one share for each output of the logits. "
            f"Received: {len(p)} shares for {num_classes} outputs"
        )
    return tuple(p.tolist())


def check_fields(settings, check, *names, **limits):
    """Each field becomes what `check(name, value, **limits)` returns of it."""
    for name in names:
        value = check(name, getattr(settings, name), **limits)
        # Past the frozen dataclass.
        object.__setattr__(settings, name, value)
