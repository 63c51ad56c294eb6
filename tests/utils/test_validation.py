"""Each check of arguments, once."""

import math

import numpy as np
import pytest

from gar_keras.utils import validation


@pytest.mark.parametrize(
    ("closed", "inside", "outside"),
    [
        ("left", [0, 0.5], [-1, 1, 2]),
        ("right", [0.5, 1], [-1, 0, 2]),
        ("both", [0, 0.5, np.float32(1)], [-1, 2]),
        ("neither", [0.5, math.nextafter(1, 0)], [0, 1]),
    ],
)
def test_number_of_an_interval(closed, inside, outside):
    for value in inside:
        found = validation.check_number("x", value, 0, 1, closed)
        assert found == value and type(found) is float
    for value in [*outside, math.nan, math.inf, "0.5", None, True, [0.5]]:
        with pytest.raises(ValueError, match="x must be a finite number"):
            validation.check_number("x", value, 0, 1, closed)


def test_count():
    for value in (2, np.int32(2), np.uint8(2)):
        assert validation.check_count("n", value, least=1, most=2) == 2
    wrong = [0, 3, 1.0, True, np.True_, "1", None, np.array([1, 2])]
    for value in wrong:
        with pytest.raises(ValueError, match="n must be an integer from 1 to"):
            validation.check_count("n", value, least=1, most=2)


X = np.ones((3, 2), "float32")
MASK = [[True, False], [False, False], [False, False]]


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (X[:, 0], "must have a row for each example"),
        (X[:0], "at least one"),
        (X.astype(str), "real numbers. Received: dtype=<U"),
        (X * np.nan, "finite, but 6 of its values"),
        (np.ma.masked_array(X, MASK), "1 masked of 6"),
        (X[:, :1], "x and y must hold examples of the same shape"),
    ],
)
def test_images(x, message):
    with pytest.raises(ValueError, match=message):
        validation.check_images("x", x, ("y", X))
    validation.check_images("x", X[:1], ("y", X))


def test_a_mapped_file_is_not_in_memory_and_yet_checked(tmp_path):
    np.save(tmp_path / "x.npy", X * np.inf)
    x = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert validation.is_in_memory(X[1:]) and not validation.is_in_memory(x[1:])
    validation.check_images("x", x)
    with pytest.raises(ValueError, match="x must be finite"):
        validation.check_array("x", x)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "y is missing"),
        ([0, 1], r"shape=\(2,\)"),
        (np.eye(3, dtype=int), "argmax"),
        ([0.0, 1.0, 2.0], "np.unique"),
        ([0, None, float("nan")], "leave out the examples"),
        ([-1, 0, 7], "Leave out.*give the model 8 outputs"),
    ],
)
def test_labels(y, message):
    with pytest.raises(ValueError, match=message):
        validation.check_labels("y", y, 3, 3)
