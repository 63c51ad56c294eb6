"""What `ExtendedGAR` adds to the loss of GAR, each by hand."""

import keras
import numpy as np
import oracle
import pytest
import tiny_runs
from stacks import Subclassed, sequential

from gar_keras import (
    ExtendedGAR,
    GraphActivityRegularization,
    attach,
    random_augmentation,
    regularize,
    without_dropout,
)
from gar_keras.methods.base import Stage2

TINY = tiny_runs.TINY
DATA = tiny_runs.tiny_data()
X, Y, X_U = DATA.x_train[:12], DATA.y_train[:12], DATA.x_train


def network(seed=0):
    keras.utils.set_random_seed(seed)
    return tiny_runs.tiny_model(TINY, (6, 6, 1), 3)


def normalized():
    """A network that begins with a BatchNormalization."""
    keras.utils.set_random_seed(0)
    return sequential(
        keras.layers.Rescaling(1 / 255),
        keras.layers.Flatten(),
        keras.layers.BatchNormalization(momentum=0.5),
        keras.layers.Dense(3),
        shape=(6, 6, 1),
    )


OPTIONS = {
    "epochs": 2,
    "labeled_per_batch": 6,
    "unlabeled_per_batch": 60,
    "verbose": 0,
}


def loss_of(method, x, y):
    """The loss of one batch, and the network."""
    stage_2 = Stage2(method, without_dropout(network()), 3, 10, 0)
    logits = stage_2(x, training=True)
    loss = stage_2.compute_loss(x, y, logits)
    return float(loss), stage_2


def test_the_log_loss_is_added_to_gar():
    gar, _ = loss_of(ExtendedGAR(), X, Y)
    both, stage_2 = loss_of(ExtendedGAR(supervised=2.0), X, Y)
    logits = stage_2.network(X, training=False)
    assert gar == pytest.approx(oracle.loss(logits), rel=1e-5)
    log_loss = oracle.log_loss(logits, Y)
    assert both - gar == pytest.approx(2 * log_loss, rel=1e-5)


@pytest.mark.parametrize("moves", [{"shift": 1}, {"affine": 0.2}])
def test_consistency_is_of_two_views(moves):
    method = ExtendedGAR(
        GraphActivityRegularization(0.0, 0.0, 0.0), consistency=2.0, **moves
    )
    loss, stage_2 = loss_of(method, X, Y)
    views = []
    for seed in (0, 1):
        view = X
        for layer in random_augmentation(
            moves.get("shift", 0), moves.get("affine", 0.0), seed
        ):
            view = layer(view, training=True)
        views.append(oracle.softmax(stage_2.network(view, training=False)))
    expected = 2 * ((views[0] - views[1]) ** 2).mean()
    assert expected > 1e-6
    assert loss == pytest.approx(expected, rel=1e-4)
    # Images of one value look the same wherever they are moved.
    flat = np.full_like(X, 7)
    assert loss_of(method, flat, Y)[0] == pytest.approx(0, abs=1e-12)


def test_integers_that_are_no_images_are_refused_before_training():
    inputs = keras.Input((5,), dtype="int32")
    features = keras.layers.Embedding(4, 3)(inputs)
    logits = keras.layers.Dense(3)(keras.layers.Flatten()(features))
    model = keras.Model(inputs, logits)
    with pytest.raises(ValueError, match="takes int32"):
        ExtendedGAR(vat=1.0).check(model, np.zeros((4, 5), "int32"))


@pytest.mark.slow
def test_the_average_takes_the_statistics_of_batch_normalization():
    model = normalized()
    method = ExtendedGAR(average=0.5, supervised=1.0)
    regularize(model, X, X_U, y_labeled=Y, method=method, **OPTIONS)
    # 20 steps of momentum 0.5 have forgotten where the statistics began.
    statistics = model.layers[2].moving_mean
    expected = X_U.mean(0).ravel() / 255
    np.testing.assert_allclose(statistics, expected, atol=0.1)


@pytest.mark.slow
def test_vat_moves_the_images_by_its_radius():
    nothing = GraphActivityRegularization(0.0, 0.0, 0.0)
    once, _ = loss_of(ExtendedGAR(nothing, vat=1.0, vat_radius=0.5), X, Y)
    loss, stage_2 = loss_of(ExtendedGAR(nothing, vat=2.0, vat_radius=0.5), X, Y)
    assert loss == pytest.approx(2 * once, rel=1e-4) and once > 0
    x = keras.ops.convert_to_tensor(X[:4] / np.float32(255))
    r = stage_2.adversary.perturbation(stage_2, x, stage_2.rest(x))
    lengths = np.linalg.norm(np.array(r).reshape(4, -1), axis=1)
    np.testing.assert_allclose(lengths, 0.5, rtol=1e-5)


@pytest.mark.slow
def test_adversarial_images_do_not_count_in_the_statistics():
    found = []
    for options in ({}, {"vat": 1.0, "vat_radius": 50.0}):
        model = normalized()
        method = ExtendedGAR(supervised=1.0, **options)
        regularize(model, X, X_U, y_labeled=Y, method=method, **OPTIONS)
        found.append(model.layers[2].non_trainable_weights)
    for plain, moved in zip(*found, strict=True):
        np.testing.assert_allclose(moved, plain, rtol=1e-6)


def own():
    """A model without a graph of layers."""
    return Subclassed(keras.layers.Flatten(), keras.layers.Dense(3))


def features():
    inputs = keras.Input((36,))
    return keras.Model(inputs, keras.layers.Dense(3)(inputs))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: attach(network()), "already holds a GAR layer"),
        (own, "Functional or Sequential"),
        (features, "move images"),
    ],
)
def test_models_that_it_cannot_train_are_refused(make, message):
    model, method = make(), ExtendedGAR(shift=1)
    shape = (-1, 36) if make is features else X.shape
    x, x_unlabeled = X.reshape(shape), X_U.reshape(-1, *shape[1:])
    with pytest.raises(ValueError, match=message):
        regularize(model, x, x_unlabeled, y_labeled=Y, method=method, **OPTIONS)
