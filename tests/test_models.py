"""The paper's networks, and models with and without the loss of GAR."""

import gc
import weakref

import keras
import numpy as np
import oracle
import pytest
from keras import layers, ops
from said import said
from stacks import Subclassed, functional, sequential

import gar_keras
from gar_keras import (
    GraphActivityRegularization,
    GraphActivityRegularizer,
    attach,
    cnn6,
    cnn9,
    detach,
    regularize,
    without_dropout,
)
from gar_keras.engine.graphs import ensure_built
from gar_keras.models import is_regularized, stage_2_network

# The networks


def kinds(model):
    return [
        f"{type(layer).__name__} {layer.rate}"
        if isinstance(layer, layers.Dropout)
        else type(layer).__name__
        for layer in model.layers
    ]


CONV = "Conv2D"
CNN6 = [
    "InputLayer",
    CONV, CONV, "MaxPooling2D", "Dropout 0.2",
    CONV, CONV, "MaxPooling2D", "Dropout 0.3",
    "Flatten", "Dense", "Dropout 0.5", "Dense",
]  # fmt: skip
THIRD_BLOCK = [CONV, CONV, CONV, "MaxPooling2D", "Dropout 0.4"]
CNN9 = [*CNN6[:-4], *THIRD_BLOCK, *CNN6[-4:]]
NETWORKS = {"cnn6": (cnn6, CNN6), "cnn9": (cnn9, CNN9)}


@pytest.mark.parametrize("make, expected", NETWORKS.values(), ids=NETWORKS)
def test_layers_of_a_network(make, expected):
    model = make((8, 8, 1))
    assert kinds(model) == expected
    for layer in model.layers:
        if isinstance(layer, layers.Conv2D):
            assert layer.kernel_size == (3, 3)
            assert layer.padding == "same"
            assert layer.activation is keras.activations.relu
    logits = model.layers[-1]
    assert logits.name == "logits"
    assert logits.activation is keras.activations.linear


@pytest.mark.parametrize("make", [cnn6, cnn9])
def test_dtype_of_the_images(make):
    stored = {"preprocessing": layers.Rescaling(1 / 255)}
    for options, dtype in (
        ({}, "float32"),
        (stored, "uint8"),
        (stored | {"input_dtype": "float32"}, "float32"),
    ):
        assert make((8, 8, 1), **options).input.dtype == dtype


def test_sequential_is_built_for_any_batch():
    model = keras.Sequential([layers.Dropout(0.5), layers.Dense(3)])
    ensure_built(model, np.ones((5, 2), "uint8"))
    assert model.inputs[0].shape == (None, 2)
    # What Keras makes of uint8 by itself, too.
    assert model.inputs[0].dtype == "float32"
    assert not has_dropout(without_dropout(model))


@pytest.mark.parametrize("as_argument", [True, False])
def test_mixed_precision_ends_at_the_logits(as_argument, dtype_policy):
    policy = "mixed_bfloat16"
    if not as_argument:
        dtype_policy(policy)
    model = cnn6((8, 8, 1), 4, dtype=policy if as_argument else None)
    *body, logits = model.layers
    inner = {layer.compute_dtype for layer in body[1:]}
    assert inner == {policy.removeprefix("mixed_")}
    assert logits.compute_dtype == "float32"
    assert {w.dtype for w in model.trainable_weights} == {"float32"}
    assert model(np.ones((2, 8, 8, 1), "float32")).dtype == model.output.dtype
    assert model.output.dtype == "float32"


def test_a_global_policy_leaves_the_inputs_to_a_subclassed_model(dtype_policy):
    model = Subclassed(layers.Dense(3))
    x = np.full((2, 4), 1000.3, "float32")
    expected = outputs(model, x)
    dtype_policy("mixed_bfloat16")
    np.testing.assert_array_equal(outputs(attach(model), x), expected)


# Small models of all kinds


class FunctionalSubclass(keras.Model):
    """A class of the user's own, made like a Functional model."""

    def __init__(self, *stack):
        model = functional(*stack)
        super().__init__(model.input, model.output)


class Halved(FunctionalSubclass):
    """A `call` that does more than the graph."""

    def call(self, x, *args, **kwargs):
        return super().call(x / 2, *args, **kwargs)


def unbuilt(*stack):
    return keras.Sequential(list(stack))


GRAPHS = {
    "sequential": sequential,
    "functional": functional,
    "functional subclass": FunctionalSubclass,
}
any_graph = pytest.mark.parametrize("kind", GRAPHS.values(), ids=GRAPHS)


def images(m=6):
    return np.random.default_rng(0).normal(size=(m, 4)).astype("float32")


def outputs(model, x):
    return ops.convert_to_numpy(model(x))


def has_dropout(model):
    every_layer = model._flatten_layers(include_self=False)
    return any(isinstance(x, layers.Dropout) for x in every_layer)


@any_graph
def test_without_dropout_is_the_same_function(kind):
    model = kind(layers.Dense(5), layers.Dropout(0.5), layers.Dense(3))
    # Keras cannot save such a loss, nor such a metric.
    model.compile("sgd", lambda y, z: ops.mean(z), [lambda y, z: ops.max(z)])
    plain = without_dropout(model)
    assert not has_dropout(plain)
    assert has_dropout(model)
    assert [id(w) for w in plain.weights] == [
        id(w) for w in model.trainable_weights
    ]
    x = images()
    expected = outputs(model, x)
    np.testing.assert_array_equal(outputs(plain, x), expected)
    in_training = ops.convert_to_numpy(plain(x, training=True))
    np.testing.assert_array_equal(in_training, expected)


@pytest.mark.parametrize("kind", [sequential, functional])
def test_dropout_of_inner_models_goes_too(kind):
    body = kind(layers.Dense(5), layers.Dropout(0.5))
    plain = without_dropout(kind(body, layers.Dropout(0.1), layers.Dense(3)))
    assert not has_dropout(plain)
    assert has_dropout(body)


@pytest.mark.parametrize(
    "dropout",
    [layers.SpatialDropout1D, layers.GaussianDropout, layers.AlphaDropout],
)
def test_every_dropout_goes(dropout):
    x = np.ones((2, 3, 4), "float32")
    plain = without_dropout(sequential(dropout(0.5), shape=(3, 4)))
    received = ops.convert_to_numpy(plain(x, training=True))
    np.testing.assert_array_equal(received, x)


@pytest.mark.parametrize("kind", [Subclassed, Halved])
def test_model_with_its_own_call_keeps_its_dropout(kind):
    model = kind(layers.Dropout(0.5), layers.Dense(3))
    assert without_dropout(model) is model


@pytest.mark.slow
def test_a_layer_adapted_between_two_trainings_is_seen_by_the_second():
    normalization = layers.Normalization()
    normalization.adapt(np.ones((3, 4)))
    model = sequential(normalization, layers.Dropout(0.5), layers.Dense(3))
    x = images()
    network = stage_2_network(model)
    network.predict(x, verbose=0)
    normalization.adapt(5 * x)
    assert stage_2_network(model) is network
    expected = outputs(model, x)
    found = network.predict(x, verbose=0)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


# attach


@pytest.mark.parametrize("kind", [sequential, Halved, unbuilt, Subclassed])
def test_attached_model_has_the_outputs_and_adds_the_loss(kind):
    keras.utils.set_random_seed(0)
    model = kind(layers.Dense(5, activation="relu"), layers.Dense(3))
    x = images()
    expected = outputs(model, x)
    regularized = attach(model)
    np.testing.assert_array_equal(outputs(regularized, x), expected)
    assert loss_of(regularized, x) == pytest.approx(oracle.loss(expected), 1e-5)


def loss_of(model, x):
    model(x, training=True)
    return float(sum(model.losses))


@pytest.mark.slow
def test_attached_subclassed_model_is_saved_and_loaded(tmp_path):
    x = images()
    model = Subclassed(layers.Dense(3))
    regularized = attach(model, GraphActivityRegularization(affinity=2.0))
    expected = outputs(regularized, x)
    regularized.layers[-1].set_coefficients(affinity=0.5)
    regularized.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(outputs(loaded, x), expected)
    loss = oracle.loss(expected, affinity=0.5)
    assert loss_of(loaded, x) == pytest.approx(loss, rel=1e-5)


ACTIVATED = {
    "Dense": lambda: functional(layers.Dense(3, activation="relu")),
    "Softmax": lambda: sequential(layers.Dense(3), layers.Softmax()),
    "inner model": lambda: sequential(
        functional(layers.Dense(3, activation="softmax"))
    ),
    "unbuilt": lambda: unbuilt(layers.Dense(3, activation="softmax")),
    "subclassed": lambda: Subclassed(layers.Dense(3, activation="softmax")),
}


@pytest.mark.parametrize("make", ACTIVATED.values(), ids=ACTIVATED)
def test_activation_behind_the_logits_is_refused(make):
    x, y = images(), np.arange(6) % 3
    for door in (
        attach,
        lambda model: gar_keras.pretrain(model, x, y),
        lambda model: regularize(model, x, x),
    ):
        with pytest.raises(ValueError, match="before any activation"):
            door(make())


# At each door


def with_dict(*names):
    """A model whose outputs are a dict."""
    source = keras.Input((4,))
    return keras.Model(source, {n: layers.Dense(3)(source) for n in names})


class GivesDict(Subclassed):
    """The same, of a graph that Keras does not know."""

    def call(self, x):
        return {"logits": super().call(x)}


class NamesItsInputs(Subclassed):
    def call(self, x):
        return super().call({"a": x}["b"])


X, Y = np.ones((6, 4), "float32"), np.array([0, 1, 2, 0, 1, 2])
LOOK_AT_EXAMPLES = {
    "pretrain": lambda m: gar_keras.pretrain(m, X, Y),
    "regularize": lambda m: gar_keras.regularize(m, X, X),
    "error_rate": lambda m: gar_keras.error_rate(m, X, Y),
}
TAKE_A_MODEL = LOOK_AT_EXAMPLES | {
    f.__name__: f for f in (attach, detach, without_dropout)
}


@pytest.mark.parametrize("door", TAKE_A_MODEL.values(), ids=TAKE_A_MODEL)
def test_what_is_no_model_is_refused(door):
    for model in (
        *(None, "cnn6", cnn6, keras.Sequential, layers.Dense(3)),
        *([sequential()], GraphActivityRegularization(), np.ones((40, 40))),
    ):
        with pytest.raises(ValueError, match="^model must be a keras.Mo") as e:
            door(model)
        assert "Received: model" in str(e.value)
        assert "\n" not in str(e.value)


TAKE_LABELS = {
    "pretrain": lambda m, y: gar_keras.pretrain(m, X, y),
    "validation": lambda m, y: gar_keras.pretrain(
        m, X, Y, validation_data=(X, y)
    ),
    "regularize": lambda m, y: gar_keras.regularize(m, X, X, y_labeled=y),
    "error_rate": lambda m, y: gar_keras.error_rate(m, X, y),
}


@pytest.mark.parametrize("door", TAKE_LABELS.values(), ids=TAKE_LABELS)
def test_labels_without_an_output_are_told_from_those_that_are_none(door):
    missing = "An output is missing: give the model 4 outputs"
    none = "Leave out examples without a label"
    for labels, advice, another in (
        ([0, 3, 2, 0, 3, 2], missing, none),
        (np.eye(4)[[0, 3, 2, 0, 3, 2]], missing, none),
        ([0, -1, 2, 0, -1, 2], none, missing),
        ([1, 3, 2, 1, 3, 2], "subtract 1 from the labels", missing),
    ):
        with pytest.raises(ValueError, match=advice) as e:
            door(sequential(layers.Dense(3)), labels)
        assert another not in str(e.value)


@pytest.mark.slow
def test_a_class_without_labels_is_warned_of():
    y = [0, 2, 2, 0, 2, 2]
    once = {"epochs": 1, "verbose": 0}
    for train in (
        lambda m: gar_keras.pretrain(m, X, y, **once),
        lambda m: gar_keras.regularize(m, X, X, y_labeled=y, **once),
    ):
        model = sequential(layers.Dense(3))
        texts = said(lambda train=train, model=model: train(model))
        # An epoch from random weights may lose a class, which is said as well.
        told = [text for text in texts if "No example is labelled" in text]
        assert len(told) == 1 and "labelled as class 1, which" in told[0]


def subclassed_of_five_features():
    model = Subclassed(layers.Dense(3))
    model(np.ones((1, 5), "float32"))
    return model


@pytest.mark.parametrize(
    "door", LOOK_AT_EXAMPLES.values(), ids=LOOK_AT_EXAMPLES
)
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: with_dict("logits"), "a dict of logits"),
        (lambda: with_dict("a", "b"), "2 outputs|a dict of a, b"),
        (lambda: GivesDict(layers.Dense(3)), "a dict of logits"),
        (
            lambda: sequential(layers.Dense(3), shape=(5,)),
            ".4,. float32. .* shape",
        ),
        (subclassed_of_five_features, ".4,. float32. .*value 5.* shape"),
        (lambda: NamesItsInputs(layers.Dense(3)), ".4,. float32. "),
        # Keras would cut the fractions off.
        (
            lambda: sequential(layers.Dense(3), dtype="uint8"),
            "of dtype float32. Give integers that uint8 holds",
        ),
    ],
)
def test_model_that_does_not_fit_is_refused_in_a_line(door, make, message):
    model = make()
    with pytest.raises(ValueError, match=f"Received: .*{message}") as e:
        door(model)
    assert "\n" not in str(e.value)


@pytest.mark.parametrize("which", ["kernel", "bias"])
def test_weights_are_not_regularized(which):
    options = {f"{which}_regularizer": GraphActivityRegularizer()}
    model = sequential(layers.Dense(3, **options))
    model.compile("sgd", loss=None)
    with pytest.raises(ValueError, match="not of its weights"):
        model.fit(images(), verbose=0)


def regularized_models():
    layer = GraphActivityRegularization()
    dense = layers.Dense(3, activity_regularizer=GraphActivityRegularizer())
    return {
        "layer": functional(layers.Dense(3), layer),
        "activity regularizer": sequential(dense),
        "inner model": sequential(functional(dense)),
        "subclassed": Subclassed(layers.Dense(3), layer),
    }


@pytest.mark.parametrize("name", regularized_models())
def test_regularized_model_is_taken_as_it_is(name):
    model = regularized_models()[name]
    assert is_regularized(model)
    assert attach(model) is model
    with pytest.raises(ValueError, match="already holds a GAR layer"):
        attach(model, GraphActivityRegularization())


@any_graph
def test_detach_undoes_attach(kind):
    model = kind(layers.Dense(3))
    assert detach(model) is model
    plain = detach(attach(detach(attach(model))))
    assert not is_regularized(plain)
    assert plain.trainable_weights[0] is model.trainable_weights[0]
    np.testing.assert_array_equal(
        outputs(plain, images()), outputs(model, images())
    )


def test_a_layer_that_is_called_by_keyword_is_detached():
    inputs = keras.Input((3,))
    model = keras.Model(
        inputs, GraphActivityRegularization()(inputs=layers.Dense(3)(inputs))
    )
    plain = detach(model)
    assert not is_regularized(plain)
    x = np.eye(3, dtype="float32")
    np.testing.assert_array_equal(outputs(plain, x), outputs(model, x))


@pytest.mark.parametrize("name", ["activity regularizer", "subclassed"])
def test_what_cannot_be_detached_is_refused(name):
    with pytest.raises(ValueError, match="cannot be taken out"):
        detach(regularized_models()[name])


@pytest.mark.slow
@pytest.mark.parametrize("method", ["gar", "safe-gar", "mean-teacher"])
def test_no_training_leaves_a_trace_in_the_graph_of_a_model(method):
    """Nothing that was made for one, its traced functions among them."""
    x, y = np.eye(8, 4, dtype="float32") + 1, np.arange(8) % 3
    stack = layers.Dense(6), layers.Dropout(0.5), layers.Dense(3)
    # What was detached can be trained as any other.
    model = detach(attach(functional(*stack)))
    models, nodes = [], []
    for _ in range(2):
        history = regularize(
            model, x, np.repeat(x, 16, axis=0), y_labeled=y, method=method,
            epochs=1, labeled_per_batch=8, verbose=0,
        )  # fmt: skip
        models.append(weakref.ref(history.model))
        del history
        gc.collect()
        nodes.append(
            [len(o._inbound_nodes + o._outbound_nodes) for o in model.layers]
        )
    assert nodes[0] == nodes[1]
    assert [ref() for ref in models] == [None] * 2
