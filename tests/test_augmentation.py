"""The layer that moves images."""

import hypothesis
import keras
import numpy as np
import pytest
from hypothesis import strategies as st
from keras import layers
from scipy import ndimage
from stacks import sequential

from gar_keras import (
    GARClassifier,
    RandomAffine,
    cnn6,
    cnn9,
    pretrain,
    regularize,
)

ONE = dict(epochs=1, verbose=0)


def test_without_a_strength_images_are_shifted_as_a_whole():
    image = np.arange(25, dtype="uint8").reshape(1, 5, 5, 1)
    x = np.repeat(image, 200, axis=0)
    shifted = np.array(RandomAffine(0.0, shift=1, seed=0)(x, training=True))
    assert shifted.dtype == np.uint8
    edge = np.pad(image[0, ..., 0], 1, mode="edge")
    allowed = {
        edge[i : i + 5, j : j + 5].tobytes() for i in range(3) for j in range(3)
    }
    seen = {y.tobytes() for y in shifted[..., 0]}
    assert seen == allowed


@pytest.mark.parametrize("shift", [0, 2])
def test_images_are_mapped_about_their_centre(shift):
    x = np.random.default_rng(0).random((3, 7, 9, 2)).astype("float32")
    layer = RandomAffine(0.3, shift, seed=0)
    moved = np.array(layer(x, training=True))
    drawn = np.array(RandomAffine(0.3, shift, seed=0)._transforms(x), "float64")
    entries = drawn[:, [0, 1, 3, 4]] - [1, 0, 0, 1]
    assert len(np.unique(entries)) == 12
    assert 0.15 < np.abs(entries).max() < 0.3 + 1e-6
    center = np.array([3.0, 4.0])
    moves = []
    for image, result, row in zip(x, moved, drawn, strict=True):
        # Rows and columns, where Keras has x and y.
        matrix = np.array([[row[4], row[3]], [row[1], row[0]]])
        t = row[[5, 2]] + matrix @ center - center
        moves += t.tolist()
        for channel in range(2):
            expected = ndimage.affine_transform(
                image[..., channel].astype("float64"),
                matrix,
                offset=center + t - matrix @ center,
                order=1,
                mode="nearest",
            )
            np.testing.assert_allclose(
                result[..., channel], expected, atol=1e-5
            )
    np.testing.assert_allclose(moves, np.round(moves), atol=1e-5)
    assert np.abs(moves).max() < shift + 1e-5
    assert np.any(np.abs(moves) > 0.5) == (shift > 0)


@hypothesis.settings(deadline=None, max_examples=20)
@hypothesis.given(
    strength=st.floats(0, 0.5), shift=st.integers(0, 2), seed=st.integers(0, 99)
)
def test_an_affine_map_keeps_range_and_type(strength, shift, seed):
    rng = np.random.default_rng(seed)
    x = rng.integers(40, 256, (2, 6, 5, 1), "uint8")
    moved = np.array(RandomAffine(strength, shift, seed)(x, training=True))
    assert moved.dtype == np.uint8
    assert moved.min() >= x.min()
    assert moved.max() <= x.max()
    if not strength and not shift:
        assert (moved == x).all()


def test_the_size_of_images_may_be_known_late():
    x = np.random.default_rng(0).random((4, 8, 12, 1)).astype("float32")
    moved = []
    for shape in [(8, 12, 1), (None, None, 1)]:
        layer = RandomAffine(0.2, 2, seed=1)
        model = keras.Sequential([keras.Input(shape), layer])
        moved.append(model(x, training=True))
    np.testing.assert_array_equal(*map(np.array, moved))


@pytest.fixture
def channels_first():
    keras.config.set_image_data_format("channels_first")
    yield
    keras.config.set_image_data_format("channels_last")


def test_channels_that_come_first_are_not_moved(channels_first):
    x = np.random.default_rng(0).random((4, 3, 8, 12)).astype("float32")
    last = RandomAffine(0.2, 2, seed=1, data_format="channels_last")
    expected = np.array(last(np.moveaxis(x, 1, -1), training=True))
    moved = np.array(RandomAffine(0.2, 2, seed=1)(x, training=True))
    np.testing.assert_array_equal(np.moveaxis(moved, 1, -1), expected)
    assert (moved != x).any()


@pytest.mark.slow
def test_channels_may_come_first_in_both_stages(channels_first):
    x = np.random.default_rng(0).random((20, 3, 8, 12)).astype("float32")
    y = np.arange(20) % 2
    few = np.where(np.arange(20) < 10, y, -1)
    for images, shape in [(x, (3, 8, 12)), (x[:, 0], (1, 8, 12))]:
        fitted = GARClassifier(pretrain_epochs=1, epochs=1).fit(images, few)
        assert fitted.model_.input_shape == (None, *shape)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: cnn6(), r"\(c, h, w\) of at least 4 .*\(28, 28, 1\)"),
        (lambda: cnn9((32, 32, 3)), r"at least 8 pixels.*\(32, 32, 3\)"),
        (lambda: RandomAffine(0.1, data_format="hwc"), "data_format='hwc'"),
        (lambda: RandomAffine(0.1, seed=2**32), "seed=4294967296"),
        (lambda: RandomAffine(-0.1), "strength=-0.1"),
        (lambda: RandomAffine(0.1, shift=0.5), "shift=0.5"),
    ],
)
def test_formats_and_numbers_that_are_none(make, message, channels_first):
    with pytest.raises(ValueError, match=message):
        make()


def test_images_are_moved_in_training_alone_also_once_loaded(tmp_path):
    x = np.random.default_rng(0).random((4, 6, 6, 2)).astype("float32")
    layer = RandomAffine(0.2, 1, seed=np.int64(3))
    assert (np.array(layer(x)) == x).all()
    assert (np.array(layer(x, training=False)) == x).all()
    inputs = keras.Input((6, 6, 2))
    keras.Model(inputs, layer(inputs)).save(tmp_path / "layer.keras")
    loaded = keras.models.load_model(tmp_path / "layer.keras").layers[-1]
    assert loaded.get_config() == layer.get_config()
    assert (np.array(loaded(x, training=True)) != x).any()


@pytest.mark.slow
def test_in_a_model_it_moves_the_images_of_both_stages():
    x, y = np.random.default_rng(0).random((20, 8, 8, 1)), np.arange(20) % 2
    stack = RandomAffine(0.1, shift=1), layers.Flatten(), layers.Dense(2)
    model = sequential(*stack, shape=(8, 8, 1))
    state = model.layers[0].seed_generator.state
    for train in (
        lambda: pretrain(model, x, y, **ONE),
        lambda: regularize(
            model, x, x, y_labeled=y, labeled_per_batch=5, **ONE
        ),
    ):
        before = np.array(state)
        train()
        assert (np.array(state) != before).any()
