"""The other methods against values worked out in float64 NumPy.

On JAX: KERAS_BACKEND=jax python -m pytest tests/methods
"""

from dataclasses import dataclass

import keras
import numpy as np
import oracle
import pytest
from blobs import blobs
from keras import layers, ops
from oracle import softmax
from said import said
from sources import Batches
from stacks import sequential

from gar_keras import (
    GAR,
    VAT,
    Consistency,
    CrossEntropy,
    EmbedCNN,
    Entropy,
    GraphActivityRegularization,
    MeanTeacher,
    PseudoLabel,
    RandomAffine,
    SafeGAR,
    attach,
    error_rate,
    pretrain,
    regularize,
)
from gar_keras.engine import autodiff
from gar_keras.engine.batches import BatchSampler, TrainingData, labeled_alone
from gar_keras.engine.streams import Stream
from gar_keras.methods import METHODS, Term, embed_cnn, method_of, preprocessing
from gar_keras.methods.base import Stage2, network_of
from gar_keras.models import is_regularized

W = np.array([[1.0, -0.5, 0.25], [0.5, 0.75, -1.0]])
# Four images without a label and two with one.
X = np.array(
    [[1, 2], [-1, 0.5], [0.25, -2], [2, 1], [-0.5, -0.5], [1.5, 0]], "float32"
)
Y = np.array([-1, -1, -1, -1, 2, 0])
U = Y < 0


def linear(*more):
    """A network `x W`, and what comes behind."""
    network = sequential(layers.Dense(3, use_bias=False), *more, shape=(2,))
    network.set_weights([W, *network.get_weights()[1:]])
    return network


def stage_2_of(method, step=0, network=None, seed=0):
    """A stage_2 of 100 steps at one of them, with two labels in a batch."""
    network = linear() if network is None else network
    method = method_of([method] if isinstance(method, Term) else method, {})
    stage_2 = Stage2(method, network, 3, 100, labeled_per_batch=2, seed=seed)
    stage_2.step.assign(step)
    return stage_2


def terms_of(stage_2):
    """The terms of the batch above, as floats by name."""
    logits = stage_2.network(X, training=True)
    return {
        term.name: float(term.weight * term.loss(stage_2, X, Y, logits))
        for term in stage_2.method
    }


P = softmax(X @ W)


def kl(p, q):
    return (p * np.log(p / q)).sum(-1)


def test_the_loss_is_that_of_the_labels_and_the_weighted_term():
    stage_2 = stage_2_of([CrossEntropy(), Entropy(0.25)])
    loss = stage_2.compute_loss(X, Y, stage_2.network(X), training=True)
    log_loss = oracle.log_loss(X[~U] @ W, Y[~U])
    entropy = -(P[U] * np.log(P[U])).sum(1).mean()
    assert float(loss) == pytest.approx(log_loss + 0.25 * entropy, rel=1e-5)
    logs = {m.name: float(m.result()) for m in stage_2.metrics}
    assert logs == pytest.approx(
        {"supervised": log_loss, "entropy": 0.25 * entropy}, rel=1e-5
    )
    assert int(stage_2.step) == 1
    evaluated = stage_2.compute_loss(X, Y, stage_2.network(X), training=False)
    assert float(evaluated) == 0
    assert int(stage_2.step) == 1


def test_a_global_policy_leaves_the_inputs_to_the_network(dtype_policy):
    stage_2 = stage_2_of("supervised")
    x = X + np.float32(1000.3)
    expected = np.array(stage_2(x, training=True))
    dtype_policy("mixed_bfloat16")
    mixed = stage_2_of("supervised", network=stage_2.network)
    found = np.array(mixed(x, training=True))
    np.testing.assert_array_equal(found, expected)


def test_weight_decay_of_the_network_stays_in_the_loss():
    logits = layers.Dense(3, use_bias=False, kernel_regularizer="l2")
    network = sequential(logits, shape=(2,))
    network.set_weights([W])
    stage_2 = stage_2_of("supervised", network=network)
    loss = stage_2.compute_loss(X, Y, network(X), training=True)
    expected = oracle.log_loss(X[~U] @ W, Y[~U]) + 0.01 * (W**2).sum()
    assert float(loss) == pytest.approx(expected, rel=1e-5)


def test_a_batch_without_labels_has_no_log_loss():
    assert float(CrossEntropy().loss(None, X, np.full(6, -1), X @ W)) == 0


@pytest.mark.parametrize(
    ("step", "alpha"), [(0, 0), (10, 0), (35, 1.5), (60, 3), (99, 3)]
)
def test_pseudo_label(step, alpha):
    # T1 = 10 and T2 = 60 of 100 steps; α_f = 3.
    found = terms_of(stage_2_of("pseudo-label", step))
    expected = alpha * -np.log(P[U].max(1)).mean()
    assert found["pseudo_label"] == pytest.approx(expected, rel=1e-5, abs=1e-5)


class Noise(layers.Layer):
    """Adds to the first logit how often it was called before."""

    def __init__(self):
        super().__init__()
        self.generator = keras.random.SeedGenerator(0)
        self.calls = self.add_weight(shape=(), trainable=False)
        self.built = True

    def call(self, x):
        before = self.calls * 1.0
        self.calls.assign(before + 1)
        return x + before * np.array([1.0, 0.0, 0.0], "float32")


@pytest.mark.parametrize(
    ("ramp", "step", "share"),
    [
        (0.4, 0, np.exp(-5)),
        (0.4, 20, np.exp(-1.25)),
        (0.4, 40, 1),
        (0.4, 80, 1),
        (0, 0, 1),
    ],
)
def test_pi_model(ramp, step, share):
    stage_2 = stage_2_of(Consistency(ramp=ramp), step, linear(Noise()))
    stage_2.network.layers[-1].calls.assign(0)
    second = softmax(X @ W + [1, 0, 0])
    expected = 100 * share * ((P - second) ** 2).mean()
    found = terms_of(stage_2)["consistency"]
    assert found == pytest.approx(expected, rel=1e-4)


def test_consistency_needs_noise():
    for network in (linear(), linear(layers.Dropout(0.0))):
        # A compiled model has metrics, which are no noise.
        network.compile(loss="mse")
        with pytest.raises(ValueError, match="Dropout layers"):
            Consistency().check(network, X)
    moved = sequential(RandomAffine(0.1), layers.Flatten(), shape=(4, 4, 1))
    Consistency().check(moved, X)


def test_the_teacher_after_three_steps():
    # The ramp ends with the first of the steps 19, 20, 21.
    method = [CrossEntropy(), MeanTeacher(ramp=0.2)]
    stage_2 = stage_2_of(method, 19)
    mean = W.copy()
    for shift, a in ((0.5, 0.99), (-1.0, 0.999), (2.0, 0.999)):
        stage_2.network.set_weights([W + shift])
        logits = stage_2.network(X, training=True)
        stage_2.compute_loss(X, Y, logits, training=True)
        mean = a * mean + (1 - a) * (W + shift)
    received = stage_2.teacher.get_weights()[0]
    np.testing.assert_allclose(received, mean, rtol=1e-6)
    assert not np.allclose(mean, W, rtol=1e-4)


def test_mean_teacher():
    stage_2 = stage_2_of(MeanTeacher(ramp=0.4), 20)
    student = W + 0.5 * np.eye(2, 3)
    stage_2.network.set_weights([student])
    mean = 0.99 * W + 0.01 * student
    difference = softmax(X @ student) - softmax(X @ mean)
    expected = 100 * np.exp(-1.25) * (difference**2).mean()
    found = terms_of(stage_2)["consistency"]
    assert found == pytest.approx(expected, rel=1e-4)


def test_the_teacher_is_what_is_evaluated():
    stage_2 = stage_2_of("mean-teacher")
    stage_2.network.set_weights([W + 1])
    np.testing.assert_allclose(stage_2(X, training=False), X @ W, rtol=1e-5)
    np.testing.assert_allclose(
        stage_2(X, training=True), X @ (W + 1), rtol=1e-5
    )
    ids = {id(v) for v in stage_2.trainable_variables}
    assert ids == {id(v) for v in stage_2.network.trainable_variables}


def test_the_teachers_noise_is_not_the_students():
    network = linear(layers.Dropout(0.5, seed=3))
    both = [
        stage_2_of("mean-teacher", network=network, seed=seed)
        for seed in (0, 0, 1)
    ]
    x = np.ones((50, 2), "float32")
    kept = [
        ops.convert_to_numpy(stage_2.teacher(x, training=True)) == 0
        for stage_2 in both
    ]
    student = ops.convert_to_numpy(network(x, training=True)) == 0
    np.testing.assert_array_equal(kept[0], kept[1])
    assert (kept[0] != kept[2]).any() and (kept[0] != student).any()


def first_direction(seed):
    """The random unit vectors that VAT starts from."""
    d = keras.random.normal(X.shape, seed=keras.random.SeedGenerator(seed))
    d = ops.convert_to_numpy(d).astype("float64")
    return d / np.linalg.norm(d, axis=1, keepdims=True)


def directions_by_differences(d, xi):
    """One power iteration of VAT, with gradients by finite differences."""
    x = X.astype("float64")
    slope = oracle.differences(
        lambda r: kl(P, softmax((x + r) @ W)).sum(), xi * d
    )
    return slope / np.linalg.norm(slope, axis=1, keepdims=True)


@pytest.mark.parametrize(("xi", "iterations"), [(1.0, 1), (0.5, 2)])
def test_vat(xi, iterations):
    method = VAT(epsilon=0.5, xi=xi, iterations=iterations)
    d = first_direction(seed=4)
    for _ in range(iterations):
        d = directions_by_differences(d, xi)
    stage_2 = stage_2_of(method, seed=4)
    r = method.perturbation(stage_2, ops.convert_to_tensor(X), X @ W)
    np.testing.assert_allclose(r, 0.5 * d, atol=1e-4)
    lds = kl(P, softmax((X + 0.5 * d) @ W)).mean()
    found = terms_of(stage_2_of(method, seed=4))
    assert found["lds"] == pytest.approx(lds, rel=1e-3)


def test_vat_with_entropy():
    one, both = (terms_of(stage_2_of(name)) for name in ("vat", "vat-entropy"))
    entropy = -(P * np.log(P)).sum(1).mean()
    assert both == pytest.approx(one | {"entropy": entropy}, rel=1e-4)


def test_vat_moves_the_images_that_the_network_sees():
    x = np.random.default_rng(0).integers(0, 256, (5, 2), "uint8")
    stack = layers.Rescaling(1 / 255), layers.Dense(3, use_bias=False)
    stored = sequential(*stack, shape=(2,), dtype="uint8")
    stored.set_weights([W])
    values = []
    for network, images in ((stored, x), (linear(), (x / 255).astype("f4"))):
        stage_2 = stage_2_of(VAT(), network=network)
        logits = network(images, training=True)
        values.append(VAT().loss(stage_2, images, Y, logits))
    assert float(values[0]) == pytest.approx(float(values[1]), rel=1e-4)
    assert float(values[0]) > 0


# What scales pixels, an epsilon, and whether a warning comes.
FRONTS = {
    "a layer": (layers.Rescaling(1 / 255), 2.5, False),
    "an operation": (lambda x: x / 255, 2.5, True),
    "a function": (layers.Lambda(lambda x: x / 255), 2.5, True),
    "a nested model": (
        keras.Sequential([layers.Rescaling(1 / 255)]), 2.5, True,
    ),
    "an epsilon of its own": (lambda x: x / 255, 600.0, False),
}  # fmt: skip


@pytest.mark.parametrize(
    ("scale", "epsilon", "is_told"), FRONTS.values(), ids=FRONTS
)
def test_vat_tells_where_it_moves_numbers_of_another_size(
    scale, epsilon, is_told
):
    source = keras.Input((2,))
    network = keras.Model(source, layers.Dense(3)(scale(source)))
    term = VAT(epsilon=epsilon)
    pixels = np.random.default_rng(0).uniform(0, 255, (9, 2))
    texts = said(lambda: term.check(network, pixels))
    assert len(texts) == is_told
    assert all("moves the examples by 2.5, where they" in t for t in texts)


@pytest.mark.parametrize("branches", ["scaled and raw", "scaled twice"])
def test_vat_leaves_the_preprocessing_of_branches_in_the_network(branches):
    x = keras.Input((2,))
    scaled = layers.Rescaling(1 / 4)(x)
    other = x if branches == "scaled and raw" else layers.Rescaling(8.0)(x)
    joined = layers.Concatenate()([scaled, other])
    network = keras.Model(x, layers.Dense(3)(joined))
    front, rest = preprocessing.split(network, "VAT")
    images = np.array([[1.0, -2.0], [3.0, 5.0]], "float32")
    assert front == []
    np.testing.assert_array_equal(rest(images), network(images))


def test_embed_cnn():
    # Two images, their two neighbours, and two labelled images.
    found = terms_of(stage_2_of(EmbedCNN(margin=0.9)))
    near = ((P[:2] - P[2:4]) ** 2).sum(1)
    far = ((P[[0, 1]] - P[[1, 0]]) ** 2).sum(1)
    expected = near.mean() + np.maximum(0.9 - far, 0).mean()
    assert found["margin"] == pytest.approx(expected, rel=1e-5)


def test_embed_cnn_adds_neighbours_to_the_same_images():
    sampler = BatchSampler(7, 3, 4, 2, seed=5)
    neighbors = np.arange(7)[:, None] * 10 + [1, 2, 3]
    pairs = embed_cnn._Pairs(sampler, neighbors)
    order, chosen = sampler.epoch(2)
    doubled, same_chosen = pairs.epoch(2)
    np.testing.assert_array_equal(chosen, same_chosen)
    assert (pairs.steps, pairs.batch, pairs.images_per_epoch) == (3, 6, 14)
    for step in range(3):
        mine, theirs = np.split(doubled[6 * step : 6 * step + 6], 2)
        np.testing.assert_array_equal(mine, order[3 * step : 3 * step + 3])
        np.testing.assert_array_equal(theirs // 10, mine)
    np.testing.assert_array_equal(doubled, pairs.epoch(2)[0])
    assert len(set(doubled[doubled > 9] % 10)) > 1


def test_embed_cnn_refuses_what_has_no_graph_before_training():
    with pytest.raises(ValueError, match="neighbors"):
        EmbedCNN(neighbors=4).check(linear(), X[:4])
    stream = Stream("x_unlabeled", Batches(X))
    with pytest.raises(ValueError, match="x_unlabeled of type Batches"):
        EmbedCNN().check(linear(), stream)


def test_a_layer_of_another_number_of_classes_is_refused():
    layer = GraphActivityRegularization()
    layer.build((None, 4))
    with pytest.raises(ValueError, match="Make a new layer for each model"):
        GAR(layer=layer).check(linear(), X)
    with pytest.raises(ValueError, match="incompatible with the layer"):
        attach(linear(), layer)


def test_a_refused_optimizer_leaves_the_weights():
    model = linear()
    before = model.get_weights()
    with pytest.raises(ValueError, match="nonsense"):
        regularize(model, X[~U], X, y_labeled=Y[~U], optimizer="nonsense")
    np.testing.assert_equal(model.get_weights(), before)


def test_neighbours_are_the_nearest_others():
    x = np.array([0, 1, 3, 7, 7], "uint8").reshape(5, 1, 1, 1)
    received = embed_cnn.nearest_neighbors(x, 2)
    assert received.tolist() == [[1, 2], [0, 2], [1, 0], [4, 2], [3, 2]]


def test_supervised_sees_the_labelled_images_alone():
    sampler = BatchSampler(7, 3, 4, 2, seed=5)
    data = TrainingData(sampler, X, X[:4], y_labeled=Y[:4])
    alone = labeled_alone(data).sampler
    _, chosen = sampler.epoch(3)
    order, none = alone.epoch(3)
    assert (alone.steps, alone.batch, alone.images_per_epoch) == (3, 2, 6)
    np.testing.assert_array_equal(order.reshape(3, 2), chosen)
    assert none.shape == (3, 0)


@pytest.mark.parametrize(
    ("method", "wrong"),
    [
        (Entropy, {"weight": -1.0}),
        (Entropy, {"of_labeled": 1}),
        (PseudoLabel, {"end": 0.1}),
        (Consistency, {"ramp": 1.5}),
        (Consistency, {"keeps_dropout": "no"}),
        (MeanTeacher, {"decay": 1.0}),
        (VAT, {"epsilon": 0.0}),
        (VAT, {"xi": 0.0}),
        (EmbedCNN, {"neighbors": 0}),
        (GAR, {"layer": "gar"}),
        (GAR, {"layer": np.ones((9, 9))}),
        (GAR, {"weight": "1"}),
    ],
)
def test_impossible_settings_are_refused(method, wrong):
    with pytest.raises(ValueError, match="^[^\n]*Received: [^\n]*$"):
        method(**wrong)


def test_gradient_moves_the_state_of_noise_once():
    layer = layers.Dropout(0.5, seed=7)
    x = ops.ones((4, 8))
    layer(x, training=True)
    before = ops.convert_to_numpy(layer.seed_generator.state)
    slope = autodiff.gradient(lambda z: ops.sum(layer(z, training=True)), x)
    after = ops.convert_to_numpy(layer.seed_generator.state)
    assert (after.astype("int64") - before).tolist() == [0, 1]
    assert set(np.unique(slope)) == {0, 2}


def images(m, seed=0):
    """The blobs as images of 4x4, of which each half is one number.

    So a term can move the pixels. The norm is that of the two numbers.
    """
    x, y = blobs(m, seed, noise=1.2)
    halves = np.repeat(np.repeat(x[:, None, :, None], 4, axis=1), 2, axis=2)
    return halves / np.sqrt(8).astype("float32"), y


X_L, Y_L = images(6)
X_U, _ = images(42, seed=1)
X_V, Y_V = images(150, seed=2)


def small():
    keras.utils.set_random_seed(3)
    return sequential(
        layers.Flatten(),
        layers.Dense(8, activation="relu"),
        layers.Dropout(0.2, seed=1),
        layers.Dense(3),
        shape=(4, 4, 1),
    )


@pytest.fixture(scope="module")
def pretrained():
    """A network after a short stage 1, by which it is often wrong."""
    model = small()
    rng = np.random.default_rng(2)
    # The same on every backend.
    model.set_weights([0.5 * rng.normal(size=w.shape) for w in model.weights])
    pretrain(model, X_L, Y_L, epochs=2, report_every=2, verbose=0)
    return model, model.get_weights(), error_rate(model, X_V, Y_V)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in METHODS if name != "gar"])
def test_every_method_learns(name, pretrained):
    model, weights, error_before = pretrained
    model.set_weights(weights)
    # In 40 steps, not the 100,000 of the papers.
    options = {
        "pi": {"weight": 10.0},
        "mean-teacher": {"weight": 10.0, "decay_in_ramp": 0.5, "decay": 0.5},
    }.get(name, {})
    history = regularize(
        model, X_L, X_U, y_labeled=Y_L, method=name, **options,
        epochs=8, labeled_per_batch=3, unlabeled_per_batch=10,
        keep_best=False, validation_data=(X_V, Y_V), verbose=0,
    )  # fmt: skip
    assert vars(history.model.method[-1]).items() >= options.items()
    curve = history.history
    of_gar = {"affinity", "balance", "regularization", "classes_in_use"}
    assert set(curve) - of_gar == {
        "loss", "val_error", "val_accuracy", "val_loss",
        *(term.name for term in history.model.method),
    } - of_gar  # fmt: skip
    clips = history.model.optimizer.global_clipnorm is not None
    assert clips == (name == "safe-gar")
    # The batches of an epoch are 5, the last of them of 2 images.
    assert int(history.model.step) == 40
    assert error_rate(model, X_V, Y_V) == curve["val_error"][-1]
    assert error_before > 0.2
    assert curve["val_error"][-1] < 0.5 * error_before
    assert curve["supervised"][-1] < curve["supervised"][0]


# Lists of terms


@dataclass(frozen=True)
class Seen(Term):
    """Keeps what a term is given."""

    name = "seen"

    def loss(self, stage_2, x, y, logits):
        stage_2.seen = x, y
        return 3.0 * ops.mean(logits)


def test_a_term_is_weighted_and_logged_and_sees_no_label_as_minus_1():
    stage_2 = stage_2_of([Seen(0.5)])
    loss = stage_2.compute_loss(X, None, stage_2.network(X), training=True)
    assert float(loss) == pytest.approx(1.5 * (X @ W).mean(), rel=1e-5)
    (mean,) = (m for m in stage_2.metrics if m.name == "seen")
    assert float(mean.result()) == float(loss)
    np.testing.assert_array_equal(stage_2.seen[1], np.full(6, -1))


def test_a_method_has_settings_by_field_and_weights_by_name():
    for name, settings, expected in (
        ("vat", {"epsilon": 1.0, "weight": 2.0, "supervised": 0.5},
         [CrossEntropy(0.5), VAT(2.0, epsilon=1.0)]),
        ("vat-entropy", {"entropy": 0.5, "weight": 0.25},
         [CrossEntropy(), VAT(0.25), Entropy(0.5, of_labeled=True)]),
        ("embed-cnn", {"margin": 0.5}, [CrossEntropy(), EmbedCNN(margin=0.5)]),
        ("safe-gar", {"affinity": 2.0, "supervised": 0.0},
         [SafeGAR(affinity=2.0), CrossEntropy(0.0)]),
        ("supervised", {"supervised": 2.0}, [CrossEntropy(2.0)]),
    ):  # fmt: skip
        assert method_of(name, settings) == expected
    assert METHODS["vat"] == [CrossEntropy(), VAT()]


@pytest.mark.parametrize(
    ("method", "settings", "message"),
    [
        (
            SafeGAR(),
            {},
            r"\[gar_keras.SafeGAR\(\), gar_keras.CrossEntropy\(\)\]",
        ),
        ([], {}, "a list of terms"),
        (3, {}, "Received: method=3"),
        (["gar"], {}, "a list of terms"),
        (
            [GAR(), CrossEntropy(), SafeGAR()],
            {},
            "GAR and SafeGAR, of the name",
        ),
        ([Consistency(), MeanTeacher()], {}, "name of its own"),
        ([GAR()], {"weight": 2.0}, "Received: weight beside the list"),
        ("vat", {"neighbors": 3}, "no argument 'neighbors'.*epsilon"),
    ],
)
def test_what_is_no_list_of_terms_is_refused(method, settings, message):
    with pytest.raises((TypeError, ValueError), match=message) as e:
        method_of(method, settings)
    assert "\n" not in str(e.value)


def test_dropout_stays_where_a_term_wants_it():
    model = linear(layers.Dropout(0.5))
    for method, stays in (
        ([GAR(), CrossEntropy()], False),
        ([GAR(), Consistency()], True),
        ([Consistency(keeps_dropout=False), CrossEntropy()], False),
        ([PseudoLabel(), VAT()], True),
    ):
        kinds = map(type, network_of(method, model).layers)
        assert (layers.Dropout in kinds) == stays


@pytest.mark.parametrize("others", [[], [CrossEntropy()]])
def test_a_layer_of_gar_in_the_model_is_for_gar_alone(others):
    model = attach(linear())
    if not others:
        assert is_regularized(network_of([GAR()], model))
    with pytest.raises(ValueError, match="already holds a GAR layer.*detach"):
        network_of([GAR(1.0 if others else 0.5), *others], model)
    # Without a term of GAR it is left out.
    assert not is_regularized(network_of([CrossEntropy(), VAT()], model))


@pytest.mark.slow
@pytest.mark.parametrize(
    "terms",
    [
        [SafeGAR(), CrossEntropy(), VAT(epsilon=0.5)],
        [EmbedCNN(neighbors=3), SafeGAR(), CrossEntropy()],
        [GAR(0.5), MeanTeacher(1.0), CrossEntropy(), Entropy(0.1)],
    ],
    ids=["VAT", "neighbours", "teacher"],
)
def test_the_order_of_a_list_does_not_count(terms, pretrained):
    _, start, _ = pretrained
    found = []
    for method in (terms, terms[::-1]):
        # A model of its own, so that the noise of Dropout begins anew.
        model = small()
        model.set_weights(start)
        history = regularize(
            model, X_L, X_U, y_labeled=Y_L, method=method, epochs=2,
            labeled_per_batch=3, unlabeled_per_batch=14, verbose=0,
        ).history  # fmt: skip
        found.append([model.get_weights(), history])
    (mine, curve), (other, again) = found
    for a, b in zip(mine, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    assert curve.keys() == again.keys()
    for name, values in curve.items():
        assert again[name] == pytest.approx(values, rel=1e-4, abs=1e-5)
    # The loss is the sum of the terms.
    total = sum(np.array(curve[term.name]) for term in terms)
    np.testing.assert_allclose(curve["loss"], total, rtol=1e-5)


# Augmentation by layers of the model

IMAGES = np.random.default_rng(0).integers(0, 256, (6, 5, 5, 1), "uint8")


def augmented(*augmentation):
    keras.utils.set_random_seed(0)
    return sequential(
        *augmentation, layers.Rescaling(1 / 255), layers.Flatten(),
        layers.Dense(3), shape=(5, 5, 1), dtype="uint8",
    )  # fmt: skip


@pytest.mark.parametrize(
    "augmentation",
    [
        lambda: [RandomAffine(0.3, shift=1, seed=1)],
        lambda: [layers.RandomFlip(seed=1)],
        lambda: [keras.Sequential([layers.RandomFlip(seed=1)])],
    ],
    ids=["affine", "flip", "inner model"],
)
def test_vat_moves_images_that_are_drawn_once(augmentation):
    stage_2 = stage_2_of(VAT(epsilon=0.5), network=augmented(*augmentation()))
    assert len(stage_2.front) == 2
    drawn = []
    rest = stage_2.rest
    stage_2.rest = lambda x, training: (
        drawn.append(x) or rest(x, training=training)
    )
    lds = VAT(epsilon=0.5).loss(stage_2, IMAGES, Y, None)
    # Between them is the step that finds the direction.
    clean, moved = map(ops.convert_to_numpy, (drawn[0], drawn[-1]))
    lengths = np.linalg.norm((moved - clean).reshape(6, -1), axis=1)
    np.testing.assert_allclose(lengths, 0.5, rtol=1e-4)
    p, q = (softmax(ops.convert_to_numpy(rest(x))) for x in (clean, moved))
    assert float(lds) == pytest.approx(kl(p, q).mean(), rel=1e-3)


def test_adversarial_examples_do_not_count_in_the_statistics():
    stack = layers.BatchNormalization(), layers.Dense(3)
    stage_2 = stage_2_of(VAT(), network=sequential(*stack, shape=(2,)))
    statistics = stage_2.network.layers[0].non_trainable_weights
    before = [ops.convert_to_numpy(value) for value in statistics]
    VAT().loss(stage_2, X, Y, stage_2.network(X))
    np.testing.assert_equal([*map(ops.convert_to_numpy, statistics)], before)


def test_integers_that_are_no_images_are_refused_before_training():
    for dtype, message in (
        ("int32", "takes int32"),
        ("float32", "Embedding takes whole numbers"),
    ):
        inputs = keras.Input((5,), dtype=dtype)
        features = layers.Embedding(4, 3)(inputs)
        logits = layers.Dense(3)(layers.Flatten()(features))
        with pytest.raises(ValueError, match=message):
            VAT().check(keras.Model(inputs, logits), np.zeros((4, 5), dtype))


class Words(layers.Layer):
    """Looks up indices in layers of its own."""

    def __init__(self):
        super().__init__()
        self.table = layers.Embedding(4, 3)

    def build(self, shape):
        self.table.build(shape)

    def call(self, x):
        return self.table(ops.cast(x, "int32"))


@pytest.mark.slow
@pytest.mark.parametrize("first", [Words(), layers.Reshape((5, 1))])
def test_moved_examples_that_change_nothing_are_told(first):
    keras.utils.set_random_seed(0)
    model = sequential(first, layers.Flatten(), layers.Dense(3), shape=(5,))
    x = np.arange(60).reshape(12, 5) % 3 + 0.5
    options = {"epochs": 2, "verbose": 0, "epsilon": 0.1, "xi": 0.1}
    texts = said(
        lambda: regularize(
            model, x[:6], x, y_labeled=[0, 1, 2] * 2, method="vat", **options
        )
    )
    told = sum("VAT does nothing" in text for text in texts)
    assert told == isinstance(first, Words)


def test_augmentation_of_keras_is_compiled_on_jax():
    if keras.backend.backend() != "jax":
        pytest.skip("JAX runs what is not compiled operation by operation")
    model = augmented(layers.RandomRotation(0.1))
    history = regularize(
        model, IMAGES, IMAGES, y_labeled=[0, 1, 2] * 2, epochs=1, verbose=0,
        method=[CrossEntropy(), Consistency()],
    )  # fmt: skip
    assert history.model.jit_compile
