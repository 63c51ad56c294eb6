"""What is saved, cloned or given elsewhere has the same loss, or is no more."""

import logging

import fresh
import keras
import numpy as np
import pytest
from blobs import blobs
from keras import layers
from stacks import sequential

from gar_keras import (
    GraphActivityRegularization,
    GraphActivityRegularizer,
    error_rate,
    pretrain,
    regularize,
    sgd,
)

X_L, Y_L = blobs(12)
X_U, Y_U = blobs(45, seed=1)
SMALL = dict(labeled_per_batch=4, unlabeled_per_batch=20, epochs=2, verbose=0)

LOADED = """
import sys, keras, numpy as np
x = np.load(sys.argv[2])
model = keras.models.load_model(sys.argv[1])
assert "gar_keras" not in sys.modules
print(type(model.optimizer).__module__.partition(".")[0], float(model(x)[0, 0]))
model.fit(x, np.zeros(len(x)), verbose=0)
"""
OPTIMIZERS = {
    "by default": lambda: None,
    "the paper's": lambda: sgd(0.1, global_clipnorm=1.0),
    "Keras'": lambda: keras.optimizers.Adam(0.1),
}


def network(*behind, **options):
    keras.utils.set_random_seed(0)
    return sequential(
        layers.Dense(8, "relu"), layers.Dense(3, **options), *behind, shape=(2,)
    )


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_trained_model_loads_in_plain_keras(name, tmp_path):
    model = network()
    pretrain(model, X_L, Y_L, epochs=3, optimizer=OPTIMIZERS[name](), verbose=0)
    regularize(model, X_L, X_U, y_labeled=Y_L, **SMALL)
    model.save(tmp_path / "model.keras")
    np.save(tmp_path / "x.npy", X_U)
    again = keras.models.load_model(tmp_path / "model.keras")
    assert error_rate(again, X_U, Y_U) == error_rate(model, X_U, Y_U)
    env = fresh.environment()
    # Nothing of this package is found.
    env["PYTHONPATH"] = ""
    arguments = tmp_path / "model.keras", tmp_path / "x.npy"
    library, logit = fresh.run(LOADED, *arguments, env=env).split()[-2:]
    assert library == "keras"
    assert float(logit) == pytest.approx(float(model(X_U)[0, 0]), rel=1e-4)


@pytest.mark.parametrize("balance", [0.0, 2.0])
def test_a_clone_has_the_coefficients_in_force(balance):
    model = network(GraphActivityRegularization())
    model.layers[-1].set_coefficients(affinity=1.25, balance=balance)
    copies = [keras.models.clone_model(model)]
    copies.append(keras.Sequential.from_config(model.get_config()))
    for copy in copies:
        copy.build((None, 2))
        copy.set_weights(model.get_weights())
        layer = copy.layers[-1]
        assert layer.coefficients == model.layers[-1].coefficients
        for each in (model, copy):
            each(X_U, training=True)
        assert float(copy.losses[0]) == float(model.losses[0])
        # What switches terms on again finds them.
        assert layer.made_with == model.layers[-1].made_with
    plain = GraphActivityRegularization()
    assert "in_force" not in plain.get_config()


@pytest.mark.parametrize("which", ["kernel", "bias"])
def test_weights_are_not_regularized(which):
    model = network(**{f"{which}_regularizer": GraphActivityRegularizer()})
    model.compile("sgd", loss=None)
    with pytest.raises(ValueError, match="not of its weights"):
        model.fit(X_U, verbose=0)


def test_many_trainings_are_quiet(caplog):
    caplog.set_level(logging.WARNING)
    for _ in range(8):
        model = network()
        pretrain(model, X_L, Y_L, epochs=1, verbose=0)
        error_rate(model, X_U, Y_U)
    assert "retracing" not in caplog.text
