"""GAR that is set up by predictions."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import ClassVar
from unittest import mock

import keras
import numpy as np
import oracle
import pytest
from keras import layers
from stacks import Subclassed, sequential

from gar_keras import (
    GARWarning,
    GraphActivityRegularization,
    SafeGAR,
    error_rate,
    pretrain,
    regularize,
    sgd,
)
from gar_keras.callbacks import CheckShares
from gar_keras.methods.base import Stage2, Term
from gar_keras.methods.safe_gar import balance_options

RNG = np.random.default_rng(0)
CENTRES = 3 * RNG.normal(size=(3, 8))
Y = np.arange(300) % 3
X = (CENTRES[Y] + RNG.normal(size=(300, 8))).astype("float32")
X_L, Y_L, X_U = X[:12], Y[:12], X[:240]


def network():
    keras.utils.set_random_seed(0)
    return sequential(layers.Dense(16, "relu"), layers.Dense(3), shape=(8,))


@pytest.fixture(scope="module")
def weights_of_stage_1():
    model = network()
    pretrain(model, X_L, Y_L, epochs=20, report_every=20, verbose=0)
    return model.get_weights()


@pytest.fixture
def pretrained(weights_of_stage_1):
    model = network()
    model.set_weights(weights_of_stage_1)
    return model


def train(model, **options):
    options = {"epochs": 3, "labeled_per_batch": 6, "verbose": 0, **options}
    return regularize(model, X_L, X_U, **options)


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

    found = oracle.gradient(lambda z: layer.measure(z)["regularization"], Z)
    np.testing.assert_allclose(found, oracle.differences(loss, Z), atol=1e-4)


def test_a_batch_with_enough_of_a_rare_class_has_no_memory():
    assert balance_options((0.95, 0.05), 2, 1280) == {
        "balance": 1.0, "balance_memory": 0.0, "balance_of": "row shares"
    }  # fmt: skip


# The last layers of a model, whose first has the weights of the logits.


def then(*behind):
    return lambda: [layers.Dense(3), *behind]


def inside():
    return [keras.Sequential([keras.Input((16,)), layers.Dense(3)])]


def changed(method, option):
    """A `Dense` of which a method was called."""

    def make():
        dense = layers.Dense(3)
        dense.build((None, 16))
        getattr(dense, method)(option)
        return [dense]

    return make


PLAIN = {"Dense": then(), "inside": inside}
OTHERS = {
    "linear": then(layers.Activation("linear", dtype="float32")),
    "frozen": lambda: [layers.Dense(3, trainable=False)],
    "LoRA": changed("enable_lora", 2),
    "int8": changed("quantize", "int8"),
    "constrained": lambda: [layers.Dense(3, kernel_constraint="max_norm")],
    "bounded bias": lambda: [layers.Dense(3, bias_constraint="non_neg")],
    "in use twice": lambda: [layers.Dense(3), dense := layers.Dense(3), dense],
}


def with_head(make):
    keras.utils.set_random_seed(3)
    head = make()
    return sequential(layers.Dense(16, "relu"), *head, shape=(8,))


def begun(model, **options):
    """The method as a training begins with it, and what it gives for X."""
    feed = SimpleNamespace(
        images=X_U, y_labeled=Y_L, sampler=SimpleNamespace(images_per_step=128)
    )
    term, network, _ = SafeGAR(**options).setup(model, feed)
    stage_2 = Stage2(
        [term], network, 3, steps=1, labeled_per_batch=16, evaluated=model
    )
    assert stage_2.evaluated is model
    return term, np.asarray(stage_2.network(X_U))


@pytest.mark.parametrize("make", PLAIN.values(), ids=PLAIN)
def test_the_weights_of_a_plain_dense_are_scaled(make):
    model = with_head(make)
    before = np.asarray(model(X_U))
    method, logits = begun(model)
    assert method.logit_factor == 1
    assert logits.max(axis=1).mean() == pytest.approx(10, rel=1e-5)
    np.testing.assert_allclose(model(X_U), logits)
    factor = 10 / before.max(axis=1).mean()
    np.testing.assert_allclose(logits, factor * before, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_logits_of_16_bits_are_scaled_as_others(policy):
    model = sequential(layers.Dense(3, dtype=policy), shape=(3,))
    model.layers[-1].set_weights([5 * np.eye(3), np.zeros(3)])
    x = np.tile(np.eye(3, dtype="float32"), (1000, 1))
    feed = SimpleNamespace(
        images=x, y_labeled=None, sampler=SimpleNamespace(images_per_step=128)
    )
    SafeGAR().setup(model, feed)
    kernel, _ = model.layers[-1].get_weights()
    np.testing.assert_allclose(kernel, 10 * np.eye(3))


@pytest.mark.parametrize("make", OTHERS.values(), ids=OTHERS)
def test_other_heads_stay_as_they_are_and_the_loss_has_the_factor(make):
    model = with_head(make)
    weights, before = model.get_weights(), np.asarray(model(X_U))
    method, logits = begun(model)
    np.testing.assert_equal(model.get_weights(), weights)
    factor = 10 / before.max(axis=1).mean()
    assert method.logit_factor == pytest.approx(factor)
    np.testing.assert_allclose(logits, factor * before, rtol=1e-4)


@pytest.mark.parametrize(
    "given", [{"affinity": 1.0}, {"class_prior": np.array([0.5, 0.5])}]
)
def test_settings_beside_a_layer_are_refused(given):
    (name,) = given
    with pytest.raises(ValueError, match=f"has its own {name}. Received: both"):
        SafeGAR(layer=GraphActivityRegularization(), **given)


@dataclass(frozen=True)
class Unbuilt(Term):
    name: ClassVar[str] = "unbuilt"

    def build(self, stage_2):
        raise RuntimeError("no")

    def loss(self, stage_2, x, y, logits):
        return 0.0


def test_what_fails_before_the_training_leaves_the_weights(weights_of_stage_1):
    model = with_head(PLAIN["Dense"])
    model.set_weights(weights_of_stage_1)
    with pytest.raises(RuntimeError):
        train(model, y_labeled=Y_L, method=[SafeGAR(), Unbuilt()])
    np.testing.assert_equal(model.get_weights(), weights_of_stage_1)


@pytest.mark.slow
@pytest.mark.parametrize("make", [then(), OTHERS["frozen"]])
def test_if_every_epoch_is_worse_the_model_is_what_it_was(make):
    model = with_head(make)
    weights = model.get_weights()
    right = model.predict(X, verbose=0).argmax(axis=1)
    with pytest.warns(GARWarning, match="Every epoch has a greater error"):
        train(
            model, y_labeled=(Y_L + 1) % 3, validation_data=(X, right),
            optimizer=keras.optimizers.SGD(0.5), class_prior="uniform",
        )  # fmt: skip
    np.testing.assert_equal(model.get_weights(), weights)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Dense", "constrained"])
def test_two_calls_are_one_training(name):
    """With a running balance, of 3 classes in batches of 20."""
    weights = []
    for stops in ([2], [1, 2]):
        model, optimizer = with_head({**PLAIN, **OTHERS}[name]), sgd(0.01)
        options, done = {}, 0
        for epochs in stops:
            history = train(
                model, y_labeled=Y_L, epochs=epochs, initial_epoch=done,
                optimizer=optimizer, unlabeled_per_batch=14, **options,
            )  # fmt: skip
            options, done = {"method": history.model.method}, epochs
        assert history.model.method[0].layer.balance_memory > 0
        weights.append(model.get_weights())
    np.testing.assert_equal(*weights)


def test_what_has_not_begun_cannot_go_on(pretrained):
    with pytest.raises(ValueError, match="Give method=history.model.method"):
        train(pretrained, y_labeled=Y_L, initial_epoch=1)


@pytest.mark.slow
def test_running_shares_begin_with_the_prior_in_each_training(pretrained):
    layer = GraphActivityRegularization(balance_memory=0.9)
    start, found = pretrained.get_weights(), []
    for _ in range(2):
        pretrained.set_weights(start)
        train(pretrained, method="gar", layer=layer, epochs=1)
        found.append(pretrained.get_weights())
    np.testing.assert_equal(*found)


@pytest.mark.parametrize("options", [{}, {"training": False}])
def test_running_shares_do_not_move_in_inference(options):
    layer = GraphActivityRegularization(balance_memory=0.5)
    model = keras.Sequential([keras.Input((3,)), layer])
    model(np.eye(3)[[0, 0, 1]], **options)
    shares = layer._shares.numpy()
    np.testing.assert_array_equal(shares, np.full(3, 1 / 3, "float32"))
    model(np.eye(3)[[0, 0, 1]], training=True)
    np.testing.assert_allclose(layer._shares, [3 / 6, 2 / 6, 1 / 6], rtol=1e-6)
    layer.reset_shares()
    np.testing.assert_array_equal(layer._shares, shares)


RARE = (0.48, 0.48, 0.04)


@pytest.mark.parametrize(
    ("prior", "balance_of", "largest_change"),
    [
        (RARE, "row shares", 1.4),
        ((0.5, 0.3, 0.2), "diagonal", 1.25),
        ("uniform", "diagonal", None),
    ],
)
def test_a_rare_class_decides_what_is_balanced(
    pretrained, prior, balance_of, largest_change
):
    method, _ = begun(pretrained, class_prior=prior)
    config = method.layer.get_config()
    assert config["balance_of"] == balance_of
    assert method.largest_share_change == largest_change
    options = {"class_prior": prior, "protects_rare_classes": False}
    unprotected, _ = begun(pretrained, **options)
    assert unprotected.largest_share_change is None
    is_same = unprotected.layer.get_config() == config
    assert is_same == (balance_of == "diagonal")


def weights_giving(counts):
    """Of a `Dense` that gives so many of one-hot examples to each class."""
    return [np.repeat(np.eye(len(counts), dtype="float32"), counts, axis=0)]


@pytest.mark.parametrize(
    ("prior", "before", "after", "largest_change", "warning", "restored"),
    {
        "rare grows": (
            None, [80, 20], [70, 30], 1.4, "30.39 % .* 20.59 %", True,
        ),
        "rare shrinks": (
            None, [80, 20], [87, 13], 1.4, "13.73 % .* 20.59 %", True,
        ),
        "rare grows less": (None, [80, 20], [72, 28], 1.4, None, False),
        "not looked at": (None, [80, 20], [70, 30], None, None, False),
        "towards the prior": (
            (0.95, 0.05), [70, 30], [93, 7], 1.4, None, False,
        ),
        "past the prior": (
            (0.85, 0.15), [80, 20], [92, 8], 1.4, "8.82 % .* 20.59 %", True,
        ),
        "rare ones together": (
            None, [60, 20, 20], [60, 32, 8], 1.4,
            "class cat, with 8.00 % .* 20.00 %", False,
        ),
        "twice": (
            None, [80, 20], [55, 45], None,
            "class bee, with 45.00 % .* 20.00 %", False,
        ),
        "twice by chance": (None, [96, 4], [90, 10], None, None, False),
        "lost": (None, [90, 10], [100, 0], 1.4, "example of class bee", True),
    }.values(),
)  # fmt: skip
def test_shares_of_the_predictions_are_watched(
    prior, before, after, largest_change, warning, restored
):
    m, n = sum(before), len(before)
    model = sequential(layers.Dense(n, use_bias=False), shape=(m,))
    start, end = weights_giving(before), weights_giving(after)
    model.set_weights(start)
    prior = prior or tuple(np.array(before) / m)
    callback = CheckShares(
        model, np.eye(m), prior, True, start, largest_change,
        ["ant", "bee", "cat"],
    )  # fmt: skip
    # In a training that goes on, the start is that of its first epoch.
    model.set_weights(end)
    callback.on_train_begin()
    np.testing.assert_equal(model.get_weights(), end)
    if warning is None:
        callback.on_train_end()
    else:
        with pytest.warns(GARWarning, match=warning):
            callback.on_train_end()
    np.testing.assert_equal(model.get_weights(), start if restored else end)


def test_the_weights_of_now_stay_where_the_first_look_is_interrupted():
    model = sequential(layers.Dense(2, use_bias=False), shape=(4,))
    start, now = weights_giving([4, 0]), weights_giving([2, 2])
    callback = CheckShares(model, np.eye(4), start_weights=start)
    model.set_weights(now)
    model.predict = mock.Mock(side_effect=KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        callback.on_train_begin()
    np.testing.assert_equal(model.get_weights(), now)


def test_expected_are_equal_shares_without_a_prior():
    model = sequential(layers.Dense(2, use_bias=False), shape=(100,))
    model.set_weights(weights_giving([80, 20]))
    with pytest.warns(GARWarning, match="class 1, with 20.00 % .* of 50.00 %"):
        CheckShares(model, np.eye(100), restores=False).on_train_end()


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
    keras.utils.set_random_seed(0)
    stack = layers.Dense(64, "relu"), layers.Dense(10)
    model = sequential(*stack, shape=(64,))
    pretrain(model, x[few], y[few], epochs=200, report_every=200, verbose=0)
    start, errors = model.get_weights(), {"before": error_rate(model, x, y)}
    for name in ("gar", "safe-gar"):
        model.set_weights(start)
        regularize(
            model, x[few], x, y_labeled=y[few], method=name, epochs=40,
            verbose=0,
        )  # fmt: skip
        errors[name] = error_rate(model, x, y)
    assert errors["safe-gar"] <= errors["before"]
    assert errors["gar"] > errors["before"] + 0.03


@pytest.mark.parametrize("prior", ["even", [1.0], [0.9, 0.9], 0.5, [None, 1]])
def test_what_are_no_shares_is_refused_when_the_method_is_made(prior):
    with pytest.raises(ValueError, match="class_prior must be"):
        SafeGAR(class_prior=prior)


def test_a_model_without_a_graph_is_refused():
    with pytest.raises(ValueError, match="SafeGAR scales.*Functional or Seq"):
        train(Subclassed(layers.Dense(3)), y_labeled=Y_L)
