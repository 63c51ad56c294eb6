"""Callbacks and data sets in Keras' order, and messages that are so."""

import keras
import numpy as np
import pytest
from blobs import blobs
from keras import layers
from said import said
from stacks import sequential

from gar_keras import pretrain, regularize

X_L, Y_L = blobs(6)
X_U, _ = blobs(50, seed=1)
X_V, Y_V = blobs(20, seed=2)
SMALL = {"labeled_per_batch": 2, "unlabeled_per_batch": 10, "verbose": 0}


def network():
    keras.utils.set_random_seed(0)
    return sequential(layers.Dense(3), shape=(2,))


class Restores(keras.callbacks.Callback):
    """As `EarlyStopping` with `restore_best_weights`, of its own choice."""

    def on_train_end(self, logs=None):
        for weight in self.model.network.weights:
            weight.assign(np.full(weight.shape, 7.0))


def test_the_weights_are_those_that_are_told():
    # A rate that makes each epoch worse than the start.
    start = network()
    start.set_weights([np.array([[0, 4, -3], [4.0, 0, -3]]), np.zeros(3)])
    model = keras.models.clone_model(start)
    model.set_weights(start.get_weights())
    texts = said(
        lambda: regularize(
            model, X_L, X_U, epochs=2, optimizer=keras.optimizers.SGD(1e3),
            method="gar", validation_data=(X_V, Y_V),
            callbacks=[Restores()], **SMALL,
        )
    )  # fmt: skip
    assert any("the model has these" in text for text in texts)
    np.testing.assert_equal(model.get_weights(), start.get_weights())
    # Without validation data it is the user's callback that restores.
    regularize(
        model, X_L, X_U, epochs=1, method="gar", callbacks=[Restores()], **SMALL
    )
    assert all((weight == 7).all() for weight in model.get_weights())


def test_a_lost_class_is_looked_for_in_the_weights_of_the_end():
    model = network()
    start = [np.array([[0, 4, -3], [4.0, 0, -3]]), np.zeros(3)]
    model.set_weights(start)
    texts = said(
        lambda: regularize(
            model, X_L, X_U, y_labeled=Y_L, epochs=1, callbacks=[Restores()],
            **SMALL,
        )
    )  # fmt: skip
    # Equal logits: all examples are of the first class.
    assert any("Stage 2 has lost classes" in text for text in texts)
    for received, expected in zip(model.get_weights(), start, strict=True):
        np.testing.assert_array_equal(received, expected.astype("float32"))


class Counted(keras.utils.PyDataset):
    """Its batches are others in each epoch."""

    def __init__(self):
        super().__init__()
        self.begun, self.ended, self.seen = 0, 0, []

    def __len__(self):
        return 5

    def on_epoch_begin(self):
        self.begun += 1

    def on_epoch_end(self):
        self.ended += 1

    def __getitem__(self, index):
        self.seen.append((self.begun, self.ended, index))
        rows = np.random.default_rng([self.begun, index]).integers(0, 50, 10)
        return X_U[rows]


@pytest.mark.parametrize("epochs", [1, 4])
def test_a_data_set_hears_of_its_epochs(epochs):
    data = Counted()
    regularize(network(), X_L, data, epochs=epochs, method="gar", **SMALL)
    assert (data.begun, data.ended) == (epochs, epochs)
    trained = [
        (begun, index) for begun, ended, index in data.seen if begun > ended
    ]
    for epoch in range(1, epochs + 1):
        assert sorted(i for begun, i in trained if begun == epoch) == [
            *range(5)
        ]


def test_a_labelled_data_set_hears_of_its_one_pass():
    class Labelled(Counted):
        def __getitem__(self, index):
            return super().__getitem__(index), np.arange(10) % 3

    data, validation = Labelled(), Labelled()
    pretrain(network(), data, epochs=2, validation_data=validation, verbose=0)
    for each in (data, validation):
        assert (each.begun, each.ended) == (1, 1)
        read = [index for begun, _, index in each.seen if begun == 1]
        assert read == [*range(5)]
