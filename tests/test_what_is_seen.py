"""What a model is, wherever in it that stands."""

import keras
import numpy as np
import pytest
from keras import layers
from said import said
from stacks import Subclassed, Untold, sequential

from gar_keras import (
    GARClassifier,
    attach,
    detach,
    error_rate,
    pretrain,
    regularize,
)

rng = np.random.default_rng(0)
Y = np.arange(30) % 3
X = (rng.normal(size=(30, 4)) + 4 * np.eye(4)[Y]).astype("float32")
SMALL = dict(labeled_per_batch=4, unlabeled_per_batch=20, epochs=1, verbose=0)


class Absolute(layers.Layer):
    def call(self, x):
        return abs(x)


class Attending(layers.Layer):
    def __init__(self):
        super().__init__()
        self.attention = layers.Attention(dropout=0.5)

    def call(self, x, training=None):
        twice = keras.ops.concatenate([x, x], axis=1)
        return self.attention([x, twice], training=training)


def mean_of_two():
    inputs = keras.Input((4,))
    both = [layers.Dense(3, "softmax")(inputs) for _ in range(2)]
    return keras.Model(inputs, layers.Average()(both))


PROBABILITIES = {
    "identity": lambda: sequential(
        layers.Dense(3, "softmax"), layers.Identity()
    ),
    "average": mean_of_two,
    "logarithms": lambda: sequential(
        layers.Dense(3), layers.Lambda(keras.ops.log_softmax)
    ),
    "subclassed": lambda: Untold(layers.Dense(3, "softmax"), layers.Identity()),
}
LOGITS = {
    "dense": lambda: sequential(layers.Dense(3)),
    "none negative": lambda: sequential(layers.Dense(3), Absolute()),
    "subclassed": lambda: Untold(layers.Dense(3)),
}


# Keras sees some of them, and says so in its own words.
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("door", [pretrain, regularize, attach])
def test_probabilities_are_told(door):
    def texts_of(make):
        def train():
            if door is pretrain:
                pretrain(make(), X, Y, epochs=1, verbose=0)
            elif door is regularize:
                regularize(make(), X, X, method="gar", **SMALL)
            else:
                attach(make())

        return [text for text in said(train) if "probabilities" in text]

    for name, make in PROBABILITIES.items():
        # Without a graph there is no example before the first batch.
        is_told = door is not attach or name != "subclassed"
        assert len(texts_of(make)) == is_told, name
    for name, make in LOGITS.items():
        assert not texts_of(make), name


def test_float16_is_scaled_whatever_the_global_policy(dtype_policy):
    dtype_policy("mixed_float16")
    made = sequential(layers.Dense(8), layers.Dense(3, dtype="float32"))
    dtype_policy("float32")
    own = sequential(
        layers.Dense(8, dtype="mixed_float16"),
        layers.Dropout(0.5),
        layers.Dense(3, dtype="float32"),
    )
    plain = sequential(layers.Dense(8), layers.Dense(3))

    def scales(model):
        optimizer = model.optimizer
        return isinstance(optimizer, keras.optimizers.LossScaleOptimizer)

    for model, expected in ((made, True), (own, True), (plain, False)):
        pretrain(model, X, Y, epochs=1, optimizer="adam", verbose=0)
        assert scales(model) == expected
        history = regularize(model, X, X, y_labeled=Y, **SMALL)
        assert scales(history.model) == expected
    subclassed = Subclassed(layers.Dense(3), dtype="mixed_float16")
    for model in (attach(made), detach(attach(made)), attach(subclassed)):
        model.compile("sgd", loss=None)
        assert scales(model)


@pytest.mark.parametrize(
    ("make", "is_told"),
    [
        (lambda drop: layers.TimeDistributed(drop), True),
        (lambda drop: Untold(drop), True),
        (lambda drop: layers.GRU(4, dropout=drop.rate), True),
        (lambda _: layers.LSTM(4, recurrent_dropout=0.5), True),
        (lambda _: layers.RNN(layers.GRUCell(4, dropout=0.5)), True),
        (
            lambda _: layers.RNN(
                [layers.GRUCell(4), layers.LSTMCell(4, recurrent_dropout=0.5)]
            ),
            True,
        ),
        (lambda _: Attending(), True),
        (lambda _: layers.GRU(4), False),
        (lambda _: layers.RNN([layers.GRUCell(4), layers.GRUCell(4)]), False),
        (lambda drop: sequential(drop, shape=(1, 4)), False),
        (lambda drop: drop, False),
    ],
    ids=[
        *("wrapper", "subclassed", "recurrent", "recurrent state"),
        *("cell", "cells", "attention"),
        *("none", "cells without", "model", "layer"),
    ],
)
def test_dropout_is_left_out_or_told(make, is_told):
    model = sequential(
        layers.Reshape((1, 4)),
        make(layers.Dropout(0.5)),
        layers.Flatten(),
        layers.Dense(3),
    )
    texts = said(lambda: regularize(model, X, X, method="gar", **SMALL))
    assert sum("leaves out Dropout" in text for text in texts) == is_told


class OwnFit(keras.Model):
    def fit(self, x, *args, **kwargs):
        return super().fit(x / 100, *args, **kwargs)


class OwnPredict(keras.Model):
    def predict(self, x, *args, **kwargs):
        return super().predict(x / 100, *args, **kwargs)


class OwnPredictStep(keras.Model):
    def predict_step(self, data):
        return keras.ops.softmax(super().predict_step(data))


@pytest.mark.parametrize("kind", [OwnFit, OwnPredict, OwnPredictStep])
def test_a_class_that_takes_other_examples_is_refused(kind):
    inputs = keras.Input((4,))
    model = kind(inputs, layers.Dense(3)(inputs))
    few = np.where(np.arange(30) < 9, Y, -1)
    for train in (
        lambda: GARClassifier(model).fit(X, few),
        lambda: GARClassifier(lambda *_: model).fit(X, few),
        lambda: pretrain(model, X, Y, epochs=1, verbose=0),
        lambda: regularize(model, X, X, y_labeled=Y, **SMALL),
        lambda: regularize(model, X, X, method="gar", **SMALL),
        lambda: attach(model),
    ):
        with pytest.raises(ValueError, match=f"{kind.__name__} has its own"):
            train()
    if kind is not OwnFit:
        message = f"{kind.__name__} has its own predict"
        with pytest.raises(ValueError, match=message):
            error_rate(model, X, Y)
