"""Layers that move images."""

import hypothesis
import keras
import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import ndimage

from gar_keras import (
    ExtendedGAR,
    GARClassifier,
    RandomAffine,
    RandomShift,
    cnn6,
    cnn9,
    pretrain,
    random_augmentation,
    regularize,
)

ONE = dict(epochs=1, verbose=0)


def test_images_are_shifted_as_a_whole():
    image = np.arange(25, dtype="uint8").reshape(1, 5, 5, 1)
    x = np.repeat(image, 200, axis=0)
    shifted = np.array(RandomShift(1, seed=0)(x, training=True))
    assert shifted.dtype == np.uint8
    edge = np.pad(image[0, ..., 0], 1, mode="edge")
    allowed = {
        edge[i : i + 5, j : j + 5].tobytes() for i in range(3) for j in range(3)
    }
    seen = {y.tobytes() for y in shifted[..., 0]}
    assert seen == allowed


def test_images_are_mapped_about_their_centre():
    x = np.random.default_rng(0).random((3, 7, 9, 2)).astype("float32")
    layer = RandomAffine(0.3, seed=0)
    moved = np.array(layer(x, training=True))
    drawn = np.array(RandomAffine(0.3, seed=0)._transforms(x), "float64")
    assert len(np.unique(drawn[:, [0, 1, 3, 4]])) == 12
    center = np.array([3.0, 4.0])
    for image, result, row in zip(x, moved, drawn, strict=True):
        # Rows and columns, where Keras has x and y.
        matrix = np.array([[row[4], row[3]], [row[1], row[0]]])
        for channel in range(2):
            expected = ndimage.affine_transform(
                image[..., channel].astype("float64"),
                matrix,
                offset=center - matrix @ center,
                order=1,
                mode="nearest",
            )
            np.testing.assert_allclose(
                result[..., channel], expected, atol=1e-5
            )


@hypothesis.settings(deadline=None, max_examples=20)
@hypothesis.given(strength=st.floats(0, 0.5), seed=st.integers(0, 99))
def test_an_affine_map_keeps_range_and_type(strength, seed):
    rng = np.random.default_rng(seed)
    x = rng.integers(40, 256, (2, 6, 5, 1), "uint8")
    moved = np.array(RandomAffine(strength, seed)(x, training=True))
    assert moved.dtype == np.uint8
    assert moved.min() >= x.min()
    assert moved.max() <= x.max()
    if not strength:
        assert (moved == x).all()


@pytest.fixture
def channels_first():
    keras.config.set_image_data_format("channels_first")
    yield
    keras.config.set_image_data_format("channels_last")


@pytest.mark.parametrize("kind, size", [(RandomShift, 2), (RandomAffine, 0.2)])
def test_channels_that_come_first_are_not_moved(kind, size, channels_first):
    x = np.random.default_rng(0).random((4, 3, 8, 12)).astype("float32")
    last = kind(size, seed=1, data_format="channels_last")
    expected = np.array(last(np.moveaxis(x, 1, -1), training=True))
    moved = np.array(kind(size, seed=1)(x, training=True))
    np.testing.assert_array_equal(np.moveaxis(moved, 1, -1), expected)
    assert (moved != x).any()
    config = last.get_config()
    assert config.pop("data_format") == "channels_last"
    # Of a model that was saved before there was a format.
    assert kind.from_config(config).data_format == "channels_first"


@pytest.mark.slow
def test_channels_may_come_first_in_both_stages(channels_first):
    x = np.random.default_rng(0).random((20, 3, 8, 12)).astype("float32")
    y = np.arange(20) % 2
    model = cnn6(x.shape[1:], 2)
    pretrain(model, x, y, augmentation=random_augmentation(1, 0.1), **ONE)
    method = ExtendedGAR(supervised=1.0, shift=1, affine=0.1, consistency=1.0)
    regularize(model, x, x, y_labeled=y, method=method, **ONE)
    few = np.where(np.arange(20) < 10, y, -1)
    for images, shape in [(x, (3, 8, 12)), (x[:, 0], (1, 8, 12))]:
        fitted = GARClassifier(pretrain_epochs=1, epochs=1).fit(images, few)
        assert fitted.model_.input_shape == (None, *shape)


def test_images_are_moved_in_the_format_of_the_models_layers():
    image = np.arange(24, dtype="float32").reshape(1, 4, 2, 3)
    inputs = keras.Input((4, 2, 3))
    x = keras.layers.Conv2D(2, 1, data_format="channels_first")(inputs)
    model = keras.Model(inputs, keras.layers.Dense(2)(x))
    (layer,) = ExtendedGAR(shift=1)._augmentation(model, seed=0)
    moved = np.array(layer(np.repeat(image, 20, axis=0), training=True))
    # Whole channels of 2 x 3 pixels: none of them is in another's place.
    assert set(np.unique(moved[:, 0])) <= set(range(6))


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: cnn6(), r"\(c, h, w\) of at least 4 .*\(28, 28, 1\)"),
        (lambda: cnn9((32, 32, 3)), r"at least 8 pixels.*\(32, 32, 3\)"),
        (lambda: RandomShift(1, data_format="hwc"), "data_format='hwc'"),
        (lambda: RandomShift(1, seed=-1), "seed=-1"),
        (lambda: RandomAffine(0.1, seed=50.0), "seed=50.0"),
        (lambda: random_augmentation(1, 0.0, 2**32), "seed=4294967296"),
    ],
)
def test_formats_and_seeds_that_are_none(make, message, channels_first):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    "layer", [RandomShift(2, seed=3), RandomAffine(0.2, seed=np.int64(3))]
)
def test_images_are_moved_in_training_alone_also_once_loaded(layer, tmp_path):
    x = np.random.default_rng(0).random((4, 6, 6, 2)).astype("float32")
    assert (np.array(layer(x)) == x).all()
    assert (np.array(layer(x, training=False)) == x).all()
    inputs = keras.Input((6, 6, 2))
    keras.Model(inputs, layer(inputs)).save(tmp_path / "layer.keras")
    loaded = keras.models.load_model(tmp_path / "layer.keras").layers[-1]
    assert loaded.get_config() == layer.get_config()
    assert (np.array(loaded(x, training=True)) != x).any()
