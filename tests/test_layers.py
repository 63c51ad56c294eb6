"""The layer, and that it does what the activity regularizer does."""

import json

import keras
import numpy as np
import oracle
import pytest
from keras import layers, ops
from said import said
from stacks import Subclassed, Untold, functional, sequential

from gar_keras import (
    GARWarning,
    GraphActivityRegularization,
    GraphActivityRegularizer,
    SparseCategoricalAccuracy,
)
from gar_keras.engine.optimizers import SGD
from gar_keras.layers import PerImageStandardization

BACKEND = keras.backend.backend()

# Large enough for each term to be seen in the loss.
COEFFICIENTS = dict(affinity=1.5, balance=0.5, frobenius=0.25)
FEATURES, CLASSES = 4, 3
PRIOR = (0.5, 0.25, 0.25)
RATE = 0.1


def kernel():
    return np.random.default_rng(1).normal(size=(FEATURES, CLASSES)) / 2


def inputs(m):
    return np.random.default_rng(2).normal(size=(m, FEATURES)).astype("float32")


def dense(**options):
    weights = keras.initializers.Constant(kernel())
    return layers.Dense(CLASSES, kernel_initializer=weights, **options)


def layer_route(**options):
    return [dense(), GraphActivityRegularization(**COEFFICIENTS, **options)]


def regularizer_route(**options):
    regularizer = GraphActivityRegularizer(**COEFFICIENTS, **options)
    return [dense(activity_regularizer=regularizer)]


ROUTES = {"layer": layer_route, "activity regularizer": regularizer_route}
both_routes = pytest.mark.parametrize("route", ROUTES.values(), ids=ROUTES)


def after_one_step(model, x, **options):
    """The loss of one step of SGD on all of x, and the kernel it leads to."""
    optimizer = keras.optimizers.SGD(RATE)
    if keras.config.dtype_policy().name == "mixed_float16":
        # The scale that Keras starts with makes it skip the first steps.
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer, 1.0)
    model.compile(optimizer, loss=None, **options)
    history = model.fit(x, batch_size=len(x), epochs=1, verbose=0)
    return history.history["loss"][0], model.get_weights()[0]


def expected_after_one_step(*batches, **changes):
    """Where the losses of these batches add up."""

    def loss(W):
        options = {**COEFFICIENTS, **changes}
        return sum(oracle.loss(x @ W, **options) for x in batches)

    W = kernel()
    return loss(W), W - RATE * oracle.differences(loss, W)


def assert_step(received, expected, rtol):
    assert received[0] == pytest.approx(expected[0], rel=rtol)
    np.testing.assert_allclose(
        received[1] - kernel(),
        expected[1] - kernel(),
        rtol=rtol,
        atol=rtol / 50,
    )


# Both routes


@pytest.mark.slow
@both_routes
@pytest.mark.parametrize(
    ("m", "kind", "options", "policy", "rtol"),
    [
        (1, sequential, {"jit_compile": True}, "float32", 1e-4),
        (128, functional, {}, "float32", 1e-4),
        (7, Subclassed, {"run_eagerly": True}, "float32", 1e-4),
        (7, Untold, {}, "float32", 1e-4),
        # The Dense layer computes in half precision: only that is inexact.
        (128, sequential, {}, "mixed_float16", 1e-2),
        (128, sequential, {}, "mixed_bfloat16", 8e-2),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_step_in_fit_is_the_papers(
    route, m, kind, options, policy, rtol, dtype_policy
):
    dtype_policy(policy)
    x = inputs(m)
    received = after_one_step(kind(*route()), x, **options)
    assert_step(received, expected_after_one_step(x), rtol)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("route", "suffix"),
    [
        (layer_route, ".keras"),
        (layer_route, ".h5"),
        (regularizer_route, ".keras"),
    ],
)
def test_step_of_a_loaded_model(route, suffix, tmp_path):
    model, formula = sequential(*route(class_prior=PRIOR)), {}
    if route is layer_route:
        formula = {"affinity": 0.25}
        model.layers[-1].set_coefficients(**formula)
    path = tmp_path / f"model{suffix}"
    model.save(path)
    x = inputs(7)
    model = keras.saving.load_model(path, compile=False)
    received = after_one_step(model, x)
    expected = expected_after_one_step(x, class_prior=PRIOR, **formula)
    assert_step(received, expected, rtol=1e-4)


@pytest.mark.slow
@both_routes
def test_adds_to_a_supervised_loss_in_batches_of_several_sizes(route):
    x = inputs(17)
    y = np.arange(17) % CLASSES
    model = sequential(*route())
    model.compile(keras.optimizers.SGD(0.0), cross_entropy())
    history = model.fit(
        x, y, batch_size=7, shuffle=False, validation_data=(x, y), verbose=0
    ).history
    parts = [x[:7], x[7:14], x[14:]]
    # Keras weighs the losses of an epoch by the sizes of their batches.
    expected = sum(
        len(part) * oracle.loss(part @ kernel(), **COEFFICIENTS)
        for part in parts
    )
    log_loss = oracle.log_loss(x @ kernel(), y)
    assert history["loss"] == pytest.approx([expected / 17 + log_loss], 1e-5)
    assert history["val_loss"] == pytest.approx([log_loss], rel=1e-5)


def cross_entropy():
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


# Called twice in a step


def pairs(m):
    return np.stack([inputs(m), 2 - inputs(m)], axis=1)


def chain(*stack):
    def call(x):
        for layer in stack:
            x = layer(x)
        return x

    return call


@pytest.mark.slow
@both_routes
@pytest.mark.parametrize(
    "towers", [chain, sequential, Subclassed], ids=["layers", "model", "own"]
)
def test_each_call_of_a_siamese_network_counts(route, towers):
    x = pairs(7)
    tower, images = towers(*route()), keras.Input((2, FEATURES))
    model = keras.Model(images, [tower(images[:, i]) for i in range(2)])
    model.compile(keras.optimizers.SGD(RATE), loss=None)
    if BACKEND == "jax" and route is regularizer_route:
        with pytest.raises(ValueError, match="called again"):
            model.fit(x, batch_size=7, verbose=0)
        return
    history = model.fit(x, batch_size=7, verbose=0).history
    received = history["loss"][0], model.get_weights()[0]
    expected = expected_after_one_step(x[:, 0], x[:, 1])
    assert_step(received, expected, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(keras, "remat"), reason="Keras before 3.9")
def test_layer_made_in_a_remat_scope_adds_its_loss():
    x = inputs(7)
    with keras.RematScope(mode="full"):
        regularization = GraphActivityRegularization(**COEFFICIENTS)
    received = after_one_step(sequential(dense(), regularization), x)
    assert_step(received, expected_after_one_step(x), rtol=1e-4)


def activated(activation):
    return lambda: [dense(activation=activation)]


PROBABILITIES = {
    "layer": (lambda: [dense(), layers.Softmax(name="last")], "softmax"),
    "operation": (lambda: [dense(), ops.softmax], "softmax"),
    "model": (lambda: [sequential(dense(), layers.Softmax())], "softmax"),
    "sigmoid": (activated("sigmoid"), "sigmoid"),
    "relu": (activated("relu"), None),
}


@pytest.mark.parametrize(
    "stack, activation", PROBABILITIES.values(), ids=PROBABILITIES
)
def test_gar_of_probabilities_warns(stack, activation):
    stack = [*stack(), GraphActivityRegularization()]
    told = said(lambda: functional(*stack)(inputs(7)))
    assert len(told) == (activation is not None)
    assert all(f"activation='{activation}'" in text for text in told)


def test_the_regularizer_of_probabilities_warns():
    (layer,) = regularizer_route()
    layer.activation = keras.activations.softmax
    with pytest.warns(GARWarning, match="activation='softmax'"):
        functional(layer)(inputs(7))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("policy", [None, "mixed_bfloat16"])
def test_output_is_the_very_same_tensor(dtype, policy):
    Z = ops.cast(oracle.logits(7, 3), dtype)
    layer = GraphActivityRegularization(dtype=policy)
    assert layer(Z) is Z


@pytest.mark.parametrize("shape", [(None, 1), (None, 4, 3)], ids=str)
def test_anything_but_a_matrix_is_refused_when_a_model_is_made(shape):
    with pytest.raises(ValueError, match="n of at least 2"):
        GraphActivityRegularization()(keras.KerasTensor(shape))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [sequential, Subclassed])
def test_history_has_the_mean_of_each_term_over_the_steps(kind):
    x, y = inputs(24), np.arange(24) % CLASSES
    model = kind(*layer_route())
    model.compile(keras.optimizers.SGD(0.0), cross_entropy())
    history = model.fit(
        x, y, batch_size=8, epochs=2, shuffle=False, validation_data=(x, y),
        verbose=0,
    ).history  # fmt: skip
    Z = [part @ kernel() for part in np.split(x, 3)]
    B = np.maximum(Z, 0)
    terms = {
        "affinity": np.mean([oracle.affinity(b) for b in B]),
        "balance": np.mean([oracle.balance(b) for b in B]),
        "regularization": np.mean([oracle.loss(z, **COEFFICIENTS) for z in Z]),
        # Too few examples to miss a class.
        "classes_in_use": CLASSES,
    }
    expected = {f"val_{name}": value for name, value in terms.items()} | terms
    log_loss = oracle.log_loss(x @ kernel(), y)
    expected["val_loss"] = log_loss
    expected["loss"] = log_loss + terms["regularization"]
    assert set(history) == set(expected)
    for name, values in history.items():
        assert values == pytest.approx([expected[name]] * 2, rel=1e-5)


def metric_names(layer):
    return [metric.name for metric in layer.metrics]


def test_metrics_of_a_layer_carry_its_name_unless_that_is_a_default():
    for _ in range(2):
        assert metric_names(GraphActivityRegularization()) == [
            "affinity", "balance", "regularization", "classes_in_use",
        ]  # fmt: skip
    assert metric_names(GraphActivityRegularization(0, name="digits")) == [
        "digits_balance", "digits_regularization", "digits_classes_in_use",
    ]  # fmt: skip


def test_set_coefficients_changes_the_loss():
    Z = oracle.logits(7, 3)
    layer = GraphActivityRegularization(**COEFFICIENTS)
    with pytest.raises(ValueError, match="Received: balance=-1"):
        layer.set_coefficients(affinity=1.0, balance=-1.0)
    without = GraphActivityRegularization(affinity=0)
    with pytest.raises(ValueError, match="a term .affinity.*balance, frob"):
        without.set_coefficients(affinity=1.0)
    assert layer.coefficients == COEFFICIENTS
    layer.set_coefficients(affinity=7, frobenius=0)
    layer(Z, training=True)
    assert layer.coefficients == {"affinity": 7, "balance": 0.5, "frobenius": 0}
    assert float(layer.losses[0]) == pytest.approx(
        oracle.loss(Z, 7, 0.5, 0), rel=1e-5
    )


def fit_with_coefficients_between_steps(sync):
    """The losses of two epochs, and the traces before each of their steps."""
    traces, counts = [], []

    def noted(x):
        traces.append(x.shape)
        return x

    regularization = GraphActivityRegularization(**COEFFICIENTS)
    model = sequential(layers.Lambda(noted), dense(), regularization)
    model.compile(keras.optimizers.SGD(0.0), loss=None)

    def set_to_number_of_step(batch, logs):
        if sync:
            model.jax_state_sync()
        regularization.set_coefficients(affinity=batch)
        counts.append(len(traces))

    between = keras.callbacks.LambdaCallback(
        on_train_batch_begin=set_to_number_of_step
    )
    history = model.fit(
        inputs(24), batch_size=8, epochs=2, shuffle=False, verbose=0,
        callbacks=[between],
    )  # fmt: skip
    return history.history["loss"], counts


@pytest.mark.slow
def test_coefficients_change_between_steps_without_a_new_trace():
    found, (_, *counts) = fit_with_coefficients_between_steps(BACKEND == "jax")
    parts = np.split(inputs(24) @ kernel(), 3)
    expected = [
        oracle.loss(Z, **{**COEFFICIENTS, "affinity": step})
        for step, Z in enumerate(parts)
    ]
    assert found == pytest.approx([np.mean(expected)] * 2, rel=1e-5)
    assert counts == counts[:1] * 5


@pytest.mark.skipif(BACKEND != "jax", reason="fit of JAX takes the weights")
def test_change_that_jax_would_lose_is_refused():
    with pytest.raises(RuntimeError, match=r"jax_state_sync\(\)"):
        fit_with_coefficients_between_steps(sync=False)


OF_BOTH_ROUTES = dict(
    affinity=0.0, balance=1.0, frobenius=0.5, frobenius_of="Z",
    balance_of="column sums",
)  # fmt: skip
OF_THE_LAYER = OF_BOTH_ROUTES | dict(balance_memory=0.5, name="mine")
OF_METRICS = dict(ignore_class=7, name="mine")
CONFIGS = [
    (GraphActivityRegularizer, OF_BOTH_ROUTES),
    (GraphActivityRegularization, OF_THE_LAYER),
    (GraphActivityRegularization, OF_THE_LAYER | {"class_prior": [*PRIOR]}),
    (SparseCategoricalAccuracy, OF_METRICS),
    (SGD, dict(decay=0.5, warmup_steps=7, clipnorm=1.0, momentum=0.3)),
]


@pytest.mark.parametrize(("kind", "options"), CONFIGS)
def test_config_round_trip(kind, options):
    made = kind(**options)
    config = json.loads(json.dumps(keras.saving.serialize_keras_object(made)))
    again = keras.saving.deserialize_keras_object(config)
    assert type(again) is kind
    assert again.get_config() == made.get_config()
    assert again.get_config().items() >= options.items()
    # A model without a prior loads where priors are not known.
    assert ("class_prior" in config["config"]) == ("class_prior" in options)


@pytest.mark.slow
@pytest.mark.parametrize("to_the_layer", [True, False])
def test_weights_fit_with_and_without_the_layer(to_the_layer, tmp_path):
    source = sequential(layers.Dense(CLASSES))
    target = sequential(layers.Dense(CLASSES), *layer_route()[1:])
    layer = target.layers[-1]
    layer.set_coefficients(affinity=0.25)
    if not to_the_layer:
        source, target = target, source
    target.set_weights(source.get_weights())
    np.testing.assert_equal(target.get_weights(), source.get_weights())
    source.set_weights([weight + 1 for weight in source.get_weights()])
    source.save_weights(tmp_path / "w.weights.h5")
    target.load_weights(tmp_path / "w.weights.h5")
    np.testing.assert_equal(target.get_weights(), source.get_weights())
    assert layer.coefficients["affinity"] == 0.25


def test_a_file_of_weights_changes_no_coefficient(tmp_path):
    def model(**options):
        layer = GraphActivityRegularization(**options, balance_memory=0.5)
        return sequential(dense(), layer)

    source, target = model(), model(affinity=0.5, balance=0.25, frobenius=0.0)
    source(inputs(7), training=True)
    source.save_weights(tmp_path / "w.weights.h5")
    target.load_weights(tmp_path / "w.weights.h5")
    assert target.layers[-1].coefficients == {"affinity": 0.5, "balance": 0.25}
    # Shares of a balance_memory are state, and come with them.
    its = [m.layers[-1]._shares.numpy().tolist() for m in (target, source)]
    assert its[0] == its[1] and len(set(its[0])) > 1


@pytest.mark.parametrize("balance", [0.0, 2.0])
def test_a_clone_has_the_coefficients_in_force(balance):
    model = sequential(dense(), GraphActivityRegularization())
    model.layers[-1].set_coefficients(affinity=1.25, balance=balance)
    copies = [keras.models.clone_model(model)]
    copies.append(keras.Sequential.from_config(model.get_config()))
    for copy in copies:
        copy.build((None, FEATURES))
        copy.set_weights(model.get_weights())
        layer = copy.layers[-1]
        assert layer.coefficients == model.layers[-1].coefficients
        for each in (model, copy):
            each(inputs(7), training=True)
        assert float(copy.losses[0]) == float(model.losses[0])
        # GARAfter finds the coefficients with which it switches terms on.
        assert layer.made_with == model.layers[-1].made_with
    plain = GraphActivityRegularization()
    assert "in_force" not in plain.get_config()


# PerImageStandardization


@pytest.mark.parametrize("value", [0.1, 3e37])
def test_image_of_one_value_becomes_zeros(value):
    # The mean of so many floats is not the value itself: it is rounded.
    x = np.full((2, 99, 99, 3), value, "float32")
    assert not np.any(PerImageStandardization()(x))


def test_each_image_is_standardized_alone():
    x = np.random.default_rng(0).integers(0, 256, (5, 4, 4, 3), "uint8")
    layer = PerImageStandardization(dtype="mixed_float16")
    received = ops.convert_to_numpy(layer(x))
    assert received.dtype == "float32"
    for i in range(5):
        expected = (x[i] - x[i].mean()) / x[i].std()
        np.testing.assert_allclose(received[i], expected, rtol=1e-4, atol=1e-6)


def test_faint_image_is_standardized_all_the_same():
    x = np.full((1, 300, 300, 1), 255, "uint8")
    x[0, 0, 0] = 254
    received = ops.convert_to_numpy(PerImageStandardization()(x))
    # One of m values differs: it comes to -sqrt(m - 1).
    assert received[0, 0, 0, 0] == pytest.approx(-np.sqrt(300**2 - 1), rel=0.01)
