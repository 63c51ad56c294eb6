"""Copies of models as users have them: they are what the model is."""

import random
import threading

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers
from stacks import Subclassed, sequential

from gar_keras import (
    GARClassifier,
    GARWarning,
    attach,
    detach,
    pretrain,
    regularize,
)
from gar_keras.engine import backend
from gar_keras.engine.copies import copy_model

RNG = np.random.default_rng(0)
Y = np.arange(60) % 3
X = (RNG.normal(size=(3, 4))[Y] + 0.2 * RNG.normal(size=(60, 4))) * 50 + 300
X = X.astype("float32")
IDS = np.arange(60, dtype="int32")[:, None] % 3 * 7


def adapted(kind=layers.Normalization, data=X, **options):
    layer = kind(**options)
    layer.adapt(data)
    return layer


def normalized():
    return sequential(adapted(), layers.Dense(8, "relu"), layers.Dense(3))


def looked_up(kind, data, dtype):
    lookup = adapted(kind, data, output_mode="one_hot")
    return sequential(lookup, layers.Dense(3), shape=(1,), dtype=dtype)


def batch_normalized():
    model = sequential(layers.BatchNormalization(), layers.Dense(3))
    model(X, training=True)
    return model


def partly_frozen():
    backbone = sequential(layers.Dense(6), layers.Dense(5), layers.Dense(5))
    backbone.layers[0].trainable = False
    backbone.layers[1].kernel.trainable = False
    return sequential(backbone, layers.Dense(3))


def low_rank():
    model = sequential(layers.Dense(8), layers.Dense(3))
    model.layers[0].enable_lora(2, lora_alpha=4)
    model.layers[0].lora_kernel_b.assign(np.ones((2, 8)))
    return model


def quantized():
    model = sequential(layers.Dense(8), layers.Dense(3))
    for layer in model.layers:
        layer.quantize("int8")
    model.layers[0].enable_lora(2)
    return model


class OwnTraining(keras.Model):
    def train_step(self, *args):
        return super().train_step(*args)

    def compute_loss(self, *args, **kwargs):
        return 1000 + super().compute_loss(*args, **kwargs)


def own_training():
    inputs = keras.Input((4,))
    return OwnTraining(inputs, layers.Dense(3)(layers.Dense(4)(inputs)))


def own_loss():
    model = sequential(layers.Dense(3))
    model.compile("adam", lambda y, logits: keras.ops.mean(logits))
    return model


def own_activation():
    def squared(x):
        return x * x

    return sequential(layers.Dense(3, activation=squared))


class Shifted(layers.Layer):
    """A layer that trains one weight and is given another."""

    def build(self, shape):
        self.kernel = self.add_weight((shape[-1], 3))
        self.table = self.add_weight((3,), trainable=False)

    def call(self, inputs):
        return inputs @ self.kernel + self.table


def own_layer():
    layer = Shifted()
    model = sequential(sequential(layer))
    layer.table.assign([5.0, 6.0, 7.0])
    return model


class Unsaved(layers.Layer):
    """A layer with an array that Keras does not know of."""

    mean = 0.0

    def call(self, inputs):
        return inputs - self.mean


def unsaved():
    layer = Unsaved(name="mine")
    layer.mean = keras.ops.convert_to_tensor(X.mean(axis=0))
    return sequential(layer, layers.Dense(3))


class Noisy(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.seeds = keras.random.SeedGenerator(0)

    def call(self, inputs):
        shape = keras.ops.shape(inputs)
        return inputs + keras.random.normal(shape, seed=self.seeds)


def own_call():
    model = Subclassed(adapted(), layers.Dense(3))
    model(X)
    model.compile("adam", lambda y, logits: keras.ops.mean(logits))
    return model


ZOO = {
    "normalized": normalized,
    "looked up": lambda: looked_up(layers.IntegerLookup, IDS, "int32"),
    "batch-normalized": batch_normalized,
    "partly frozen": partly_frozen,
    "low-rank": low_rank,
    "quantized": quantized,
    "detached": lambda: detach(attach(normalized())),
    "with a lambda": lambda: sequential(
        sequential(layers.Lambda(lambda x: 2 * x)), layers.Dense(3)
    ),
    "own training": own_training,
    "own loss": own_loss,
    "own activation": own_activation,
    "own layer": own_layer,
    "own call": own_call,
}  # fmt: skip
# JAX has no strings.
if backend.name() == "tensorflow":
    ZOO["text looked up"] = lambda: looked_up(
        layers.StringLookup, ["a", "b"], "string"
    )


def rows_of(model):
    dtype = getattr(model, "inputs", None) and model.inputs[0].dtype
    words = tf.constant([["a"], ["b"], ["else"]])
    return {"int32": IDS, "string": words}.get(dtype, X)


def logits_of(model):
    return np.asarray(model(rows_of(model)))


def values(weights):
    return [np.asarray(weight).tolist() for weight in weights]


@pytest.mark.parametrize("make", ZOO.values(), ids=ZOO)
def test_a_copy_is_what_the_model_is(make):
    model = make()
    was_compiled = model.compiled
    copy = copy_model(model)
    assert not copy.compiled and model.compiled == was_compiled
    np.testing.assert_array_equal(logits_of(copy), logits_of(model))
    assert values(copy.weights) == values(model.weights)
    for its, mine in zip(model.weights, copy.weights, strict=True):
        assert its is not mine
        assert its.trainable == mine.trainable


def test_a_model_that_was_not_built_is_copied():
    model = keras.Sequential([adapted(), layers.Dense(3)])
    copy = copy_model(model)
    np.testing.assert_array_equal(copy.layers[0](X), model.layers[0](X))
    assert copy(X).shape == (60, 3)


class NeedsWidth(layers.Dense):
    def __init__(self, width):
        super().__init__(width)


def test_what_keras_cannot_copy_is_named():
    model = keras.Sequential([keras.Input((4,)), NeedsWidth(3)], name="mine")
    with pytest.raises(ValueError, match="copy the model 'mine': ") as e:
        copy_model(model)
    assert "\n" not in str(e.value)


@pytest.mark.parametrize("x", [None, X], ids=["zeros", "examples"])
def test_what_a_copy_would_lose_is_refused(x):
    with pytest.raises(ValueError, match="other outputs .*add_weight"):
        copy_model(unsaved(), x)


def test_a_model_that_draws_in_inference_is_copied():
    model = sequential(Noisy(), layers.Dense(3))
    assert values(copy_model(model, X).weights) == values(model.weights)


# Through the doors of the package


FEW = np.where(np.arange(60) < 15, Y, -1)
QUICK = dict(labeled_per_batch=6, unlabeled_per_batch=30)
ONCE = dict(pretrain_epochs=1, epochs=1, unlabeled_per_batch=30)


@pytest.mark.slow
def test_a_training_of_ones_own_is_told_to_play_no_part():
    match = "OwnTraining has its own train_step and compute_loss"
    doors = [
        attach,
        lambda model: regularize(
            model, X[:15], X, epochs=1, verbose=0, **QUICK
        ),
        lambda model: GARClassifier(model, **ONCE).fit(X, FEW),
    ]
    for door in doors:
        with pytest.warns(GARWarning) as warnings:
            door(own_training())
        told = [w for w in warnings if match in str(w.message)]
        assert len(told) == 1
    # In stage 1 it is the user's own training.
    losses = pretrain(own_training(), X[:15], Y[:15], epochs=1, verbose=0)
    assert losses.history["loss"][0] > 1000


# Random numbers


def draws():
    return [random.random(), np.random.random(), keras.random.uniform(())]


@pytest.mark.slow
def test_a_users_generators_go_on_as_if_nothing_had_happened():
    def nothing(model):
        pass

    def classifier(model):
        estimator = GARClassifier(
            model, method="mean-teacher", random_state=0, **ONCE
        )
        estimator.fit(X, FEW)

    def of_a_table(model):
        GARClassifier(random_state=0, **ONCE).fit(X, FEW)

    found = []
    for between in (nothing, classifier, of_a_table):
        model = normalized()
        keras.utils.set_random_seed(7)
        before = draws()
        between(model)
        found.append([float(x) for x in [*before, *draws()]])
    assert found[0] == found[1] == found[2]


@pytest.mark.slow
def test_threads_repeat_what_each_does_alone():
    def fit(seed, found):
        model = GARClassifier(method="mean-teacher", random_state=seed, **ONCE)
        found[seed] = values(model.fit(X, FEW).model_.weights)

    alone, together = {}, {}
    for seed in range(2):
        fit(seed, alone)
    threads = [
        threading.Thread(target=fit, args=(seed, together)) for seed in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone
    assert alone[0] != alone[1]
