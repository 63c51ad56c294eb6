"""The optimizer against Keras' own, step by step."""

import keras
import numpy as np
import pytest
from keras import ops

from gar_keras.engine import backend
from gar_keras.experiments.settings import TABLE_1
from gar_keras.methods.options import GAROptions
from gar_keras.optimizers import SGD, sgd, stage_2_optimizer

GRADIENTS = np.random.default_rng(0).normal(size=(5, 3, 4)).astype("float32")


def train(optimizer, gradients=GRADIENTS):
    weight = keras.Variable(np.ones((3, 4), "float32"))
    for gradient in gradients:
        optimizer.apply([ops.convert_to_tensor(gradient)], [weight])
    return ops.convert_to_numpy(weight)


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("momentum", [0.0, 0.95])
def test_same_as_keras(momentum, nesterov):
    arguments = {"learning_rate": 0.1, "momentum": momentum}
    expected = train(keras.optimizers.SGD(**arguments, nesterov=nesterov))
    received = train(SGD(**arguments, nesterov=nesterov))
    np.testing.assert_allclose(received, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "option",
    [
        {"clipvalue": 0.1},
        {"weight_decay": 0.1},
        {"use_ema": True, "ema_overwrite_frequency": 2},
        {"gradient_accumulation_steps": 2},
    ],
    ids=lambda option: next(iter(option)),
)
def test_options_of_keras(option):
    arguments = {"learning_rate": 0.1, "momentum": 0.9, **option}
    expected = train(keras.optimizers.SGD(**arguments))
    received = train(SGD(**arguments))
    np.testing.assert_allclose(received, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("decay", [1e-6, 0.013])
def test_decay_has_the_numbers_of_the_schedule(decay):
    schedule = keras.optimizers.schedules.InverseTimeDecay(0.01, 1, decay)
    np.testing.assert_array_equal(
        train(SGD(0.01, 0.95, nesterov=True, decay=decay)),
        train(SGD(schedule, 0.95, nesterov=True)),
    )


def test_decay_by_hand():
    gradients = np.ones((3, 3, 4), "float32")
    optimizer = SGD(0.5, decay=1.0)
    # 1/2, 1/4 and 1/6 of the gradient.
    received = train(optimizer, gradients)
    np.testing.assert_allclose(received, 1 - 11 / 12, atol=1e-6)
    assert float(optimizer.learning_rate) == 0.5


def test_one_kernel_on_tensorflow():
    if backend.name() != "tensorflow":
        pytest.skip("the kernel is TensorFlow's")
    import tensorflow as tf

    weight = keras.Variable(np.ones((3, 4), "float32"))
    optimizer = SGD(0.1, momentum=0.9, nesterov=True)
    optimizer.build([weight])
    step = tf.function(lambda gradient: optimizer.apply([gradient], [weight]))
    graph = step.get_concrete_function(tf.ones((3, 4))).graph
    kinds = [operation.type for operation in graph.get_operations()]
    assert kinds.count("ResourceApplyKerasMomentum") == 1


def test_sparse_gradient_goes_keras_way():
    if backend.name() != "tensorflow":
        pytest.skip("only TensorFlow has sparse gradients")
    import tensorflow as tf

    def one_step(optimizer):
        table = keras.Variable(np.ones((4, 2), "float32"))
        rows = tf.IndexedSlices(tf.ones((1, 2)), [2], dense_shape=(4, 2))
        optimizer.apply([rows], [table])
        return ops.convert_to_numpy(table)

    expected = one_step(keras.optimizers.SGD(0.1, momentum=0.5))
    np.testing.assert_allclose(one_step(SGD(0.1, momentum=0.5)), expected)


def test_config_round_trip():
    options = dict(decay=0.5, warmup_steps=7, clipnorm=1.0)
    optimizer = SGD(0.2, momentum=0.3, nesterov=True, **options)
    config = keras.optimizers.serialize(optimizer)
    copy = keras.optimizers.deserialize(config)
    assert type(copy) is SGD
    assert copy.get_config() == optimizer.get_config()
    assert copy.get_config().items() >= options.items()


def test_warm_up_by_hand():
    gradients = np.ones((3, 3, 4), "float32")
    # Rates 0.2, 0.4 and, past the warm-up, 0.4.
    received = train(SGD(0.4, warmup_steps=2), gradients)
    np.testing.assert_allclose(received, 1 - 0.2 - 0.4 - 0.4, atol=1e-6)


@pytest.mark.parametrize("option", ["decay", "warmup_steps"])
def test_bad_number_is_refused(option):
    with pytest.raises(ValueError, match=f"Received: {option}=-1"):
        SGD(0.1, **{option: -1})


def test_stage_2_by_default_is_the_papers_with_clipping_and_warm_up():
    optimizer = stage_2_optimizer(GAROptions(), steps=1000)
    expected = sgd(global_clipnorm=1.0, warmup_steps=100).get_config()
    expected["name"] = optimizer.name
    assert optimizer.get_config() == expected


def test_the_cosine_falls_to_nothing():
    optimizer = stage_2_optimizer(GAROptions(rate="cosine"), 10, 0.5)
    schedule = optimizer.get_config()["learning_rate"]["config"]
    assert (schedule["initial_learning_rate"], schedule["decay_steps"]) == (
        0.5,
        10,
    )
    assert optimizer.decay == 0.0


def test_the_experiments_of_the_paper_clip_nothing():
    e = TABLE_1[100]
    optimizer = stage_2_optimizer(e.extensions, 10)
    assert optimizer.global_clipnorm is None
    assert optimizer.warmup_steps == 0
