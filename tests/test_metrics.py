"""The accuracy over the examples that have a label."""

import keras
from keras import layers
import numpy as np
import pytest

from gar_keras.metrics import SparseCategoricalAccuracy
from gar_keras.metrics import SparseCategoricalCrossentropy

LOGITS = np.array([[2, 1, 0], [0, 2, 1], [1, 0, 2], [5, 4, 3]], "float32")


def accuracy(y, logits=LOGITS, weights=None, **options):
    metric = SparseCategoricalAccuracy(**options)
    metric.update_state(np.array(y), logits, sample_weight=weights)
    return float(metric.result())


@pytest.mark.parametrize(
    "y, expected",
    [
        ([0, 1, 2, 0], 1.0),
        ([0, 1, 0, 1], 0.5),
        ([0, -1, 0, -1], 0.5),
        ([-1, 1, -1, -1], 1.0),
        ([-1, -1, -1, -1], 0.0),
    ],
)
@pytest.mark.parametrize("column", [True, False])
@pytest.mark.parametrize("dtype", ["int64", "int32", "float32"])
def test_accuracy_of_what_has_a_label(y, expected, column, dtype):
    y = np.array(y, dtype)
    assert accuracy(y[:, None] if column else y) == expected


def test_another_class_is_ignored():
    assert accuracy([2, 2, 2, 0], ignore_class=2) == 1.0
    assert accuracy([-1, 0, 2, 2], ignore_class=2) == 0.0


@pytest.mark.parametrize("column", [True, False])
def test_sample_weights(column):
    weights = np.array([3.0, 1.0, 1.0, 7.0])
    if column:
        weights = weights[:, None]
    # Right with 3, wrong with 1 and with 1, and one without a label.
    assert accuracy([0, 0, 0, -1], weights=weights) == pytest.approx(3 / 5)


def test_label_of_each_position():
    y = np.array([[0, -1], [0, 2]])
    logits = LOGITS.reshape(2, 2, 3)
    # Of the three labels the first alone is right.
    assert accuracy(y, logits) == pytest.approx(1 / 3)
    # One weight for each of the two examples.
    assert accuracy(y, logits, np.array([2.0, 1.0])) == pytest.approx(2 / 4)


@pytest.mark.parametrize("eager", [True, False])
def test_fit_and_evaluate_count_over_all_batches(eager):
    model = keras.Sequential(
        [keras.Input((3,)), layers.Dense(3, kernel_initializer="identity")]
    )
    model.compile(
        keras.optimizers.SGD(0.0),
        keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, ignore_class=-1
        ),
        metrics=[SparseCategoricalAccuracy()],
        run_eagerly=eager,
    )
    x, y = np.concatenate([LOGITS] * 2), np.array([0, 1, 0, -1] + [-1] * 4)
    history = model.fit(x, y, batch_size=2, validation_data=(x, y), verbose=0)
    # The batches have 2, 1, 0 and 0 labels; not a mean of means.
    assert history.history["accuracy"] == pytest.approx([2 / 3])
    assert history.history["val_accuracy"] == pytest.approx([2 / 3])


def crossentropy(y, logits=LOGITS, weights=None):
    metric = SparseCategoricalCrossentropy()
    for part in np.array_split(np.arange(len(y)), 2):
        metric.update_state(
            np.array(y)[part],
            logits[part],
            sample_weight=None if weights is None else weights[part],
        )
    return float(metric.result())


def test_crossentropy_is_the_mean_over_what_has_a_label():
    # Of logits 2, 1, 0 and 5, 4, 3 the softmax is the same.
    errors = np.log(1 + np.exp(-1) + np.exp(-2)) + np.arange(3)
    assert crossentropy([0, -1, -1, 2]) == pytest.approx(
        (errors[0] + errors[2]) / 2
    )
    assert crossentropy([-1, -1, -1, 1]) == pytest.approx(errors[1])
    weights = np.array([3.0, 9.0, 9.0, 1.0])
    assert crossentropy([0, -1, -1, 2], weights=weights) == pytest.approx(
        (3 * errors[0] + errors[2]) / 4
    )
    assert crossentropy([-1] * 4) == 0


@pytest.mark.parametrize(
    "kind", [SparseCategoricalAccuracy, SparseCategoricalCrossentropy]
)
def test_config_round_trip(kind):
    metric = kind(ignore_class=7, name="mine")
    config = keras.metrics.serialize(metric)
    again = keras.metrics.deserialize(config)
    assert type(again) is kind
    assert again.get_config() == metric.get_config()
    assert (again.ignore_class, again.name) == (7, "mine")
