"""The optimizer against Keras' own, step by step."""

import keras
import numpy as np
import pytest
from keras import ops

from gar_keras.engine import backend
from gar_keras.engine.optimizers import SGD, sgd, stage_2_optimizer
from gar_keras.methods import METHODS

GRADIENTS = np.random.default_rng(0).normal(size=(5, 3, 4)).astype("float32")


def train(optimizer, gradients=GRADIENTS):
    weight = keras.Variable(np.ones((3, 4), "float32"))
    for gradient in gradients:
        optimizer.apply([ops.convert_to_tensor(gradient)], [weight])
    return ops.convert_to_numpy(weight)


@pytest.mark.parametrize(
    "option",
    [
        {"momentum": 0.0},
        {"momentum": 0.95, "nesterov": True},
        {"momentum": 0.9, "clipvalue": 0.1},
        {"momentum": 0.9, "weight_decay": 0.1},
        {"momentum": 0.9, "gradient_accumulation_steps": 2},
    ],
    ids=str,
)
def test_same_as_keras(option):
    expected = train(keras.optimizers.SGD(0.1, **option))
    received = train(SGD(0.1, **option))
    np.testing.assert_allclose(received, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "moved"),
    [
        # 1/2, 1/4 and 1/6 of the gradient.
        ({"learning_rate": 0.5, "decay": 1.0}, 11 / 12),
        # Rates 0.2, 0.4 and, past the warm-up, 0.4.
        ({"learning_rate": 0.4, "warmup_steps": 2}, 1.0),
    ],
    ids=["decay", "warm-up"],
)
def test_rates_by_hand(options, moved):
    optimizer = SGD(**options)
    received = train(optimizer, np.ones((3, 3, 4), "float32"))
    np.testing.assert_allclose(received, 1 - moved, atol=1e-6)
    assert float(optimizer.learning_rate) == pytest.approx(
        options["learning_rate"]
    )


@pytest.mark.parametrize("name", ["learning_rate", "momentum", "decay"])
@pytest.mark.parametrize("value", [-0.1, "0.1", True])
def test_what_is_no_number_of_at_least_0_is_refused(name, value):
    with pytest.raises(ValueError, match=f"{name}.*{value}"):
        sgd(**{name: value})


def test_a_rate_may_be_any_real_number():
    # Keras' own takes no integer.
    for rate in (1, np.float32(1), np.int64(1)):
        assert float(sgd(rate).learning_rate) == 1.0
    with pytest.raises(ValueError, match="Received: warmup_steps=-1"):
        sgd(warmup_steps=-1)


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


@pytest.mark.parametrize("name", METHODS)
def test_stage_2_clips_and_warms_up_where_classes_can_be_lost(name):
    careful = {"global_clipnorm": 1.0, "warmup_steps": 100}
    careful = careful if name in ("gar", "safe-gar") else {}
    optimizer = stage_2_optimizer(METHODS[name], 1000, 0.5)
    expected = sgd(0.5, **careful).get_config()
    expected["name"] = optimizer.name
    assert optimizer.get_config() == expected
    # A fifth of a short stage 2.
    if careful:
        assert stage_2_optimizer(METHODS[name], 10).warmup_steps == 2
