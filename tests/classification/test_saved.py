"""Names of classes and of features in saved models."""

import keras
import numpy as np
import pytest

from gar_keras.classification import saved


@pytest.fixture
def model():
    inputs = keras.Input((2,))
    return keras.Model(inputs, keras.layers.Dense(2)(inputs))


def test_keras_loads_a_model_with_names(model, tmp_path):
    path = tmp_path / "model.keras"
    saved.save(model, path, ["cat", "Käfer"], ["width", "height"])
    assert saved.class_names(path) == ["cat", "Käfer"]
    assert saved.feature_names(path) == ["width", "height"]
    x = np.ones((3, 2), "float32")
    np.testing.assert_array_equal(keras.saving.load_model(path)(x), model(x))
    assert list(tmp_path.iterdir()) == [path]


def test_model_without_names(model, tmp_path):
    saved.save(model, tmp_path / "model.keras")
    assert saved.class_names(tmp_path / "model.keras") is None
    assert saved.feature_names(tmp_path / "model.keras") is None


def test_another_kind_of_file_is_refused(model, tmp_path):
    with pytest.raises(ValueError, match="in .keras files. Received: .*h5"):
        saved.save(model, tmp_path / "model.h5", ["a", "b"])
