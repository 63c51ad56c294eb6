"""Algorithm 1 on tiny data, against steps worked out in NumPy."""

import gc
import json
import subprocess
import sys
import tracemalloc
import warnings
import weakref
from pathlib import Path

import fresh
import keras
import numpy as np
import oracle
import pytest
from keras import layers, ops

from gar_keras import (
    ExtendedGAR,
    GARWarning,
    GraphActivityRegularization,
    GraphActivityRegularizer,
    attach,
    error_rate,
    pretrain,
    regularize,
    sgd,
)
from gar_keras.callbacks import WarnOnCollapse
from gar_keras.engine import batches, fit, pipeline
from gar_keras.engine.batches import BatchSampler
from gar_keras.models import is_regularized

CLASSES = 3
BATCHES = dict(labeled_per_batch=2, unlabeled_per_batch=10)
QUIET = dict(verbose=0)


def blobs(m, seed=0):
    """Images of two pixels around three corners, and their labels."""
    rng = np.random.default_rng(seed)
    y = np.arange(m) % CLASSES
    corners = np.array([[0.0, 4.0], [4.0, 0.0], [-3.0, -3.0]])
    x = corners[y] + rng.normal(size=(m, 2))
    return x.astype("float32"), y


X_L, Y_L = blobs(6)
X_U, Y_U = blobs(45, seed=1)
X_V, Y_V = blobs(20, seed=2)


def network(dropout=0.0, seed=0):
    keras.utils.set_random_seed(seed)
    return keras.Sequential(
        [
            keras.Input((2,)),
            layers.Dense(8, activation="relu"),
            # A seed of its own, so that it does not change the weights.
            layers.Dropout(dropout, seed=1),
            layers.Dense(CLASSES, name="logits"),
        ]
    )


def linear(seed=0):
    keras.utils.set_random_seed(seed)
    return keras.Sequential([keras.Input((2,)), layers.Dense(CLASSES)])


def both_stages(model, seed=0, **options):
    """Trains through both stages; the histories and the final weights."""
    first = pretrain(
        model, X_L, Y_L, epochs=4, batch_size=4, report_every=2, seed=seed,
        validation_data=(X_V, Y_V), **QUIET,
    )  # fmt: skip
    second = regularize(
        model, X_L, X_U, epochs=3, seed=seed, validation_data=(X_V, Y_V),
        **BATCHES, **QUIET, **options,
    )  # fmt: skip
    weights = [w.tolist() for w in model.get_weights()]
    return [first.history, second.history, weights]


# One step by hand


def nesterov_step(W, gradient):
    """The first step of the authors' optimizer: momentum starts at 0."""
    return W - (1 + 0.95) * 0.01 * gradient


def log_loss(W, x, y):
    Z = x @ W
    return np.mean(np.log(np.exp(Z).sum(axis=1)) - Z[np.arange(len(y)), y])


def test_first_step_of_stage_1():
    model = linear()
    W = model.get_weights()[0].astype("float64")
    history = pretrain(model, X_L, Y_L, epochs=1, **QUIET).history
    assert history["loss"] == pytest.approx([log_loss(W, X_L, Y_L)], rel=1e-5)
    gradient = oracle.differences(lambda W: log_loss(W, X_L, Y_L), W)
    np.testing.assert_allclose(
        model.get_weights()[0], nesterov_step(W, gradient), rtol=1e-4, atol=1e-6
    )


def test_first_step_of_stage_2():
    model = linear()
    W = model.get_weights()[0].astype("float64")
    history = regularize(
        model, X_L, X_U, epochs=1, labeled_per_batch=4, unlabeled_per_batch=45,
        optimizer=sgd(), seed=5, **QUIET,
    ).history  # fmt: skip
    # One batch: all of X_U and the four labelled images that are drawn.
    _, chosen = BatchSampler(45, 45, 6, 4, seed=5).epoch(1)
    x = np.concatenate([X_U, X_L[chosen[0]]])
    assert history["loss"] == pytest.approx([oracle.loss(x @ W)], rel=1e-5)
    gradient = oracle.differences(lambda W: oracle.loss(x @ W), W)
    np.testing.assert_allclose(
        model.get_weights()[0], nesterov_step(W, gradient), rtol=1e-4, atol=1e-6
    )


@pytest.mark.slow
def test_layer_of_ones_own():
    model = linear()
    W = model.get_weights()[0].astype("float64")
    coefficients = dict(affinity=0.5, balance=2.0, frobenius=0.1)
    history = regularize(
        model, X_L, X_U, layer=GraphActivityRegularization(**coefficients),
        epochs=1, labeled_per_batch=6, unlabeled_per_batch=45, **QUIET,
    ).history  # fmt: skip
    x = np.concatenate([X_U, X_L])
    assert history["loss"] == pytest.approx(
        [oracle.loss(x @ W, **coefficients)], rel=1e-5
    )


# What comes of it


def test_both_stages_learn():
    model = network(dropout=0.2)
    pretrain(model, X_L, Y_L, epochs=20, **QUIET)
    baseline = error_rate(model, X_V, Y_V)
    assert error_rate(model, X_L, Y_L) == 0
    history = regularize(model, X_L, X_U, epochs=20, **BATCHES, **QUIET).history
    assert history["affinity"][-1] < 0.5 * history["affinity"][0]
    assert error_rate(model, X_V, Y_V) <= baseline <= 0.1


@pytest.mark.slow
def test_history_of_stage_1():
    history = pretrain(
        network(), X_L, Y_L, epochs=12, report_every=5,
        validation_data=(X_V, Y_V), **QUIET,
    ).history  # fmt: skip
    # 4 is the largest divisor of 12 up to 5: 3 reports.
    assert len(history["loss"]) == 3
    assert set(history) == {"loss", "val_error", "val_accuracy", "val_loss"}


class Weights(keras.callbacks.Callback):
    """Notes the weights after each epoch."""

    def __init__(self):
        super().__init__()
        self.epochs = []

    def on_epoch_end(self, epoch, logs=None):
        self.epochs.append(self.model.network.get_weights())


@pytest.mark.slow
@pytest.mark.parametrize("keep_best", [True, False])
def test_weights_of_the_best_epoch_are_kept(keep_best):
    # From random weights it gets better and worse.
    model = network(seed=5)
    weights = Weights()
    history = regularize(
        model, X_L, X_U, epochs=6, validation_data=(X_V, Y_V),
        optimizer=sgd(3.0), keep_best=keep_best, callbacks=[weights],
        **BATCHES, **QUIET,
    ).history  # fmt: skip
    errors = history["val_error"]
    best = max(i for i in range(6) if errors[i] == min(errors))
    assert best != 5
    kept = best if keep_best else 5
    for mine, its in zip(
        model.get_weights(), weights.epochs[kept], strict=True
    ):
        np.testing.assert_array_equal(mine, its)


@pytest.mark.slow
def test_epochs_auto_end_after_steps_without_a_lower_validation_error(
    monkeypatch,
):
    monkeypatch.setattr(fit, "PATIENCE_STEPS", 100)
    # Of five steps each.
    patience = 20
    epochs = {
        rate: regularize(
            network(), X_L, X_U, epochs="auto", validation_data=(X_V, Y_V),
            optimizer=keras.optimizers.SGD(rate), **BATCHES, **QUIET,
        ).history["val_error"]
        for rate in (0.0, 0.01)
    }  # fmt: skip
    assert len(epochs[0.0]) == 1 + patience
    errors = epochs[0.01]
    assert len(errors) == errors.index(min(errors)) + 1 + patience


@pytest.mark.slow
def test_dropout_is_left_out_of_stage_2():
    with_dropout, without = network(dropout=0.5), network()
    losses = [
        regularize(m, X_L, X_U, epochs=2, **BATCHES, **QUIET).history["loss"]
        for m in (with_dropout, without)
    ]
    assert losses[0] == losses[1]


# Kinds of models and images


@pytest.mark.slow
def test_stage_1_leaves_the_loss_of_gar_out():
    plain = network()
    model = attach(network())
    expected = pretrain(plain, X_L, Y_L, epochs=2, **QUIET).history
    received = pretrain(model, X_L, Y_L, epochs=2, **QUIET).history
    assert received == expected


@pytest.mark.slow
def test_both_routes_train_alike():
    def with_regularizer():
        model = linear()
        model.layers[-1].activity_regularizer = GraphActivityRegularizer()
        return model

    weights = []
    for model in (linear(), with_regularizer()):
        regularize(model, X_L, X_U, epochs=3, **BATCHES, **QUIET)
        weights.append(model.get_weights())
    for mine, its in zip(*weights, strict=True):
        np.testing.assert_allclose(mine, its, rtol=1e-5)


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden = layers.Dense(8, activation="relu")
        self.logits = layers.Dense(CLASSES)

    def call(self, x):
        return self.logits(self.hidden(x))


@pytest.mark.slow
def test_subclassed_model():
    keras.utils.set_random_seed(0)
    model = Subclassed()
    pretrain(model, X_L, Y_L, epochs=20, **QUIET)
    assert error_rate(model, X_L, Y_L) == 0
    history = regularize(model, X_L, X_U, epochs=20, **BATCHES, **QUIET).history
    assert history["affinity"][-1] < 0.5 * history["affinity"][0]


def unbuilt(dropout=0.5):
    """A model that learns what its input is from the first images."""
    keras.utils.set_random_seed(0)
    return keras.Sequential(
        [layers.Dense(8, activation="relu"), layers.Dropout(dropout, seed=1),
         layers.Dense(CLASSES)]
    )  # fmt: skip


def built(dropout=0.5):
    model = unbuilt(dropout)
    model.build((None, 2))
    return model


@pytest.mark.slow
def test_unbuilt_model_trains_like_a_built_one():
    histories = []
    for model in (unbuilt(), built()):
        first = pretrain(model, X_L, Y_L, epochs=2, **QUIET)
        assert model.input_shape == (None, 2)
        second = regularize(model, X_L, X_U, epochs=2, **BATCHES, **QUIET)
        histories.append((first.history, second.history))
    assert histories[0] == histories[1]


class Source:
    """X_U, computed when it is asked for."""

    shape, dtype = X_U.shape, X_U.dtype

    def __len__(self):
        return len(X_U)

    def take(self, indices):
        return X_U[indices]


class FromFile(np.memmap):
    """A memmap that may not be read as a whole."""

    def __getitem__(self, index):
        rows = super().__getitem__(index)
        assert len(rows) < len(self)
        return rows.view(np.ndarray)

    def __array__(self, *_, **__):
        raise AssertionError("the whole file was read")

    def __array_ufunc__(self, ufunc, *_, **__):
        raise AssertionError(f"the whole file went through {ufunc}")


@pytest.mark.slow
def test_memmap_and_image_source_are_read_batch_by_batch(tmp_path, monkeypatch):
    monkeypatch.setattr(pipeline, "STEPS_AT_ONCE", 2)
    np.save(tmp_path / "x.npy", X_U)
    stored = np.load(tmp_path / "x.npy", mmap_mode="r")
    mapped = FromFile(stored.filename, X_U.dtype, "r", stored.offset, X_U.shape)
    histories = [
        regularize(network(), X_L, x, epochs=2, **BATCHES, **QUIET).history
        for x in (X_U, mapped, Source())
    ]
    assert histories[0] == histories[1] == histories[2]


def pixels(dtype):
    rng = np.random.default_rng(0)
    return rng.integers(0, 256, (12, 2), "uint8").astype(dtype)


# The same numbers again


@pytest.mark.slow
def test_same_seed_same_numbers():
    first = both_stages(network(dropout=0.5))
    assert both_stages(network(dropout=0.5)) == first
    assert both_stages(network(dropout=0.5), seed=1) != first


@pytest.mark.slow
def test_same_numbers_in_a_fresh_process():
    program = (
        "import json, test_training as t;"
        "print(json.dumps(t.both_stages(t.network(dropout=0.5))))"
    )
    here = Path(__file__).parent
    environment = fresh.environment(here, KERAS_BACKEND=keras.backend.backend())
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True,
        env=environment,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-3000:]
    received = json.loads(result.stdout.splitlines()[-1])
    assert received == both_stages(network(dropout=0.5))


def stage_1(model, optimizer, epochs, initial_epoch=0):
    return pretrain(
        model, X_L, Y_L, epochs=epochs, initial_epoch=initial_epoch,
        batch_size=4, report_every=2, optimizer=optimizer, **QUIET,
    ).history["loss"]  # fmt: skip


def stage_2(model, optimizer, epochs, initial_epoch=0):
    return regularize(
        model, X_L, X_U, epochs=epochs, initial_epoch=initial_epoch,
        optimizer=optimizer, **BATCHES, **QUIET,
    ).history["loss"]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("stage", [stage_1, stage_2])
def test_training_goes_on_where_it_ended(stage):
    whole = network()
    expected = stage(whole, sgd(), 4)
    model, optimizer = network(), sgd()
    # Stage 1 makes its reports every two passes, also of four.
    halves = stage(model, optimizer, 2) + stage(model, optimizer, 4, 2)
    assert halves == expected
    for mine, its in zip(model.get_weights(), whole.get_weights(), strict=True):
        np.testing.assert_array_equal(mine, its)


class Interrupted(Exception):
    """As if the process were killed."""


class Interrupt(keras.callbacks.Callback):
    """Ends training in an epoch, counted from 0."""

    def __init__(self, epoch):
        super().__init__()
        self.epoch = epoch

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == self.epoch:
            raise Interrupted


def restorable_1(model, callbacks):
    return pretrain(
        model, X_L, Y_L, epochs=8, batch_size=4, report_every=2,
        callbacks=callbacks, **QUIET,
    )  # fmt: skip


def restorable_2(model, callbacks):
    return regularize(
        model, X_L, X_U, epochs=4, callbacks=callbacks, **BATCHES, **QUIET
    )


@pytest.mark.slow
@pytest.mark.parametrize("train", [restorable_1, restorable_2])
def test_interrupted_training_is_restored_with_its_batches(train, tmp_path):
    whole, model = network(), network()
    expected = train(whole, ()).history["loss"][2:]
    backup = str(tmp_path / "backup")
    with pytest.raises(Interrupted):
        restore = keras.callbacks.BackupAndRestore(backup)
        train(model, [restore, Interrupt(2)])
    restored = network(seed=1)
    restore = keras.callbacks.BackupAndRestore(backup)
    assert train(restored, [restore]).history["loss"] == expected
    for mine, its in zip(
        restored.get_weights(), whole.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(mine, its)


# Callbacks of Keras


@pytest.mark.slow
def test_training_stops_early_by_validation():
    monitor = keras.callbacks.EarlyStopping(min_delta=100.0, patience=1)
    history = regularize(
        network(), X_L, X_U, epochs=9, validation_data=(X_V, Y_V),
        callbacks=monitor, **BATCHES, **QUIET,
    ).history  # fmt: skip
    errors = history["val_error"]
    assert len(errors) == 2
    assert history["val_accuracy"] == [1 - error for error in errors]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["gar", ExtendedGAR(average=0.5)])
def test_a_checkpoint_has_the_model_without_gar(method, tmp_path):
    model = network(dropout=0.5)
    checkpoint = keras.callbacks.ModelCheckpoint(tmp_path / "{epoch}.keras")
    history = regularize(
        model, X_L, X_U, y_labeled=Y_L, epochs=2, callbacks=[checkpoint],
        method=method, **BATCHES, **QUIET,
    )  # fmt: skip
    assert len(history.epoch) == 2
    loaded = keras.saving.load_model(tmp_path / "2.keras")
    assert not is_regularized(loaded)
    np.testing.assert_array_equal(loaded(X_V), model(X_V))
    assert not np.array_equal(
        keras.saving.load_model(tmp_path / "1.keras")(X_V), loaded(X_V)
    )


# What remains of it


class Owned(Source):
    """An image source of which weak references can be made."""


@pytest.mark.slow
@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="TensorFlow's graphs"
)
def test_training_leaves_no_graph_behind():
    from tensorflow.python.framework.func_graph import FuncGraph

    def graphs():
        gc.collect()
        return sum(issubclass(type(o), FuncGraph) for o in gc.get_objects())

    both_stages(network(dropout=0.5))
    before = graphs()
    both_stages(network(dropout=0.5))
    assert graphs() == before


@pytest.mark.slow
def test_training_leaves_no_image_source_behind():
    source = Owned()
    left = weakref.ref(source)
    regularize(network(), X_L, source, epochs=1, **BATCHES, **QUIET)
    del source
    keras.utils.clear_session()
    gc.collect()
    assert left() is None


@pytest.mark.slow
@pytest.mark.parametrize("largest_copy", [0, 1 << 30], ids=["large", "small"])
@pytest.mark.parametrize(
    "call",
    [
        lambda model, x: fit.predict(model, x),
        lambda model, x: error_rate(model, x, np.zeros(len(x), int)),
        lambda model, x: pretrain(
            model, x, np.arange(len(x)) % 3, epochs=1, batch_size=5000, **QUIET
        ),
        lambda model, x: regularize(
            model, x[:6], x, y_labeled=Y_L, epochs=1, images_per_epoch=10,
            validation_data=(x, np.zeros(len(x), int)), **BATCHES, **QUIET,
        ),
    ],
    ids=["predict", "error_rate", "pretrain", "regularize"],
)  # fmt: skip
def test_no_call_keeps_the_examples(call, largest_copy, monkeypatch):
    monkeypatch.setattr(batches, "LARGEST_COPY", largest_copy)
    model = network()
    held = []
    tracemalloc.start()
    try:
        for _ in range(4):
            # Of float64, which both paths convert.
            call(model, blobs(60_000)[0].astype("float64"))
            gc.collect()
            held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    # Each table has 1 MB in float64. The first call compiles.
    assert held[-1] - held[1] < 0.4e6


# Numbers out of bounds


def with_weight(value):
    model = network()
    weights = model.get_weights()
    weights[0][0, 0] = value
    model.set_weights(weights)
    return model


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_weights_are_refused(bad):
    message = "kernel is NaN or infinite before training"
    with pytest.raises(FloatingPointError, match=message):
        pretrain(with_weight(bad), X_L, Y_L, epochs=1, **QUIET)
    with pytest.raises(FloatingPointError, match=message):
        regularize(with_weight(bad), X_L, X_U, epochs=1, **BATCHES, **QUIET)


class EndBadly(keras.callbacks.Callback):
    """Spoils the model in the second epoch, and ends training in the third."""

    def __init__(self, error):
        super().__init__()
        self.error = error

    def on_epoch_begin(self, epoch, logs=None):
        value = [0.0, 100.0, np.nan][epoch]
        self.model.trainable_weights[-1].assign([value, 0, 0])
        if epoch == 2 and self.error is KeyboardInterrupt:
            raise KeyboardInterrupt


@pytest.mark.slow
@pytest.mark.parametrize(
    ("error", "measured", "bias"),
    [
        (FloatingPointError, True, 0),
        (KeyboardInterrupt, True, 0),
        (FloatingPointError, False, 7),
        (KeyboardInterrupt, False, np.nan),
    ],
)
def test_stage_2_that_ends_badly_leaves_the_weights_that_count(
    error, measured, bias
):
    model = network()
    # With its first weights the error is 0.
    y = ops.convert_to_numpy(model(X_V)).argmax(axis=1)
    model.layers[-1].bias.assign([7.0, 0, 0])
    with pytest.raises(error):
        regularize(
            model, X_L, X_U, epochs=4, optimizer=keras.optimizers.SGD(0.0),
            validation_data=(X_V, y) if measured else None,
            callbacks=[EndBadly(error)], **BATCHES, **QUIET,
        )  # fmt: skip
    np.testing.assert_array_equal(model.get_weights()[-1], [bias, 0, 0])


def test_stage_1_that_diverges_leaves_the_first_weights():
    model = network()
    model.layers[-1].bias.assign([7.0, 0, 0])
    with pytest.raises(FloatingPointError):
        pretrain(
            model, X_L, Y_L, epochs=3, report_every=1,
            optimizer=keras.optimizers.SGD(0.0),
            callbacks=[EndBadly(FloatingPointError)], **QUIET,
        )  # fmt: skip
    np.testing.assert_array_equal(model.get_weights()[-1], [7, 0, 0])


@pytest.mark.slow
def test_average_is_taken_where_training_is_interrupted():
    class Interrupt(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            self.model.evaluated.weights[-1].assign([1.0, 2.0, 3.0])
            raise KeyboardInterrupt

    model = network()
    with pytest.raises(KeyboardInterrupt):
        regularize(
            model, X_L, X_U, y_labeled=Y_L, method=ExtendedGAR(average=0.5),
            epochs=1, callbacks=[Interrupt()], **BATCHES, **QUIET,
        )  # fmt: skip
    np.testing.assert_array_equal(model.get_weights()[-1], [1, 2, 3])


class PoisonLogits(keras.callbacks.Callback):
    """Puts NaN into the weights of the logits, before an epoch."""

    def on_epoch_begin(self, epoch, logs=None):
        weight = self.model.trainable_weights[-2]
        weight.assign(np.full(weight.shape, np.nan))


@pytest.mark.slow
@pytest.mark.parametrize("model", [linear, network])
def test_nan_logits_stop_stage_2(model):
    # In the loss itself: no ReLU may turn them into B = 0.
    with pytest.raises(FloatingPointError, match="Not finite: .*balance"):
        regularize(
            model(), X_L, X_U, epochs=3, callbacks=[PoisonLogits()],
            **BATCHES, **QUIET,
        )  # fmt: skip


class PoisonHidden(keras.callbacks.Callback):
    """Puts NaN into a hidden layer, which a fused ReLU may hide."""

    def on_epoch_end(self, epoch, logs=None):
        self.model.trainable_weights[0].assign(np.full((2, 8), np.nan))


@pytest.mark.slow
def test_nan_of_a_hidden_layer_stops_training():
    with pytest.raises(FloatingPointError, match="is NaN|logits|became nan"):
        regularize(
            network(), X_L, X_U, epochs=3, callbacks=[PoisonHidden()],
            **BATCHES, **QUIET,
        )  # fmt: skip


# Bad input


def with_bad(x, value):
    x = x.copy()
    x[1, 1] = value
    return x


STAGE_1 = dict(model=None, x_labeled=X_L, y_labeled=Y_L, epochs=1)
BAD_STAGE_1 = {
    "no batch": (dict(batch_size=0), "Received: batch_size=0"),
    "report": (dict(report_every=0), "report_every=0"),
    "begins in between": (
        dict(epochs=4, initial_epoch=2), "multiple of the 4 epochs",
    ),
    "seed": (dict(seed=-1), "seed=-1"),
    "no pair": (dict(validation_data=X_V), r"pair \(x, y\)"),
    "validation source": (dict(validation_data=(Source(), Y_U)), "x.take"),
    "validation dtype": (
        dict(validation_data=(X_V.astype("uint8"), Y_V)),
        "same shape and dtype",
    ),
    "validation labels": (
        dict(validation_data=(X_V, Y_V[:-1])), "each of the 20 examples",
    ),
    "callback": (dict(callbacks=["stop"]), "Received: callback='stop'"),
    "class of callbacks": (
        dict(callbacks=keras.callbacks.History), "callback=<class .*History",
    ),
    "inputs": (
        dict(x_labeled=(X_L, X_L)), "takes 1 inputs. Received: 2 arrays",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "change, message", BAD_STAGE_1.values(), ids=BAD_STAGE_1
)
def test_bad_input_of_stage_1_is_refused(change, message):
    arguments = {**STAGE_1, "model": network(), **change}
    before = arguments["model"].get_weights()
    with pytest.raises(ValueError, match=message):
        pretrain(**arguments, **QUIET)
    for mine, its in zip(arguments["model"].get_weights(), before, strict=True):
        np.testing.assert_array_equal(mine, its)


STAGE_2 = dict(x_labeled=X_L, x_unlabeled=X_U, epochs=1, **BATCHES)
BAD_STAGE_2 = {
    "shape": (dict(x_unlabeled=X_U[:, :1]), "same shape and dtype"),
    "guides from a source": (dict(x_labeled=Source()), "x.take"),
    "no batch": (
        dict(unlabeled_per_batch=0), "Received: unlabeled_per_batch=0",
    ),
    "begins late": (dict(initial_epoch=2), "initial_epoch=2"),
    "layer": (dict(layer=GraphActivityRegularizer()), "layer must be"),
    "nothing ends it": (dict(epochs="auto"), "validation_data=None"),
    "no number": (dict(epochs="many"), "Received: epochs='m"),
    "method": (dict(method=3), "Received: method=3"),
    "class of methods": (
        dict(method=ExtendedGAR), "made of a class .*method=<class",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "change, message", BAD_STAGE_2.values(), ids=BAD_STAGE_2
)
def test_bad_input_of_stage_2_is_refused(change, message):
    model = network()
    before = model.get_weights()
    with pytest.raises(ValueError, match=message):
        regularize(model, **{**STAGE_2, **change}, **QUIET)
    for mine, its in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(mine, its)


def with_last(*stack):
    return keras.Sequential([keras.Input((2,)), *stack])


BAD_MODELS = {
    "softmax": (
        lambda: with_last(layers.Dense(3, activation="softmax")), "activation",
    ),
    "one output": (lambda: with_last(layers.Dense(1)), "n of at least 2"),
    "no row": (
        lambda: with_last(layers.Dense(4), layers.Reshape((2, 2))),
        "n of at least 2",
    ),
}  # fmt: skip


@pytest.mark.parametrize("make, message", BAD_MODELS.values(), ids=BAD_MODELS)
def test_model_without_logits_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        pretrain(make(), X_L, Y_L, epochs=1, **QUIET)
    with pytest.raises(ValueError, match=message):
        regularize(make(), **STAGE_2, **QUIET)


def test_images_that_keras_would_cut_off_are_refused():
    def model():
        source = keras.Input((2,), dtype="uint8")
        x = layers.Rescaling(1 / 255)(source)
        return keras.Model(source, layers.Dense(3)(x))

    x, message = pixels("int64"), "takes inputs of dtype uint8.*int64"
    with pytest.raises(ValueError, match=message):
        pretrain(model(), x, np.arange(12) % 3, epochs=1, **QUIET)
    with pytest.raises(ValueError, match=message):
        regularize(model(), x, x, epochs=1, **BATCHES, **QUIET)
    pretrain(model(), pixels("uint8"), np.arange(12) % 3, epochs=1, **QUIET)


# Classes that are lost


class Fading(layers.Layer):
    """Takes one class away after some steps of training."""

    def __init__(self, fades, after):
        super().__init__()
        self.fades = fades
        self.after = after
        self.step = self.add_weight(
            shape=(), initializer="zeros", dtype="int32", trainable=False
        )

    def call(self, Z, training=None):
        if training:
            self.step.assign(self.step + 1)
        gone = ops.cast(self.step > self.after, "float32")
        return Z - 9 * gone * np.eye(CLASSES, dtype="float32")[self.fades]


EYE = np.tile(np.eye(CLASSES, dtype="float32"), (200, 1))


def fading(fades=1, after=10):
    """A model that is right about `EYE`, until it fades."""
    eye = layers.Dense(CLASSES, kernel_initializer="identity")
    return keras.Sequential(
        [keras.Input((CLASSES,)), eye, Fading(fades, after)]
    )


def named(train):
    """The warnings of a training, and the number of classes in use."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        history = train().history
    found = [str(w.message) for w in caught if w.category is GARWarning]
    return found, history["classes_in_use"]


def stage_2(model, epochs=2):
    # 30 steps of 22 examples, of which 660 a class is to have 220.
    return lambda: regularize(
        model, EYE[:3], EYE, epochs=epochs, labeled_per_batch=2,
        unlabeled_per_batch=20, optimizer=keras.optimizers.SGD(0.0), **QUIET,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("after, in_use", [(10, [2, 2]), (40, [3, 2])])
def test_a_class_lost_is_named_at_the_end_of_its_epoch(after, in_use):
    found, counts = named(stage_2(fading(after=after)))
    assert counts == in_use
    (message,) = found
    epoch = in_use.index(2) + 1
    assert f"is without class 1: at the end of epoch {epoch} " in message


def test_a_model_of_ones_own_is_watched_after_loading(tmp_path):
    eye = layers.Dense(CLASSES, kernel_initializer="identity")
    layer = GraphActivityRegularization(name="digits")
    model = keras.Sequential([keras.Input((CLASSES,)), eye, layer])
    model.save(tmp_path / "model.keras")
    model = keras.saving.load_model(tmp_path / "model.keras")
    model.compile(keras.optimizers.SGD(0.0), steps_per_execution=3)
    # None of class 0 in the last 32 of 42 steps.
    x = np.concatenate([EYE[:200], np.tile(EYE[1:3], (320, 1))])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # Validation, which has all classes, comes before on_epoch_end.
        history = model.fit(
            x, batch_size=20, shuffle=False, validation_data=(EYE,),
            callbacks=[WarnOnCollapse()], **QUIET,
        ).history  # fmt: skip
    (message,) = [w.message for w in caught if w.category is GARWarning]
    assert "without class 0 in the layer 'digits'" in str(message)
    assert history["digits_classes_in_use"] == [2]
    assert history["val_digits_classes_in_use"] == [3]


# The first steps, which can lose a class.


def one_common_feature(m, seed):
    """Features of three classes, most of which all examples have in common."""
    rng = np.random.default_rng(seed)
    y = np.arange(m) % 3
    own = np.eye(3)[y] + 0.3 * rng.normal(size=(m, 3))
    return np.hstack([np.full((m, 1), 3.0), own]).astype("float32"), y


def pretrained_on_common_feature():
    """A linear network as notebook 02 has it; it classifies 9 of 10 right."""
    W = np.full((4, 3), 1 / 12)
    W[1:] = np.eye(3) + 0.15 * np.random.default_rng(0).normal(size=(3, 3))
    logits = keras.layers.Dense(3, use_bias=False)
    model = keras.Sequential([keras.Input((4,)), logits])
    model.set_weights([W])
    return model


@pytest.mark.parametrize(
    ("optimizer", "classes"), [(sgd, 2), (lambda: None, 3)]
)
def test_the_default_keeps_the_class_that_the_papers_steps_lose(
    optimizer, classes
):
    x, y = one_common_feature(24 * 100, seed=0)
    model = pretrained_on_common_feature()
    before = error_rate(model, x, y)
    regularize(
        model, x[:12], x, optimizer=optimizer(), epochs=2,
        labeled_per_batch=4, unlabeled_per_batch=20, **QUIET,
    )  # fmt: skip
    predicted = keras.ops.convert_to_numpy(model(x)).argmax(axis=1)
    assert len(np.unique(predicted)) == classes
    assert (error_rate(model, x, y) <= before) == (classes == 3)
