"""GAR that is set up by predictions, the door of all methods, comparison."""

from types import SimpleNamespace

import keras
import numpy as np
import oracle
import pytest
import tensorflow as tf
from keras import layers, ops

from gar_keras import (
    GARWarning,
    GraphActivityRegularization,
    SafeGAR,
    compare,
    error_rate,
    pretrain,
    regularize,
)
from gar_keras.methods.safe_gar import (
    given_prior,
    predicted_prior,
    running_balance,
)

RNG = np.random.default_rng(0)
CENTRES = 3 * RNG.normal(size=(3, 8))
Y = np.arange(300) % 3
X = (CENTRES[Y] + RNG.normal(size=(300, 8))).astype("float32")
X_L, Y_L, X_U = X[:12], Y[:12], X[:240]


@pytest.fixture
def pretrained():
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [keras.Input((8,)), layers.Dense(16, "relu"), layers.Dense(3)]
    )
    pretrain(model, X_L, Y_L, epochs=20, report_every=20, verbose=0)
    return model


def train(model, **options):
    options = {"epochs": 3, "labeled_per_batch": 6, "verbose": 0, **options}
    return regularize(model, X_L, X_U, **options)


# The running balance


def test_running_balance_by_hand():
    layer = GraphActivityRegularization(
        0.0, 1.0, 0.0, balance_of="column sums", balance_memory=0.75
    )
    Z = np.array([[4.0, -1.0], [0.0, 4.0], [8.0, 0.0]], "float32")
    # Shares (3/4, 1/4), beside the even ones at first.
    u = np.array([0.5, 0.5])
    for _ in range(2):
        u = 0.75 * u + 0.25 * np.array([0.75, 0.25])
        layer(Z, training=True)
        expected = 1 - 2 * u[0] * u[1] / np.sum(u**2)
        assert float(sum(layer.losses)) == pytest.approx(expected, rel=1e-5)
    kept = ops.convert_to_numpy(layer._shares)
    layer(Z, training=False)
    np.testing.assert_array_equal(ops.convert_to_numpy(layer._shares), kept)


def test_the_memory_takes_no_part_in_the_gradient():
    Z = oracle.logits(6, 3)
    layer = GraphActivityRegularization(
        0.0, 1.0, 0.0, balance_of="column sums", balance_memory=0.5
    )
    layer(Z)

    def loss(z):
        B = np.maximum(z, 0)
        v = B.sum(axis=0)
        u = 0.5 / 3 + 0.5 * v / v.sum()
        return 1 - (u.sum() ** 2 - u @ u) / (2 * u @ u)

    def tracked(z):
        return (
            1
            - layer._formula.terms(z, lambda v: 0.5 / 3 + 0.5 * v / ops.sum(v))[
                "balance"
            ]
        )

    np.testing.assert_allclose(
        oracle.gradient(tracked, Z), oracle.differences(loss, Z), atol=1e-4
    )


def test_a_layer_with_memory_is_saved_and_loaded(tmp_path):
    layer = GraphActivityRegularization(balance_memory=0.5)
    model = keras.Sequential([keras.Input((4,)), layers.Dense(3), layer])
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.layers[-1].balance_memory == 0.5


# What follows from the data


def test_prior_and_memory_follow_from_predictions_and_batch():
    logits = np.eye(4)[np.repeat(np.arange(4), [7, 1, 1, 1])]
    assert predicted_prior(logits) == pytest.approx((8 / 14, *[2 / 14] * 3))
    assert predicted_prior(np.eye(4)) is None
    assert running_balance(10, 128) == {"balance": 1.0}
    assert running_balance(40, 128)["balance_memory"] == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("given", "prior"),
    {
        None: None,
        "uniform": None,
        "labeled": (0.75, 0.25),
        "predicted": "predicted",
        (0.5, 0.5): (0.5, 0.5),
    }.items(),
)
def test_a_prior_is_given_in_numbers_or_by_a_word(given, prior):
    assert given_prior(given, [0, 0, 1, 0], 2) == prior
    if isinstance(prior, tuple):
        assert given_prior(np.array(prior), [0, 1], 2) == prior


@pytest.mark.slow
def test_a_data_set_of_pairs_has_its_labels_used(pretrained):
    start, found = pretrained.get_weights(), []
    pairs = tf.data.Dataset.from_tensor_slices((X_L, Y_L)).batch(5)
    for x_labeled, y_labeled in ((X_L, Y_L), (pairs, None)):
        pretrained.set_weights(start)
        regularize(
            pretrained, x_labeled, X_U, y_labeled=y_labeled,
            labeled_per_batch=6, epochs=1, verbose=0,
        )  # fmt: skip
        found.append(pretrained.predict(X, verbose=0))
    np.testing.assert_array_equal(*found)
    pretrained.set_weights(start)
    train(pretrained, epochs=1)
    assert np.abs(pretrained.predict(X, verbose=0) - found[0]).max() > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("factor", [100.0, 0.01])
def test_the_scale_of_the_logits_changes_nothing(factor, pretrained):
    weights, errors = pretrained.get_weights(), []
    for scale in (1.0, factor):
        pretrained.set_weights(weights)
        last = pretrained.layers[-1]
        last.set_weights([scale * w for w in last.get_weights()])
        train(pretrained, y_labeled=Y_L)
        errors.append(pretrained.predict(X, verbose=0))
    np.testing.assert_allclose(errors[0], errors[1], rtol=0.01, atol=0.01)


def test_a_training_that_loses_a_class_is_taken_back(pretrained):
    weights = pretrained.get_weights()
    feed = SimpleNamespace(images=X_U)
    SafeGAR().finish(pretrained, feed, weights)
    pretrained.layers[-1].bias.assign([0.0, 0.0, -1e3])
    with pytest.warns(GARWarning, match="no example of class 2 any more"):
        SafeGAR().finish(pretrained, feed, weights)
    for now, before in zip(pretrained.get_weights(), weights, strict=True):
        np.testing.assert_array_equal(now, before)


@pytest.mark.slow
def test_with_labels_it_is_no_worse_on_uneven_digits():
    sklearn = pytest.importorskip("sklearn.datasets")
    x, y = sklearn.load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    sizes = (150 * 0.72 ** np.arange(10)).astype(int)
    rows = [np.flatnonzero(y == c)[:k] for c, k in enumerate(sizes)]
    rows = rng.permutation(np.concatenate(rows))
    x, y = (x[rows] / 16).astype("float32"), y[rows]
    few = rng.permutation(len(y))[:60]
    errors = {}
    for name in ("gar", "safe-gar"):
        keras.utils.set_random_seed(0)
        model = keras.Sequential(
            [keras.Input((64,)), layers.Dense(64, "relu"), layers.Dense(10)]
        )
        pretrain(model, x[few], y[few], epochs=200, verbose=0)
        errors["before"] = error_rate(model, x, y)
        regularize(
            model, x[few], x, y_labeled=y[few], method=name, epochs=40,
            verbose=0,
        )  # fmt: skip
        errors[name] = error_rate(model, x, y)
    assert errors["safe-gar"] <= errors["before"]
    assert errors["gar"] > errors["before"] + 0.03


# The door


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"class_prior": (0.2, 0.3, 0.5)},
            TypeError,
            "no argument 'class_prior'",
        ),
        (
            {"method": "safe-gar", "class_prior": "even"},
            ValueError,
            "class_prior must be one of predicted, uniform, labeled",
        ),
        ({"method": "nothing"}, ValueError, "method must be one of gar"),
        ({"method": SafeGAR(), "vat": 1.0}, TypeError, "no argument 'vat'"),
    ],
)
def test_what_a_method_does_not_take_is_refused(options, error, message):
    model = keras.Sequential([keras.Input((8,)), layers.Dense(3)])
    with pytest.raises(error, match=message):
        train(model, y_labeled=Y_L, **{"method": "gar", **options})


@pytest.mark.slow
def test_every_method_by_its_name(pretrained):
    history = train(pretrained, y_labeled=Y_L, method="entropy", weight=0.5)
    assert history.model.method.weight == 0.5
    assert "affinity" in train(pretrained, y_labeled=Y_L).history
    assert "supervised" not in train(pretrained).history


@pytest.mark.slow
def test_comparison_by_folds(pretrained):
    options = dict(folds=2, pretrain_epochs=20, epochs=1, verbose=0)
    errors = compare(pretrained, X_L, Y_L, X_U, "gar", **options)
    assert [*errors] == ["pretraining", "gar"]
    again = compare(pretrained, X_L, Y_L, X_U, ["gar"], **options)
    assert again == errors
    # Of six labels a fold.
    assert [round(6 * e, 9) % 1 for e in errors["gar"]] == [0, 0]


def test_comparison_needs_two_labels_of_a_class(pretrained):
    y = np.array([0, 0, 1])
    with pytest.raises(ValueError, match="two labels of each class"):
        compare(pretrained, X[:3], y, X_U, folds=2)
