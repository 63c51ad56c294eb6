"""One `fit` on labelled and unlabelled examples, by Keras' own means.

What Keras does with `ignore_class` is tested here too: docs/as-in-keras.md
builds on it.
"""

import keras
import numpy as np
import oracle
import pytest
from keras import layers
from said import said

from gar_keras import (
    GARAfter,
    GraphActivityRegularization,
    SparseCategoricalAccuracy,
)
from gar_keras.callbacks import WarnOnCollapse

COEFFICIENTS = {"affinity": 2.0, "balance": 0.5, "frobenius": 1e-3}
RATE = 0.5

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 4)).astype("float32")
W = RNG.normal(size=(4, 3)).astype("float32")
# Of the three batches of 4 one has two labels, one has three and one has none.
Y = np.array([0, -1, 2, -1] + [1, 1, -1, 0] + [-1] * 4)
BATCHES = [slice(0, 4), slice(4, 8), slice(8, 12)]


def linear(gar=True, rate=RATE):
    """A model of the weights `W`, compiled for one `fit`."""
    inputs = keras.Input((4,))
    logits = layers.Dense(3, use_bias=False)(inputs)
    if gar:
        logits = GraphActivityRegularization(**COEFFICIENTS)(logits)
    model = keras.Model(inputs, logits)
    model.set_weights([W])
    model.compile(
        keras.optimizers.SGD(rate),
        keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, ignore_class=-1
        ),
        metrics=[SparseCategoricalAccuracy()],
    )
    return model


def fit(model, x=X, y=Y, epochs=1, callbacks=(), **options):
    return model.fit(
        x, y, batch_size=4, epochs=epochs, shuffle=False, verbose=0,
        callbacks=list(callbacks), **options,
    ).history  # fmt: skip


def log_losses(weights, x, y):
    """The cross-entropy of each labelled example, and `p - y` of them."""
    x, y = x[y >= 0].astype("float64"), y[y >= 0]
    p = oracle.softmax(x @ weights)
    return -np.log(p[np.arange(len(y)), y]), p - np.eye(3)[y], x


def after_steps_on_labels():
    """The weights after SGD on the mean over the labelled of each batch."""
    weights = W.astype("float64")
    for batch in BATCHES:
        errors, slope, x = log_losses(weights, X[batch], Y[batch])
        if len(errors):
            weights = weights - RATE * x.T @ slope / len(errors)
    return weights


@pytest.mark.slow
def test_history_from_the_switch_on_is_that_of_both_losses():
    model = linear(rate=0.0)
    options = {"callbacks": [GARAfter(epochs=2)], "validation_data": (X, Y)}
    history = fit(model, epochs=3, **options)
    U = [oracle.loss(X[batch] @ W, **COEFFICIENTS) for batch in BATCHES]
    means = [
        np.sum(log_losses(W, X[batch], Y[batch])[0])
        / max(np.sum(Y[batch] >= 0), 1)
        for batch in BATCHES
    ]
    assert history["regularization"] == pytest.approx(
        [0, 0, np.mean(U)], rel=1e-5
    )
    # A batch without any label counts with 0 in what Keras reports.
    labels = np.mean(means)
    assert history["loss"] == pytest.approx(
        [labels, labels, labels + np.mean(U)], rel=1e-5
    )
    # Over all batches: it is not a mean of their means.
    right = np.mean((X @ W).argmax(axis=1)[Y >= 0] == Y[Y >= 0])
    assert 0 < right < 1
    for name in ("accuracy", "val_accuracy"):
        assert history[name] == pytest.approx([right] * 3, rel=1e-5)


@pytest.mark.slow
def test_epochs_without_gar_count_from_the_first():
    callbacks = [GARAfter(epochs=2)]
    history = fit(linear(), epochs=4, initial_epoch=1, callbacks=callbacks)
    on = [value > 0 for value in history["regularization"]]
    assert on == [False, True, True]


class EvaluateInEpochs(keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None):
        if batch == 1:
            self.model.evaluate(X, Y, verbose=0)


@pytest.mark.slow
def test_without_gar_a_step_is_on_the_mean_over_the_labelled():
    """Also where an evaluation stands in between."""
    model = linear()
    layer = model.layers[-1]
    layer.set_coefficients(affinity=7.0)
    callbacks = [EvaluateInEpochs(), GARAfter(epochs=1), WarnOnCollapse()]
    options = {"validation_data": (X, Y), "callbacks": callbacks}
    (text,) = said(lambda: fit(model, **options))
    assert text.startswith("GAR never began:")
    assert "ended after epoch 1. " in text and "epochs=1" in text
    for name in ("regularization", "val_regularization"):
        assert model.history.history[name] == [0]
    # At the end it is on, as the layer was made.
    assert layer.coefficients == pytest.approx(COEFFICIENTS)
    np.testing.assert_allclose(
        model.get_weights()[0], after_steps_on_labels(), rtol=1e-5, atol=1e-6
    )


@pytest.mark.slow
@pytest.mark.parametrize("without", ["loss", "labels"])
def test_epochs_that_train_nothing_are_told(without):
    model = linear()
    if without == "loss":
        # Compiled anew, Keras would keep the loss.
        model = keras.Model(model.inputs, model.outputs)
        model.compile("sgd", loss=None)
    y = None if without == "loss" else np.full(12, -1)
    callbacks = [GARAfter(epochs=1)]
    (text,) = said(lambda: fit(model, y=y, epochs=2, callbacks=callbacks))
    assert "Nothing is trained before GAR begins" in text
    assert "epochs=1" in text and "take epochs=0" in text


@pytest.mark.slow
@pytest.mark.parametrize("initial_epoch", [0, 1])
def test_a_fit_from_the_first_epoch_on_begins_with_even_shares(initial_epoch):
    model = linear(gar=False)
    layer = GraphActivityRegularization(balance_memory=0.9)
    model = keras.Model(model.input, layer(model.output))
    model.compile(keras.optimizers.SGD(0.0), loss=None)
    options = {"epochs": 2, "initial_epoch": initial_epoch}
    found = [
        fit(model, y=None, callbacks=[GARAfter(epochs=0)], **options)
        for _ in range(2)
    ]
    again = found[0]["balance"] == found[1]["balance"]
    assert again == (initial_epoch == 0)


@pytest.mark.slow
def test_term_that_was_left_out_stays_out():
    model = linear()
    layer = GraphActivityRegularization(affinity=1.0, balance=0, frobenius=0)
    model = keras.Model(model.input, layer(model.layers[-2].output))
    model.compile("sgd", loss=None)
    fit(model, y=None, callbacks=[GARAfter(epochs=0)])
    assert layer.coefficients == {"affinity": 1.0}


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="Received: epochs=-1"):
        GARAfter(-1)
    with pytest.raises(ValueError, match="no GraphActivityRegularization lay"):
        fit(linear(gar=False), callbacks=[GARAfter(epochs=1)])


SPARSE = keras.losses.SparseCategoricalCrossentropy


@pytest.mark.parametrize(
    ("loss", "received"),
    [
        (SPARSE(from_logits=True, ignore_class=-1), None),
        (SPARSE(from_logits=True), "'sparse_categorical_crossentropy'"),
        (SPARSE(ignore_class=-1, name="mine"), "'mine'"),
        (
            "sparse_categorical_crossentropy",
            "'sparse_categorical_crossentropy'",
        ),
        ("CategoricalCrossentropy", "'categorical_crossentropy'"),
        (
            keras.losses.categorical_crossentropy,
            "'categorical_crossentropy'",
        ),
        (None, None),
        ("mse", None),
        (
            ["sparse_categorical_crossentropy"],
            "'sparse_categorical_crossentropy'",
        ),
        ({"z": SPARSE(from_logits=True)}, "'sparse_categorical_crossentropy'"),
        # That of an output without GAR.
        ([SPARSE(), SPARSE(from_logits=True, ignore_class=-1)], None),
    ],
)
def test_loss_that_does_not_suit_is_warned_of(loss, received):
    model = linear()
    model.compile("sgd", loss)
    callback = GARAfter(epochs=1)
    callback.set_model(model)
    shown = said(callback.on_train_begin)
    assert [f"loss={received}." in text for text in shown] == (
        [] if received is None else [True]
    )


@pytest.mark.parametrize(
    ("loss", "is_right"),
    [
        (SPARSE(ignore_class=-1), True),
        ("categorical_crossentropy", True),
        (SPARSE(), False),
        ("sparse_categorical_crossentropy", False),
    ],
)
def test_in_front_of_a_softmax_gar_has_the_logits(loss, is_right):
    model = linear()
    model = keras.Model(model.input, layers.Softmax()(model.output))
    model.compile("sgd", loss)
    callback = GARAfter(epochs=1)
    callback.set_model(model)
    assert (said(callback.on_train_begin) == []) == is_right


def test_a_softmax_beside_gar_is_not_behind_it():
    model = linear()
    beside = layers.Dense(3, activation="softmax")(model.input)
    model = keras.Model(model.input, [model.output, beside])
    model.compile("sgd", [SPARSE(ignore_class=-1), SPARSE(ignore_class=-1)])
    callback = GARAfter(epochs=1)
    callback.set_model(model)
    (text,) = said(callback.on_train_begin)
    assert "GAR needs logits" in text


@pytest.mark.slow
@pytest.mark.parametrize("waits", [True, False])
def test_no_warning_of_lost_classes_before_gar_is_on(waits):
    # All rows to one output, from the start.
    model = linear(rate=0.0)
    model.set_weights([np.ones((4, 1)) * [3.0, -1.0, -1.0]])
    callbacks = [GARAfter(epochs=2 if waits else 0), WarnOnCollapse()]
    x, y = np.tile(np.abs(X), (20, 1)), np.tile(Y, 20)
    shown = said(
        lambda: model.fit(x, y, epochs=2, verbose=0, callbacks=callbacks)
    )
    expected = "GAR never began" if waits else "Stage 2 is without classes 1, 2"
    assert [text.split(":")[0] for text in shown] == [expected]
