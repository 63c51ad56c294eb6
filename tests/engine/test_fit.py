"""How `fit` and `predict` are called on the backend in use."""

import keras
import numpy as np
import pytest
from keras import layers
from stacks import sequential

from gar_keras.engine.fit import (
    compile_options,
    largest_divisor,
    predict,
)

BACKEND = keras.backend.backend()


def test_steps_in_one_call_divide_the_epoch():
    for number, limit, divisor in (
        (536, 100, 67), (2000, 100, 100), (3, 100, 3), (7, 5, 1), (12, 5, 4),
    ):  # fmt: skip
        assert largest_divisor(number, limit) == divisor
    options = compile_options(sequential(layers.Dense(2)), 536)
    if BACKEND == "tensorflow":
        assert options["steps_per_execution"] == 67
    else:
        assert options == {"steps_per_execution": 1}


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
def test_predictions_are_those_of_keras(dtype):
    x = np.random.default_rng(0).integers(0, 256, (25, 6, 6, 1)).astype(dtype)
    model = sequential(
        layers.Flatten(), layers.BatchNormalization(), layers.Dropout(0.5),
        layers.Dense(3), shape=(6, 6, 1),
    )  # fmt: skip
    # The last batch has five images.
    predicted = predict(model, x, batch_size=10)
    expected = model.predict(x, batch_size=10, verbose=0)
    assert predicted.shape == (25, 3)
    np.testing.assert_array_equal(predicted, expected)
