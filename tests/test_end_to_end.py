"""Both stages on real digits: the loss of GAR must beat its own baseline.

Run this file as a program for the test errors after both stages, with the
seeds 0 to 4.
"""

import keras
import numpy as np
import pytest
from keras import layers

import gar_keras
from gar_keras.datasets import load_mnist, make_split

pytestmark = pytest.mark.slow

SEED = 0
UNLABELED = 10000

# Of the baseline's errors, at most. All five seeds left clearly less.
SHARE_LEFT = 0.8


def small_cnn(num_classes):
    return keras.Sequential(
        [
            keras.Input((28, 28, 1), dtype="uint8"),
            layers.Rescaling(1 / 255),
            layers.Conv2D(16, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Dropout(0.2),
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Dropout(0.3),
            layers.Flatten(),
            layers.Dense(128, activation="relu"),
            layers.Dropout(0.5),
            layers.Dense(num_classes),
        ]
    )


def errors_of_both_stages(seed):
    """Test errors after stage 1 and at stage 2's validation-chosen epoch."""
    data = load_mnist()
    split = make_split(data.y_train, num_labeled=100, seed=seed)
    x_labeled = data.x_train[split.labeled]
    y_labeled = data.y_train[split.labeled]
    np.testing.assert_array_equal(np.bincount(y_labeled), [10] * 10)

    keras.utils.set_random_seed(seed)
    model = small_cnn(data.num_classes)
    gar_keras.pretrain(
        model, x_labeled, y_labeled, epochs=300, seed=seed, verbose=0
    )
    baseline = gar_keras.error_rate(model, data.x_test, data.y_test)
    gar_keras.regularize(
        model,
        x_labeled,
        data.x_train[:UNLABELED],
        epochs=20,
        validation_data=(
            data.x_train[split.validation], data.y_train[split.validation]
        ),
        seed=seed,
        verbose=0,
    )  # fmt: skip
    return baseline, gar_keras.error_rate(model, data.x_test, data.y_test)


def test_stage_2_beats_stage_1():
    baseline, error = errors_of_both_stages(SEED)
    # A baseline that learned nothing, or everything, would prove nothing.
    assert 0.1 < baseline < 0.3
    assert error < SHARE_LEFT * baseline


if __name__ == "__main__":
    for seed in range(5):
        baseline, error = errors_of_both_stages(seed)
        print(f"{100 * baseline:.2f} -> {100 * error:.2f}", flush=True)
