"""Columns and channels of several units: what the network makes of them."""

import keras
import numpy as np
import pytest
from keras import layers
from said import said
from stacks import sequential

from gar_keras.engine.data import warn_if_unscaled
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
    "signed": (IMAGES * [1, -5000, 1], 3),
    "a constant one": (IMAGES * [1, 0, 1] + [0, 7, 0], 3),
    "whole numbers": (np.floor(IMAGES * [9, 9, 9000]), 3),
    "a series": (WINDOWS * np.array([1, 1, 500, 1, 1])[:, None], 2),
    "a series with a tiny one": (
        WINDOWS * np.array([1, 1, 1, 1e-4, 1])[:, None],
        2,
    ),
    "a series with one far off": (
        WINDOWS + np.array([0, 0, 0, -600, 0])[:, None],
        2,
    ),
}
# And those of one, by the number that they are divided by.
OF_ONE_UNIT = {
    "uint8": ((255 * IMAGES).astype("uint8"), 255),
    "whole numbers to 255": (np.floor(255.9 * IMAGES * [1, 0.1, 1]), 255),
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
    x = rng.normal(size=(20, *shape)).astype("float32")
    stack = layers.Flatten(), layers.Dense(2)
    model = sequential(*stack, shape=shape)
    assert not said(lambda: warn_if_unscaled(model, x))
    x[..., 5] *= 50
    (text,) = said(lambda: warn_if_unscaled(model, x))
    assert "numbers up to" in text
