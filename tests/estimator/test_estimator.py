"""The scikit-learn classifier: scikit-learn's own checks, and ours."""

import random
import re
import sys
import tracemalloc
from unittest import mock

import keras
import numpy as np
import pandas as pd
import pytest
import sklearn
from blobs import blobs
from keras import layers
from said import said
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.ensemble import VotingClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks
from stacks import Subclassed, sequential

import gar_keras
from gar_keras import GARClassifier, GARWarning
from gar_keras.engine.fit import predict
from gar_keras.estimator import classifier, examples

# Enough steps for scikit-learn's blobs, in one call of `fit` each.
QUICK = dict(pretrain_epochs=20, epochs=2, learning_rate=0.1)


class Tiny:
    """Makes a network that compiles fast; its name has no address."""

    def __call__(self, input_shape, num_classes):
        stack = layers.Flatten(), layers.Dense(num_classes)
        return sequential(*stack, shape=input_shape)

    def __repr__(self):
        return "tiny"


tiny = Tiny()


def quick(network="auto", **options):
    """A classifier whose training is short and repeatable."""
    return GARClassifier(network, **{**QUICK, "random_state": 0, **options})


def least_squares(model, x, y, validation_data=None, **options):
    """In place of `pretrain`, for the linear network `tiny`."""
    A = np.c_[x.reshape(len(x), -1), np.ones(len(x))]
    W = np.linalg.lstsq(A, np.eye(y.max() + 1)[y])[0]
    model.set_weights([W[:-1], W[-1]])
    return ended([0.5])


def ended(val_error=(), **_):
    """The history of a stage, as validation makes it."""
    history = keras.callbacks.History()
    history.history = {"val_error": list(val_error)}
    return history


def nothing(*_, **__):
    """In place of a stage."""
    return ended()


def interrupted(*_, **__):
    """In place of a stage."""
    raise KeyboardInterrupt


def weights(model):
    return [w.tolist() for w in model.model_.get_weights()]


@pytest.fixture
def stand_in(monkeypatch):
    """Fits and predicts without training, where that is not in question.

    It is a function that puts something else in place of a stage.
    """

    def put(pretrain=least_squares, regularize=nothing):
        monkeypatch.setattr(classifier, "pretrain", pretrain)
        monkeypatch.setattr(classifier, "regularize", regularize)

    put()
    monkeypatch.setattr(
        classifier, "predict", lambda model, x: np.array(model(x))
    )
    return put


# scikit-learn's checks

# As sklearn.semi_supervised, whose estimators are exempt by name.
EXPECTED_FAILURES = {"check_classifiers_classes": "-1 is no class here"}


@pytest.mark.slow
@parametrize_with_checks(
    [GARClassifier(tiny, **QUICK)],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES,
    xfail_strict=True,
)
def test_check_of_scikit_learn(estimator, check):
    check(estimator)


def table(m, seed=0):
    """Blobs on very different scales, and a constant feature."""
    X, y = blobs(m, seed)
    return np.c_[X * [1e-3, 1e3], np.full(m, 1e4 + 0.1)], y


X, Y = table(90)
# For networks without a scaling.
SCALED = X * [1e3, 1e-3, 1e-4]
# Every class has six labels.
FEW = np.where(np.arange(90) < 18, Y, -1)
NAMES = np.array(["cat", "dog", "eel"])


def images(dtype="uint8", channels=(1,), side=6):
    """Two classes of images: the upper or the lower half is bright."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 100, (40, side, side, *channels))
    y = np.arange(40) % 2
    x[y == 0, : side // 2] += 120
    x[y == 1, side // 2 :] += 120
    return x.astype(dtype), y


@pytest.fixture(scope="module")
def fitted():
    return quick().fit(X, FEW)


@pytest.mark.slow
def test_learns_from_few_labels(fitted):
    assert fitted.score(*table(90, seed=1)) > 0.95
    assert len(fitted.history_["pretraining"]["loss"]) == 1
    assert len(fitted.history_["regularization"]["balance"]) == 2
    assert fitted.n_features_in_ == 3
    np.testing.assert_array_equal(fitted.classes_, [0, 1, 2])


def test_probabilities_are_the_softmax_of_the_models_logits(fitted):
    Z = fitted.model_.predict(X.astype("float32"), verbose=0).astype("float64")
    expected = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(fitted.predict_proba(X), expected, rtol=1e-4)


def noisy(input_shape, num_classes):
    """The same with Dropout, whose seed Keras takes from Python's `random`."""
    stack = layers.Dropout(0.5), layers.Dense(num_classes)
    return sequential(*stack, shape=input_shape)


# Of 5, 5 and 6 labels.
UNEVEN = np.r_[FEW[:15], -1, -1, 2, FEW[18:]]


@pytest.mark.slow
def test_both_stages_are_those_of_gar_keras():
    """The same two stages, called by hand, end with the same weights."""
    model = quick(
        noisy, pretrain_epochs=3, validation_fraction=0.34,
        class_prior="labeled",
    )  # fmt: skip
    validated = clone(model).fit(X, UNEVEN)
    # Each class once more.
    shares = (6 / 19, 6 / 19, 7 / 19)
    seed = int(np.random.RandomState(0).randint(2**31 - 1))
    state = random.getstate()
    random.seed(seed)
    network = noisy((3,), 3)
    random.setstate(state)
    rng = np.random.default_rng([seed, 90])
    shuffled = [rng.permutation(np.flatnonzero(UNEVEN == c)) for c in range(3)]
    kept = np.sort(np.concatenate([rows[:2] for rows in shuffled]))
    labeled = np.sort(np.concatenate([rows[2:] for rows in shuffled]))
    x = X.astype("float32")
    alike = {
        "validation_data": (x[kept], UNEVEN[kept]), "seed": seed, "verbose": 0,
    }  # fmt: skip
    first = gar_keras.pretrain(
        network, x[labeled], UNEVEN[labeled], epochs=3,
        optimizer=gar_keras.sgd(0.1), **alike,
    )  # fmt: skip
    second = gar_keras.regularize(
        network, x[labeled], x, y_labeled=UNEVEN[labeled], epochs=2,
        class_prior=shares,
        optimizer=gar_keras.sgd(0.1, global_clipnorm=1.0), **alike,
    )  # fmt: skip
    assert weights(validated) == [w.tolist() for w in network.get_weights()]
    assert validated.history_ == {
        "pretraining": first.history, "regularization": second.history,
    }  # fmt: skip


def test_settings_reach_both_stages(stand_in):
    pretrain, regularize = (mock.Mock(side_effect=nothing) for _ in range(2))
    stand_in(pretrain=pretrain, regularize=regularize)
    method = [gar_keras.SafeGAR(affinity=2.0), gar_keras.CrossEntropy()]
    given = {
        "method": method, "epochs": 9, "labeled_per_batch": 5,
        "unlabeled_per_batch": 11, "verbose": 2,
    }  # fmt: skip
    x, y = images()
    model = quick(
        tiny, pretrain_epochs=7, learning_rate=0.125, validation_fraction=0.1,
        **given,
    )  # fmt: skip
    model.fit(x, np.where(np.arange(40) < 20, 3 * y + 5, -1))
    first, second = pretrain.call_args.kwargs, regularize.call_args.kwargs
    assert first.items() >= {"epochs": 7, "verbose": 2}.items()
    assert second.items() >= given.items()
    assert second["class_names"] == [5, 8]
    assert second["validation_data"][0].shape == (2, 6, 6, 1)
    optimizer = second["optimizer"]
    # A fifth of 9 epochs of 4 steps.
    assert (optimizer.warmup_steps, optimizer.global_clipnorm) == (7, 1.0)
    for options in (first, second):
        assert float(options["optimizer"].learning_rate) == 0.125


@pytest.mark.parametrize(
    ("class_prior", "shares"),
    # (2 + 1) / (8 + 2) of the labels are of the first class.
    [("labeled", (0.3, 0.7)), ([0.1, 0.9], (0.1, 0.9)), ("uniform", None)],
)
def test_the_prior_reaches_the_paper_s_gar(class_prior, shares, stand_in):
    regularize = mock.Mock(side_effect=nothing)
    stand_in(pretrain=nothing, regularize=regularize)
    model = quick(tiny, method="gar", class_prior=class_prior)
    x, _ = images()
    y = np.full(40, -1)
    y[:8] = [0, 1, 1, 1] * 2
    model.fit(x, y)
    (term,) = regularize.call_args.kwargs["method"]
    assert term.layer.class_prior == shares


def test_a_function_that_gives_a_trained_network_again_is_refused(stand_in):
    shared = layers.Dense(3, name="shared")

    def network(shape, num_classes):
        return sequential(shared, layers.Dense(num_classes), shape=shape)

    stand_in(pretrain=nothing, regularize=nothing)
    quick(network).fit(SCALED, FEW)
    with pytest.raises(ValueError, match="shared/kernel', which an earlier"):
        quick(network).fit(SCALED, FEW)
    # What is frozen may be shared.
    shared.trainable = False
    for _ in range(2):
        quick(network).fit(SCALED, FEW)


def without_graph(shape, num_classes):
    """A linear network of which Keras does not know the graph."""
    model = Subclassed(layers.Dense(num_classes))
    model(np.zeros((1, *shape)))
    return model


@pytest.mark.parametrize(
    "options",
    # What belongs to stage 2 alone is neither warned of nor refused.
    [{}, {"labeled_per_batch": 91}, {"network": without_graph}],
    ids=["plain", "stage 2", "no graph"],
)
def test_no_row_unlabelled_is_supervised_training_and_said(options, stand_in):
    model = quick(**{"network": tiny, **options})
    (text,) = said(lambda: model.fit(SCALED, Y))
    assert "plain supervised training" in text
    assert "Mark unlabelled examples with -1" in text
    assert [*model.history_] == ["pretraining"]
    assert model.score(SCALED, Y) > 0.9


FEW_NAMES = np.where(FEW < 0, "", NAMES[FEW])
PIPELINE = make_pipeline(StandardScaler(), quick(tiny))
SEARCH = GridSearchCV(quick(tiny), {"epochs": [1, 2]}, cv=2)
VOTE = VotingClassifier([("gar", quick(tiny))])
# What is around a classifier, labels, and whether rows stay unlabelled in it.
AROUND = {
    "pipeline": (PIPELINE, FEW, True),
    "pipeline, names": (PIPELINE, FEW_NAMES, True),
    "search": (SEARCH, FEW, True),
    "search, names": (SEARCH, FEW_NAMES, True),
    "vote": (VOTE, FEW, False),
    "vote, names": (VOTE, FEW_NAMES, False),
    # SelfTrainingClassifier takes no names.
    "self-training": (
        SelfTrainingClassifier(quick(tiny), max_iter=1), FEW, False,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", AROUND)
def test_a_meta_estimator_keeps_rows_unlabelled_or_is_warned_of(name, stand_in):
    model, y, keeps = AROUND[name]
    texts = said(lambda: clone(model).fit(SCALED, y))
    told = [text for text in texts if "No example is unlabelled" in text]
    assert (not told) == keeps
    assert all("other meta-estimators of scikit-learn" in t for t in told)


def test_another_mark_of_an_unlabelled_row_is_named(stand_in):
    for labels, mark in ((NAMES[FEW], "unknown"), (FEW, -2)):
        y = np.where(FEW < 0, mark, labels)
        (text,) = said(lambda y=y: quick(tiny).fit(SCALED, y))
        (classes,) = re.findall("The first classes of y are (.*): is", text)
        assert str(mark) in classes.split(", ")


def test_model_is_plain_keras(fitted):
    assert not gar_keras.models.is_regularized(fitted.model_)
    kinds = {type(layer) for layer in fitted.model_.layers}
    assert all(kind.__module__.startswith("keras.") for kind in kinds)
    assert not fitted.model_.compiled


# Far enough apart for least squares.
FAR = X + np.eye(3)[Y] * [1e-1, 1e5, 0]
# Of five rows of the classes 0, 1, 2, 0 and 1; the last one has no label.
SCORED = np.array([0, 1, 2, 2, -1])


@pytest.fixture
def known(stand_in):
    """A classifier that is right on `FAR`."""
    return quick(tiny).fit(FAR, FEW)


def test_score_leaves_unlabelled_rows_out(known):
    X = FAR[:5]
    np.testing.assert_array_equal(known.predict(X), Y[:5])
    for y in (SCORED, SCORED.tolist()):
        assert known.score(X, y) == 3 / 4
    assert known.score(X, SCORED, sample_weight=[1, 1, 1, 5, 9]) == 3 / 8
    known.classes_ = NAMES
    for names in (NAMES[SCORED], NAMES[SCORED].astype(object)):
        y = np.where(SCORED < 0, "-1" if names.dtype == "U3" else -1, names)
        assert known.score(X, y) == 3 / 4


MASKED = np.ma.masked_equal(SCORED, SCORED[0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(y=np.full(5, -1)), "No row is labelled.*5 rows"),
        (dict(y=MASKED), "y must have no masked values"),
        (
            dict(X=np.ma.masked_equal(FAR[:5], FAR[2, 1])),
            "X must have no masked values",
        ),
    ],
)
def test_score_refuses_what_it_cannot_compare(change, message, known):
    with pytest.raises(ValueError, match=message):
        known.score(**{"X": FAR[:5], "y": SCORED, **change})


@pytest.mark.slow
def test_a_search_over_methods_on_digits():
    """Each training begins with the weights of the network that is given."""
    x, y = load_digits(return_X_y=True)
    few = np.where(np.arange(len(y)) < 80, y, -1)
    keras.utils.set_random_seed(0)
    stack = layers.Rescaling(1 / 16), layers.Dense(64, "relu"), layers.Dense(10)
    network = sequential(*stack, shape=(64,))
    before = network.get_weights()
    model = GARClassifier(
        network, pretrain_epochs=200, epochs=5, random_state=0
    )
    grid = {"method": ["safe-gar", "gar", "supervised"]}
    search = GridSearchCV(model, grid, cv=2, error_score="raise").fit(x, few)
    np.testing.assert_equal(network.get_weights(), before)
    scores = search.cv_results_["mean_test_score"]
    assert (scores > 0.6).all()
    assert search.best_score_ == scores.max()
    assert search.score(x, y) > 0.7


def test_network_of_ones_own_is_copied_with_its_weights(stand_in):
    network = tiny((3,), 3)
    before = [w.tolist() for w in network.get_weights()]
    model = quick(network)
    copied = clone(model)
    # Compiled with what Keras cannot save, by name or otherwise.
    network.compile("sgd", lambda y, z: 0.0)
    model.fit(X, FEW)
    assert weights(model) != before
    assert [w.tolist() for w in network.get_weights()] == before
    stand_in(pretrain=nothing)
    assert weights(copied.fit(X, FEW)) == before


class Unregistered(layers.Dense):
    """A layer that Keras cannot load by its name."""


def test_a_search_trains_the_network_that_fit_trains():
    stack = Unregistered(4, "relu"), layers.Dense(3)
    network = sequential(*stack, shape=(3,))
    frozen = network.layers[0].kernel
    frozen.trainable = False
    model = quick(network)
    with sklearn.config_context(enable_metadata_routing=True):
        model.set_score_request(sample_weight=True)
        copied = clone(model)
        requests = copied.get_metadata_routing().score.requests
    assert requests["sample_weight"]
    assert copied.get_params() == model.get_params()
    for fitted in (model.fit(X, FEW), copied.fit(X, FEW)):
        kernel, bias, *_ = fitted.model_.get_weights()
        np.testing.assert_array_equal(kernel, frozen)
        assert bias.any()
    assert weights(copied) == weights(model)


@pytest.mark.parametrize(
    ("dtype", "channels", "shape"),
    [("uint8", (), (6, 6, 1)), ("int64", (3,), (6, 6, 3))],
)
def test_images_as_the_network_takes_them(dtype, channels, shape, stand_in):
    network = mock.Mock(side_effect=tiny)
    x, y = images(dtype, channels)
    model = quick(network).fit(x, np.where(np.arange(40) < 10, y, -1))
    network.assert_called_once_with(shape, 2)
    assert model.predict(x).shape == (40,)


MINUTES = 60.0 * (np.arange(90) % 3) + X[:, 0]
TABLES = {
    # The third feature is constant.
    "plain": X,
    "seconds": 1.7e9 + MINUTES[:, None],
    "milliseconds": (1.7e12 + 1000 * MINUTES[:, None]).round().astype("int64"),
    "many": np.c_[1e-12 * X[:, 0], 1e25 * X[:, 1], 1.7e9 + MINUTES, MINUTES],
}


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("X", TABLES.values(), ids=TABLES)
def test_default_network_standardizes_features_of_any_unit(X, form):
    above = (X - X.min(axis=0)).astype("float64")
    varies = above.max(axis=0) > 0
    above[:, varies] /= above.max(axis=0)[varies]
    expected = above - above.mean(axis=0)
    expected[:, varies] /= above.std(axis=0)[varies]
    rows = examples.as_input(form(X), quick()._new_scaler(form(X)))
    assert rows.dtype == "float32"
    np.testing.assert_allclose(rows, expected, atol=1e-2)


@pytest.mark.slow
def test_a_saved_model_takes_rows_as_they_are(tmp_path):
    # In units of their own.
    x = X * [1e-9, 1.0, 1e6] + [0, 5, -2e6]
    model = quick().fit(x, FEW)
    path = tmp_path / "model.keras"
    model.model_.save(path)
    rows = x.astype("float32")
    logits = keras.models.load_model(path).predict(rows, verbose=0)
    np.testing.assert_array_equal(logits.argmax(axis=1), model.predict(x))


@pytest.mark.parametrize(
    ("network", "x"),
    [
        (tiny, np.c_[1.7e9 + MINUTES, X[:, 1]]),
        # Images are not standardized.
        ("auto", 1e9 + np.tile(MINUTES[:, None, None], (4, 4))),
    ],
    ids=["own", "images"],
)
def test_what_float32_does_not_hold_is_warned_of(network, x, stand_in):
    stand_in(pretrain=nothing)
    with pytest.warns(GARWarning, match="gets X in float32.*in column 0,"):
        model = quick(network).fit(x, FEW)
    assert model.scaler_ is None


def peak(function):
    """The bytes that a call had at its peak."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("form", "dtype"),
    [("csr", "float64"), ("csc", "float32"), ("coo", "int64")],
)
def test_sparse_rows_take_about_the_memory_of_dense_ones(
    form, dtype, stand_in, monkeypatch
):
    monkeypatch.setattr(classifier, "predict", predict)
    x = sparse.random(6000, 600, 0.01, form, rng=0)
    x = (100 * x).astype(dtype)
    y = np.where(np.arange(6000) < 30, np.arange(6000) % 3, -1)
    dense = 4 * 6000 * 600
    model = quick(tiny)
    assert peak(lambda: model.fit(x, y)) < 1.6 * dense
    predicted = model.predict(x)
    assert peak(lambda: model.predict(x)) < 1.6 * dense
    np.testing.assert_array_equal(predicted, model.predict(x.toarray()))
    of_dense = quick(tiny).fit(x.toarray(), y)
    assert weights(model) == weights(of_dense)


FOUR = [0.25] * 4
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
TURNED = FRAME[["b", "a", "c"]]
BAD = {
    "two markers": (dict(y=np.where(FEW < 0, np.nan, FEW - 1)), "one way"),
    "NaN": (dict(X=TURNED.where(TURNED > 0)), "contains NaN"),
    "a name twice": (
        dict(X=FRAME.rename(columns={"b": "a"})),
        "'a' more than once",
    ),
    "masked features": (
        dict(X=np.ma.masked_equal(X, X[1, 1])),
        "X must have no masked values",
    ),
    "masked labels": (
        dict(y=np.ma.masked_equal(FEW, -1)),
        "y must have no masked values",
    ),
    "one class": (dict(y=np.minimum(FEW, 0)), "labels of 1 class"),
    "too few outputs": (
        dict(network=lambda s, n: tiny(s, 2)),
        "Received: 2 outputs",
    ),
    "beyond float32": (
        dict(X=np.where(X == X[1, 1], 1e300, X)),
        "Received: 1 values",
    ),
    "beyond float32, standardized": (
        dict(X=np.where(X == X[1, 1], 1e39, X), network="auto"),
        "Received: 1 values",
    ),
    "five axes": (dict(X=np.ones((90, 2, 2, 2, 2))), r"or \(m, h, w, c\)"),
    "network": (dict(network="cnn"), "network='cnn'"),
    "network with GAR": (
        dict(network=lambda s, n: gar_keras.attach(tiny(s, n))),
        "already holds a GAR layer",
    ),
    "layer as network": (dict(network=layers.Dense(3)), "network=<De"),
    "prior of four": (dict(class_prior=FOUR), "4 shares for 3 outputs"),
    "prior": (dict(class_prior="labelled"), "predicted, uniform"),
    "prior that gar has not": (
        dict(method="gar", class_prior="predicted"),
        'of method="safe-gar"',
    ),
    "method": (dict(method="VAT"), "one of gar, safe-gar.*vat-entropy"),
    "no guides": (dict(labeled_per_batch=0), "labeled_per_batch=0"),
    "epochs": (dict(epochs="auto"), "epochs must be an integer.*'auto'"),
    "no pretraining": (
        dict(pretrain_epochs=0),
        "pretrain_epochs must be an integer of at least 1",
    ),
    "small validation": (
        dict(y=np.where(np.arange(90) < 3, FEW, -1), validation_fraction=0.5),
        "too few labels",
    ),
    "channels first": (
        dict(X=np.ones((90, 3, 9, 9)), network="auto"),
        r"takes \(h, w, c\).* 4 to 64.*\(90, 3, 9, 9\).*moveaxis",
    ),
    "prior of the method": (
        dict(method=[gar_keras.SafeGAR(class_prior=FOUR)]),
        "4 shares for 3 outputs",
    ),
    "prior beside a list": (
        dict(method=[gar_keras.GAR()], class_prior="uniform"),
        "Received: class_prior beside the list",
    ),
    "validation": (dict(validation_fraction=2), "validation_fraction"),
}
INTERRUPTED = {
    "Ctrl-C in stage 1": dict(pretrain=interrupted),
    "Ctrl-C in stage 2": dict(regularize=interrupted),
}  # fmt: skip


@pytest.mark.parametrize("name", [*BAD, *INTERRUPTED])
def test_a_fit_that_does_not_end_leaves_the_estimator_as_it_was(name, stand_in):
    """Refused before training, or interrupted in it."""
    change, message = BAD.get(name, ({}, None))
    model, unfitted = quick(tiny).fit(FRAME, FEW), quick(tiny)
    predicted = model.predict(FRAME)
    stand_in(**INTERRUPTED.get(name, {"pretrain": None}))
    given = {"X": TURNED, "y": FEW, **change}
    data = given.pop("X"), given.pop("y")
    for estimator in (model, unfitted):
        before = dict(vars(estimator))
        kinds = KeyboardInterrupt, TypeError, ValueError
        with pytest.raises(kinds, match=message):
            estimator.set_params(**given).fit(*data)
        estimator.set_params(**{key: before[key] for key in given})
        assert vars(estimator).keys() == before.keys()
        assert all(vars(estimator)[key] is before[key] for key in before)
    np.testing.assert_array_equal(model.predict(FRAME), predicted)
    with pytest.raises(ValueError, match="same order"):
        model.predict(TURNED)


def test_images_of_another_kind_are_refused_in_predict(stand_in):
    x, y = images()
    model = quick(tiny).fit(x, np.where(np.arange(40) < 10, y, -1))
    for wrong in (x.astype("float32") / 255, x[:, :, :5]):
        with pytest.raises(ValueError, match="like those of fit"):
            model.predict(wrong)


def test_images_of_another_scale_are_warned_of_in_predict(stand_in):
    x, y = images()
    x = x.astype("float32")
    model = quick(tiny).fit(x, np.where(np.arange(40) < 10, y, -1))
    (text,) = said(lambda: model.predict(x / 255))
    assert "X holds numbers up to" in text and "that of fit up to" in text
    # A few images may well be dark.
    for same in (x, x[:5] / 255):
        assert said(lambda same=same: model.predict(same)) == []
    # A column of a table may be of any unit, and sorted.
    rows = np.c_[X[:, :2], np.arange(90.0) ** 6]
    model = quick(tiny).fit(rows, FEW)
    assert said(lambda: model.predict(rows[:40])) == []


def test_without_scikit_learn_the_extra_is_named(monkeypatch):
    name = "gar_keras.estimator.classifier"
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    monkeypatch.delitem(sys.modules, name)
    with pytest.raises(
        ImportError, match=r"install 'gar_keras\[scikit-learn\]'"
    ):
        _ = gar_keras.GARClassifier
    assert "GARClassifier" not in gar_keras.__all__
