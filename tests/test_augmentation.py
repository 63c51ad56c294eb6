"""Layers that move images."""

import hypothesis
import keras
import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import ndimage

from gar_keras import RandomAffine, RandomShift


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


@pytest.mark.parametrize(
    "layer", [RandomShift(2, seed=3), RandomAffine(0.2, seed=3)]
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
