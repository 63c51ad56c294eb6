"""How `fit` and `predict` are called on the backend in use."""

from itertools import repeat

import keras
import numpy as np
import pytest

from gar_keras.engine.fit import (
    StopAfterBest,
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


@pytest.mark.parametrize(
    "errors, last",
    [
        ([0.3, 0.2, *repeat(0.25, 9)], 5),
        ([0.2, 0.25, 0.25, 0.2, *repeat(0.25, 9)], 7),
        ([0.2, 0.25, 0.25, 0.15, *repeat(0.2, 9)], 7),
        ([0.0, *repeat(0.05, 9)], 4),
        (repeat(0.0, 9), None),
        ([0.5 - epoch / 100 for epoch in range(9)], None),
    ],
    ids=["rises", "a tie", "falls late", "never back", "all alike", "falls"],
)
def test_training_ends_three_epochs_after_the_last_best_one(errors, last):
    stop = StopAfterBest(patience=3)
    stop.set_model(keras.Model())
    # It is for any number of trainings.
    for _ in range(2):
        stop.model.stop_training = False
        stop.on_train_begin()
        errors = [*errors]
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
    epochs, (stop,) = early_stopping("auto", ((), ()), steps)
    assert (epochs, stop.patience) == (most, patience)
    assert early_stopping(7, None, steps) == (7, [])


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
def test_predictions_are_those_of_keras(dtype):
    x = np.random.default_rng(0).integers(0, 256, (25, 6, 6, 1)).astype(dtype)
    model = keras.Sequential(
        [
            keras.Input((6, 6, 1)),
            keras.layers.Flatten(),
            keras.layers.BatchNormalization(),
            keras.layers.Dropout(0.5),
            keras.layers.Dense(3),
        ]
    )
    # The last batch has five images.
    predicted = predict(model, x, batch_size=10)
    expected = model.predict(x, batch_size=10, verbose=0)
    assert predicted.shape == (25, 3)
    np.testing.assert_array_equal(predicted, expected)
