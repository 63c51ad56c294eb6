"""The warning of images that no layer rescales."""

import warnings

import keras
import numpy as np
import pytest
from keras import layers, ops

from gar_keras import GARWarning, pretrain, regularize
from gar_keras.scaling import warn_if_unscaled

X = np.random.default_rng(0).integers(0, 256, (12, 8, 8, 1), "uint8")


def stack(*first, shape=(8, 8, 1)):
    last = (layers.Flatten(), layers.Dense(3, name="logits"))
    return keras.Sequential([keras.Input(shape), *first, *last])


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = layers.Dense(3)

    def call(self, x):
        return self.dense(ops.reshape(x, (-1, 64)))


def divided():
    inputs = keras.Input((8, 8, 1))
    return keras.Model(inputs, layers.Dense(3)(layers.Flatten()(inputs / 255)))


UNSCALED = {
    "dense": (stack, "logits"),
    "convolution": (
        lambda: stack(layers.ZeroPadding2D(), layers.Conv2D(2, 3, name="c")),
        "c",
    ),
    "nested": (lambda: stack(keras.Sequential([layers.Flatten()])), "logits"),
    "rescaling behind": (
        lambda: stack(layers.Conv2D(2, 3, name="c"), layers.Rescaling(0.1)),
        "c",
    ),
}
SCALED = {
    "rescaling": lambda: stack(layers.Rescaling(1 / 255)),
    "normalization": lambda: stack(layers.BatchNormalization()),
    "division": divided,
    "nested": lambda: stack(keras.Sequential([layers.Rescaling(1 / 255)])),
    "a layer that nobody knows": lambda: stack(layers.Lambda(lambda x: x)),
    "subclassed": Subclassed,
}


@pytest.mark.parametrize("make, name", UNSCALED.values(), ids=UNSCALED)
def test_pixels_that_reach_the_weights_are_warned_of(make, name):
    model = make()
    x = X.reshape(12, *model.input_shape[1:])
    with pytest.warns(GARWarning, match=f"{name}.*up to 255"):
        warn_if_unscaled(model, x)


def assert_silent(model, x):
    with warnings.catch_warnings():
        warnings.simplefilter("error", GARWarning)
        warn_if_unscaled(model, x)


@pytest.mark.parametrize("make", SCALED.values(), ids=SCALED)
def test_models_that_may_rescale_are_not_warned_of(make):
    assert_silent(make(), X)


def test_pixels_in_floats_are_warned_of():
    with pytest.warns(GARWarning, match="logits.*up to 255"):
        warn_if_unscaled(stack(), X.astype("float32"))
    model = keras.Sequential([keras.Input((64,)), layers.Dense(3)])
    assert_silent(model, X.reshape(12, 64).astype("float32"))


@pytest.mark.parametrize(
    "x", [X / np.float32(255), X % 2], ids=["from 0 to 1", "0 and 1"]
)
def test_small_numbers_are_not_warned_of(x):
    assert_silent(stack(), x)


def test_indices_of_an_embedding_are_not_warned_of():
    model = keras.Sequential(
        [keras.Input((4,)), layers.Embedding(300, 2), layers.Flatten(),
         layers.Dense(3)]
    )  # fmt: skip
    assert_silent(model, X.reshape(-1, 4))


@pytest.mark.slow
def test_both_stages_warn():
    y = np.arange(12) % 3
    with pytest.warns(GARWarning, match="up to 255"):
        pretrain(stack(), X, y, epochs=1, verbose=0)
    with pytest.warns(GARWarning, match="up to 255"):
        regularize(
            stack(), X, X, epochs=1, labeled_per_batch=2,
            unlabeled_per_batch=10, verbose=0,
        )  # fmt: skip
