"""Columns and channels of several units: what the network makes of them."""

import math

import keras
import numpy as np
import pytest
from keras import layers
from said import said
from stacks import sequential

from gar_keras.engine import hardware
from gar_keras.engine.data import warn_if_unscaled
from gar_keras.estimator.examples import as_input
from gar_keras.estimator.networks import default_network

rng = np.random.default_rng(0)
IMAGES = rng.uniform(size=(50, 6, 6, 3)).astype("float32")
# Brighter in the middle, with a margin of zeros.
DIGITS = np.zeros((50, 9, 9, 1), "float32")
DIGITS[:, 2:7, 2:7] = rng.uniform(size=(50, 5, 5, 1)) ** 3
DIGITS[0, 0, 1] = 1e-3
WINDOWS = rng.normal(size=(50, 9, 5, 1)).astype("float32")


def scaled(x):
    """Examples behind the preprocessing, and the layer."""
    layer = default_network(x, 2).layers[1]
    assert isinstance(layer, layers.Rescaling)
    again = layers.Rescaling.from_config(layer.get_config())
    found = keras.ops.convert_to_numpy(again(x))
    np.testing.assert_array_equal(found, keras.ops.convert_to_numpy(layer(x)))
    return found, layer


# Images, and the axis along which each part fills its range.
OF_SEVERAL_UNITS = {
    "metres": (IMAGES * [1, 1, 3000], 3),
    "a tiny one": (IMAGES * [1e-5, 1, 1], 3),
    "far from 0": (IMAGES + [0, 0, 300], 3),
    "a constant one": (IMAGES * [1, 0, 1] + [0, 7, 0], 3),
    "whole numbers": (np.floor(IMAGES * [9, 9, 9000]), 3),
    "a series": (WINDOWS * np.array([1, 1, 500, 1, 1])[:, None], 2),
}
# And those of one, by the number that they are divided by.
OF_ONE_UNIT = {
    "uint8": ((255 * IMAGES).astype("uint8"), 255),
    "whole numbers to 255": (np.floor(255.9 * IMAGES * [1, 0.1, 1]), 255),
    "a narrow range": (np.uint8([10, 140] * 18).reshape(1, 6, 6, 1), 255),
    "half of the range": (np.uint8([0, 128] * 18).reshape(1, 6, 6, 1), 255),
    "digits": (DIGITS, DIGITS.max()),
    "a series": (WINDOWS, abs(WINDOWS).max()),
}


@pytest.mark.parametrize("name", OF_SEVERAL_UNITS)
def test_each_unit_fills_its_range(name):
    x, axis = OF_SEVERAL_UNITS[name]
    x = x.astype("float32")
    found, _ = scaled(x)
    over = tuple(i for i in range(4) if i != axis)
    spans = np.ptp(found, axis=over)
    is_constant = np.ptp(x, axis=over) == 0
    assert (spans[~is_constant] >= 0.5).all() and (
        spans[is_constant] == 0
    ).all()
    assert abs(found).max() <= 1 + 1e-3


@pytest.mark.parametrize("name", OF_ONE_UNIT)
def test_one_unit_is_one_number(name):
    x, largest = OF_ONE_UNIT[name]
    x = x if x.dtype == "uint8" else x.astype("float32")
    _, layer = scaled(x)
    assert isinstance(layer.scale, float) and layer.offset == 0
    assert layer.scale == 1 / float(largest)


@pytest.mark.parametrize("shape", [(6, 6, 64), (30, 64)])
def test_a_channel_among_many_is_seen(shape):
    x = np.random.default_rng(0).normal(size=(20, *shape)).astype("float32")
    stack = layers.Flatten(), layers.Dense(2)
    model = sequential(*stack, shape=shape)
    assert not said(lambda: warn_if_unscaled(model, x))
    x[..., 5] *= 50
    (text,) = said(lambda: warn_if_unscaled(model, x))
    assert "numbers up to" in text


def test_default_network_of_images_is_that_of_the_paper(monkeypatch):
    monkeypatch.setattr(hardware, "fast_precision", lambda: "bfloat16")
    model = default_network(np.zeros((4, 6, 6, 1), "uint8"), 5)
    assert (model.name, model.output_shape) == ("cnn6", (None, 5))
    assert model.layers[2].compute_dtype == "bfloat16"
    assert model.layers[-1].compute_dtype == "float32"


def masks(share, others=(0, 1), outlier=255, dtype="uint8"):
    """Images of two values, and another in a share of the pixels."""
    pixels = np.tile(np.array(others, dtype), 40 * 18)
    pixels[: math.ceil(share * pixels.size)] = outlier
    return pixels.reshape(40, 6, 6, 1)


OUTLIERS = {
    "one pixel": (masks(0.0005), True),
    "some": (masks(0.005), True),
    "float": (masks(0.0005, outlier=1e6, dtype="float32"), True),
    "none": (masks(0), False),
    # A few lines on a background.
    "drawing": (masks(0.005, others=(0, 0)), False),
    "photo": (masks(0.005, others=(0, 100)), False),
}


@pytest.mark.parametrize("x, is_told", OUTLIERS.values(), ids=OUTLIERS)
def test_a_few_pixels_that_make_the_range_are_warned_of(x, is_told):
    told = said(lambda: default_network(x, 2))
    assert len(told) == is_told
    assert all("pixels are from 0 to 1" in text for text in told)


@pytest.mark.parametrize(
    "x",
    [
        np.uint8([0, 1]), np.uint8([0, 16]), np.uint8([0, 120]),
        np.uint8([200, 255]), np.bool_([0, 1]), np.int64([0, 1]),
        np.float32([20, 21]),
    ],
    ids=str,
)  # fmt: skip
def test_images_of_a_narrow_range_fill_it(x):
    pixels = np.tile(x, 40 * 18).reshape(40, 6, 6)
    rows = as_input(pixels)
    scaled = np.array(default_network(rows, 2).layers[1](rows))
    assert np.ptp(scaled) >= 1
    assert np.abs(scaled).max() == pytest.approx(1)
    # What is seen of a part of the images changes nothing.
    part = as_input(pixels[:1, :, ::2])
    np.testing.assert_array_equal(part, rows[:1, :, ::2], strict=True)


@pytest.mark.parametrize(
    ("shape", "is_told"),
    [((13, 32, 32), True), ((32, 32, 13), False), ((16, 16, 16), False)],
)
def test_images_with_their_channels_at_the_other_end_are_told(shape, is_told):
    x = np.zeros((2, *shape), "uint8")
    x[0] = 255
    texts = said(lambda: default_network(x, 2))
    assert any("at the other end" in text for text in texts) == is_told
