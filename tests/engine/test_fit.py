"""How `fit` and `predict` are called on the backend in use."""

from itertools import repeat

import keras
import numpy as np
import pytest
from keras import layers
from stacks import sequential

from gar_keras.engine.fit import (
    StopWhenWorse,
    compile_options,
    early_stopping,
    largest_divisor,
    predict,
)

BACKEND = keras.backend.backend()


@pytest.mark.parametrize(
    "number, limit, expected",
    [(536, 100, 67), (2000, 100, 100), (3, 100, 3), (7, 5, 1), (1, 1, 1)]
    + [(12, 5, 4)],
)
def test_largest_divisor(number, limit, expected):
    assert largest_divisor(number, limit) == expected


def test_steps_in_one_call_divide_the_epoch():
    options = compile_options(536)
    if BACKEND == "tensorflow":
        assert options["steps_per_execution"] == 67
    else:
        assert options == {"steps_per_execution": 1}


# The numbers of errors in each epoch, and the epoch that is the last.
ENDS = {
    "worse": ([5, 2, *repeat(4, 9)], 5),
    "as good again": ([2, 4, 4, 2, *repeat(4, 9)], 7),
    "nearly": ([2, 4, 4, 3, *repeat(4, 9)], 7),
    "falls late": ([3, 3, 3, 1, *repeat(3, 9)], 7),
    "never back": ([0, *repeat(2, 9)], 4),
    "by one example": ([0, *repeat(1, 9)], None),
    "all alike": ([0] * 9, None),
    "falls": (range(20, 11, -1), None),
}


@pytest.mark.parametrize("wrong, last", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("m", [20, 49])
def test_training_ends_after_three_worse_epochs_in_a_row(wrong, last, m):
    stop = StopWhenWorse(patience=3, num_validation=m)
    stop.set_model(keras.Model())
    errors = [number / m for number in wrong]
    # It is for any number of trainings.
    for _ in range(2):
        stop.model.stop_training = False
        stop.on_train_begin()
        for epoch, error in enumerate(errors, start=1):
            stop.on_epoch_end(epoch - 1, {"val_error": error})
            assert stop.model.stop_training == (epoch == last)
            if epoch == last:
                break


@pytest.mark.parametrize(
    "steps, most, patience",
    [(1, 4000, 500), (6, 667, 84), (20, 200, 25), (50, 200, 10)]
    + [(536, 200, 10)],
)
def test_epochs_auto_waits_for_epochs_or_for_steps(steps, most, patience):
    epochs, (stop,) = early_stopping("auto", ([], np.zeros(30)), steps)
    assert (epochs, stop.patience, stop.num_validation) == (most, patience, 30)
    assert early_stopping(7, None, steps) == (7, [])


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
