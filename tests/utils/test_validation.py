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


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        ({}, "of at least 0. R"),
        ({"closed": "neither"}, "above 0. R"),
        ({"high": 1}, "of at least 0 and below 1. R"),
        ({"low": 0.25, "high": 1, "closed": "right"}, "above 0.25 and at most"),
    ],
)
def test_message_names_the_interval(limits, text):
    with pytest.raises(ValueError, match=text):
        validation.check_number("x", math.inf, **limits)
