"""The compiled epochs against `fit`, on small networks."""

import json
from contextlib import nullcontext
from functools import partial

import fresh
import keras
import numpy as np
import pytest
from keras import layers
from said import said
from stacks import sequential

from gar_keras import (
    GAR,
    Consistency,
    CrossEntropy,
    pretrain,
    regularize,
    sgd,
)
from gar_keras.engine import backend, hardware
from gar_keras.engine.batches import BatchSampler, TrainingData

if backend.name() != "jax":
    pytest.skip("the fast path is JAX's", allow_module_level=True)


from gar_keras.engine import jax_epochs  # noqa: E402

rng = np.random.default_rng(0)
X_U = rng.integers(0, 256, (103, 6, 6, 1), "uint8")
X_L = rng.integers(0, 256, (20, 6, 6, 1), "uint8")
Y_L = np.arange(20) % 3
QUIET = {"verbose": 0}


def network(dropout=0.0):
    keras.utils.set_random_seed(1)
    return sequential(
        layers.Rescaling(1 / 255),
        layers.Conv2D(4, 3, activation="relu"),
        layers.Flatten(),
        layers.Dropout(dropout),
        layers.Dense(3),
        shape=(6, 6, 1),
        dtype="uint8",
    )


def stage_2(method, dropout=0.0, **options):
    model = network(dropout)
    history = regularize(
        model, X_L, X_U, y_labeled=Y_L, method=method, epochs=3,
        labeled_per_batch=4, unlabeled_per_batch=20, **options, **QUIET,
    )  # fmt: skip
    return model, history


def batch_normalized():
    keras.utils.set_random_seed(1)
    stack = layers.Dense(4), layers.BatchNormalization(momentum=0.999)
    model = sequential(
        layers.Rescaling(1 / 255), layers.Flatten(), *stack, layers.Dense(3),
        shape=(6, 6, 1), dtype="uint8",
    )  # fmt: skip
    history = regularize(
        model, X_L, X_U, epochs=2, labeled_per_batch=4, **QUIET
    )
    return model, history


def several_inputs():
    def parted(x):
        return {"upper": x[:, :3], "lower": x[:, 3:]}

    inputs = {
        name: keras.Input((3, 6, 1), dtype="uint8", name=name)
        for name in ("upper", "lower")
    }
    whole = layers.Concatenate(axis=1)([inputs["upper"], inputs["lower"]])
    model = keras.Model(inputs, network()(whole))
    history = regularize(
        model, parted(X_L), parted(X_U), epochs=2, labeled_per_batch=4,
        unlabeled_per_batch=16, images_per_epoch=40, **QUIET,
    )  # fmt: skip
    return model, history


def passes_that_make_up_an_epoch():
    model = network(dropout=0.2)
    history = pretrain(
        model, X_L, Y_L, epochs=12, report_every=4, batch_size=8, **QUIET
    )
    return model, history


NAMES = ("gar", "supervised", "mean-teacher", "vat", "embed-cnn")
TRAININGS = {name: partial(stage_2, name) for name in NAMES} | {
    "list": partial(
        stage_2, [GAR(), CrossEntropy(), Consistency(1.0)], dropout=0.2
    ),
    "goes on": partial(stage_2, "gar", initial_epoch=1),
    "several inputs": several_inputs,
    "batch normalization": batch_normalized,
    "stage 1": passes_that_make_up_an_epoch,
}


@pytest.mark.slow
@pytest.mark.parametrize("train", TRAININGS.values(), ids=TRAININGS)
def test_trainings_take_either_path(train, monkeypatch):
    results = []
    for compiles in (False, True):
        monkeypatch.setattr(hardware, "loops_on_device", lambda c=compiles: c)
        model, history = train()
        results.append((model.get_weights(), history.history))
    (its, expected), (mine, received) = results
    for a, b in zip(mine, its, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    assert received.keys() == expected.keys()
    for name, values in expected.items():
        assert received[name] == pytest.approx(values, rel=1e-4, abs=1e-6)


def test_a_lost_class_is_told_once_the_rate_has_risen(monkeypatch):
    monkeypatch.setattr(hardware, "loops_on_device", lambda: True)
    keras.utils.set_random_seed(0)
    model = sequential(layers.Dense(3), shape=(3,))
    model.layers[0].set_weights([2 * np.eye(3), np.zeros(3)])
    x = np.tile(np.eye(3, dtype="float32"), (200, 1))
    lose = keras.callbacks.LambdaCallback(
        on_epoch_begin=lambda *_: model.layers[0].bias.assign([0, 0, -100.0])
    )
    # 100 steps in each epoch.
    options = {"optimizer": sgd(warmup_steps=150), "callbacks": [lose]}
    sizes = {"labeled_per_batch": 0, "unlabeled_per_batch": 6}
    texts = said(
        lambda: regularize(
            model, x[:3], x, method="gar", epochs=3, **options, **sizes, **QUIET
        )
    )
    (text,) = [text for text in texts if "is without class 2" in text]
    assert "at the end of epoch 2" in text


def test_images_have_to_be_in_memory_and_find_room(monkeypatch, tmp_path):
    np.save(tmp_path / "x.npy", X_U)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert jax_epochs.fits(TrainingData(BatchSampler(103, 16), X_U))
    assert not jax_epochs.fits(TrainingData(BatchSampler(103, 16), mapped))
    # An image has 36 bytes.
    monkeypatch.setattr(jax_epochs, "RESIDENT_BYTES", 103 * 36 - 1)
    assert not jax_epochs.fits(TrainingData(BatchSampler(103, 16), X_U))


class Stop(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        raise KeyboardInterrupt


@pytest.mark.slow
@pytest.mark.parametrize("stop", [[], [Stop()]], ids=["end", "error"])
def test_model_trains_by_itself_afterwards(stop, monkeypatch):
    monkeypatch.setattr(hardware, "loops_on_device", lambda: True)
    model = network()
    with pytest.raises(KeyboardInterrupt) if stop else nullcontext():
        pretrain(model, X_L, Y_L, epochs=2, callbacks=stop, **QUIET)
    # The compiled function, which would hold the images in memory.
    assert model.train_function is None
    if stop:
        return
    before = model.get_weights()[0]
    history = model.fit(X_L, Y_L, batch_size=5, epochs=2, **QUIET)
    assert np.isfinite(history.history["loss"]).all()
    assert (model.get_weights()[0] != before).any()


FOUR_DEVICES = fresh.environment(
    KERAS_BACKEND="jax",
    XLA_FLAGS="--xla_force_host_platform_device_count=4",
)
SHARES = """
import json, keras, numpy as np
from gar_keras import regularize
from stacks import sequential
rng = np.random.default_rng(0)
X_U, X_L = rng.normal(size=(64, 4)), rng.normal(size=(8, 4))
for count in (1, 2, 4):
    devices = keras.distribution.list_devices("cpu")[:count]
    shared = keras.distribution.DataParallel(devices=devices)
    keras.distribution.set_distribution(shared)
    keras.utils.set_random_seed(1)
    model = sequential(keras.layers.Dense(7, "relu"), keras.layers.Dense(3))
    start = model.get_weights()
    history = regularize(
        model, X_L.astype("float32"), X_U.astype("float32"), epochs=1,
        labeled_per_batch=4, unlabeled_per_batch=28, images_per_epoch=28,
        optimizer=keras.optimizers.SGD(1.0), verbose=0,
    ).history
    for variable in model.trainable_variables:
        assert len(variable.value.sharding.device_set) == count
    # One step at rate 1: the gradient is what the weights lost.
    lost = [(a - b).tolist() for a, b in zip(start, model.get_weights())]
    logs = [history[name] for name in ("loss", "affinity", "balance")]
    print(json.dumps(logs + lost))
"""


@pytest.mark.slow
def test_devices_share_one_graph():
    """Loss and gradient on 1, 2 and 4 devices: N is the whole batch's."""
    printed = fresh.run(SHARES, env=FOUR_DEVICES).splitlines()
    alone, *others = map(json.loads, printed)
    assert len(others) == 2
    assert max(np.abs(part).max() for part in alone[3:]) > 1e-3
    for shared in others:
        for mine, its in zip(shared, alone, strict=True):
            np.testing.assert_allclose(mine, its, rtol=1e-5, atol=1e-6)
