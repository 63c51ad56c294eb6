"""Algorithm 1 on tiny data, against steps worked out in NumPy."""

import gc
import logging
import tracemalloc
from dataclasses import dataclass
from typing import ClassVar

import fresh
import keras
import numpy as np
import oracle
import pytest
from blobs import blobs
from keras import layers, ops
from said import said
from sources import Source
from stacks import Subclassed, Untold, sequential

from gar_keras import (
    GAR,
    GraphActivityRegularization,
    GraphActivityRegularizer,
    SafeGAR,
    attach,
    error_rate,
    pretrain,
    regularize,
    sgd,
)
from gar_keras.callbacks import WarnOnCollapse
from gar_keras.engine.batches import BatchSampler
from gar_keras.methods.base import Term
from gar_keras.models import is_regularized

CLASSES = 3
BATCHES = dict(labeled_per_batch=2, unlabeled_per_batch=10)
QUIET = dict(verbose=0)
X_L, Y_L = blobs(6)
X_U, Y_U = blobs(45, seed=1)
X_V, Y_V = blobs(20, seed=2)


def network(dropout=0.0, seed=0):
    keras.utils.set_random_seed(seed)
    return sequential(
        layers.Dense(8, activation="relu"),
        # A seed of its own, so that it does not change the weights.
        layers.Dropout(dropout, seed=1),
        layers.Dense(CLASSES, name="logits"),
        shape=(2,),
    )


def linear(*before, **options):
    keras.utils.set_random_seed(0)
    logits = layers.Dense(CLASSES, **options)
    return sequential(*before, logits, shape=(2,))


def gar(model, x_unlabeled=X_U, **options):
    """Stage 2 on the data above, in five steps an epoch."""
    options = {**BATCHES, **QUIET, **options}
    return regularize(model, X_L, x_unlabeled, **options)


def both_stages(model, seed=0, **options):
    """Trains through both stages; the histories and the final weights."""
    first = pretrain(
        model, X_L, Y_L, epochs=4, batch_size=4, report_every=2, seed=seed,
        validation_data=(X_V, Y_V), **QUIET,
    )  # fmt: skip
    validated = {"validation_data": (X_V, Y_V), **options}
    second = gar(model, epochs=3, seed=seed, **validated)
    weights = [w.tolist() for w in model.get_weights()]
    return [first.history, second.history, weights]


def assert_first_step(model, history, W, loss):
    """Of the authors' optimizer, whose momentum starts at 0."""
    assert history["loss"] == pytest.approx([loss(W)], rel=1e-5)
    expected = W - (1 + 0.95) * 0.01 * oracle.differences(loss, W)
    received = model.get_weights()[0]
    np.testing.assert_allclose(received, expected, rtol=1e-4, atol=1e-6)


def unbuilt():
    keras.utils.set_random_seed(0)
    return keras.Sequential([layers.Dense(CLASSES)])


MODELS = {
    "plain": linear,
    "unbuilt": unbuilt,
    "subclassed": lambda: Subclassed(*linear().layers),
}
ATTACHED = {"leaves the loss of GAR out": lambda: attach(linear())}


def test_metrics_of_ones_own_do_not_count_labels_of_another_form():
    model = linear()
    loss = keras.losses.CategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=["categorical_accuracy"])
    history = pretrain(model, X_L, np.eye(3)[Y_L], epochs=1, **QUIET).history
    assert [*history] == ["loss"]


@pytest.mark.parametrize("name", MODELS | ATTACHED)
def test_first_step_of_stage_1(name):
    model = (MODELS | ATTACHED)[name]()
    W = linear().get_weights()[0].astype("float64")
    history = pretrain(model, X_L, Y_L, epochs=1, **QUIET).history

    def loss(W):
        return oracle.log_loss(X_L @ W, Y_L)

    assert_first_step(model, history, W, loss)


OWN = dict(affinity=0.5, balance=2.0, frobenius=0.1)
FIRST_STEPS = {name: (make, {}, {}) for name, make in MODELS.items()} | {
    "leaves dropout out": (lambda: linear(layers.Dropout(0.5)), {}, {}),
    "no guides": (linear, {"labeled_per_batch": 0}, {}),
    "labels play no part": (linear, {"y_labeled": Y_L, "method": "gar"}, {}),
    "layer of one's own": (
        linear, {"layer": GraphActivityRegularization(**OWN)}, OWN,
    ),
    "activity regularizer": (
        lambda: linear(activity_regularizer=GraphActivityRegularizer(**OWN)),
        {}, OWN,
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("make", "options", "coefficients"), FIRST_STEPS.values(), ids=FIRST_STEPS
)
def test_first_step_of_stage_2(make, options, coefficients):
    model = make()
    W = linear().get_weights()[0].astype("float64")
    sizes = dict(labeled_per_batch=4, unlabeled_per_batch=45)
    options = {"optimizer": sgd(), "seed": 5, **sizes, **options}
    history = gar(model, epochs=1, **options).history
    # One batch: all of X_U and the labelled images that are drawn.
    guides = options["labeled_per_batch"]
    _, chosen = BatchSampler(45, 45, 6, guides, seed=5).epoch(1)
    x = np.concatenate([X_U, X_L[chosen[0]]])

    def loss(W):
        return oracle.loss(x @ W, **coefficients)

    assert_first_step(model, history, W, loss)


@pytest.mark.slow
@pytest.mark.parametrize("keep_best", [True, False])
def test_weights_of_the_best_epoch_are_kept(keep_best):
    # From random weights it gets better and worse.
    model, weights = network(seed=5), []
    note = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda *_: weights.append(model.get_weights())
    )
    history = gar(
        model, epochs=6, validation_data=(X_V, Y_V), optimizer=sgd(3.0),
        keep_best=keep_best, callbacks=[note],
    ).history  # fmt: skip
    errors = history["val_error"]
    best = max(i for i in range(6) if errors[i] == min(errors))
    assert best != 5
    kept = best if keep_best else 5
    np.testing.assert_equal(model.get_weights(), weights[kept])


class Unlearns(keras.callbacks.Callback):
    """Notes the weights of the teacher, and turns the second epoch's logits."""

    def __init__(self, logits):
        super().__init__()
        self.logits, self.weights = logits, []

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 1:
            self.logits.kernel.assign(-4 * self.logits.kernel)

    def on_epoch_end(self, epoch, logs=None):
        self.weights.append(self.model.evaluated.get_weights())


@pytest.mark.slow
def test_of_a_teacher_the_best_epoch_is_kept():
    model = network()
    pretrain(model, X_L, Y_L, epochs=30, **QUIET)
    noted = Unlearns(model.layers[-1])
    history = gar(
        model, y_labeled=Y_L, epochs=2, validation_data=(X_V, Y_V),
        method="mean-teacher", decay_in_ramp=0.5, decay=0.5, callbacks=[noted],
    ).history  # fmt: skip
    first, second = history["val_error"]
    assert first < second
    np.testing.assert_equal(model.get_weights(), noted.weights[0])


@pytest.mark.slow
def test_same_seed_same_numbers():
    numbers = both_stages(network(dropout=0.5))
    assert both_stages(network(dropout=0.5)) == numbers
    assert both_stages(network(dropout=0.5), seed=1) != numbers


def stage_1(model, epochs=8, **options):
    options = {"optimizer": sgd(), **options, **QUIET}
    return pretrain(
        model, X_L, Y_L, epochs=epochs, batch_size=4, report_every=2, **options
    ).history["loss"]


def stage_2(model, epochs=4, **options):
    options = {"optimizer": sgd(), **options}
    return gar(model, epochs=epochs, **options).history["loss"]


@pytest.mark.slow
@pytest.mark.parametrize(("stage", "half"), [(stage_1, 4), (stage_2, 2)])
def test_training_goes_on_where_it_ended(stage, half):
    whole = network()
    losses = stage(whole, 2 * half)
    assert len(losses) == 4
    model, optimizer = network(), sgd()
    first = stage(model, half, optimizer=optimizer)
    second = stage(model, 2 * half, initial_epoch=half, optimizer=optimizer)
    assert first + second == losses
    np.testing.assert_equal(model.get_weights(), whole.get_weights())


class StopAfterTwo(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        self.model.stop_training = epoch == 1


@pytest.mark.slow
def test_ramps_go_on_where_training_was_stopped():
    options = {"y_labeled": Y_L, "method": "pseudo-label"}
    whole = stage_2(network(), **options)
    model, optimizer = network(), sgd()
    options["optimizer"] = optimizer
    first = stage_2(model, callbacks=[StopAfterTwo()], **options)
    assert first == whole[:2]
    assert stage_2(model, initial_epoch=2, **options) == whole[2:]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["gar", "mean-teacher"])
def test_a_checkpoint_has_the_model_without_gar(method, tmp_path):
    model = network(dropout=0.5)
    checkpoint = keras.callbacks.ModelCheckpoint(tmp_path / "{epoch}.keras")
    options = {"y_labeled": Y_L, "method": method}
    history = gar(model, epochs=2, callbacks=[checkpoint], **options)
    assert len(history.epoch) == 2
    loaded = keras.saving.load_model(tmp_path / "2.keras")
    assert not is_regularized(loaded)
    np.testing.assert_array_equal(loaded(X_V), model(X_V))
    assert not np.array_equal(
        keras.saving.load_model(tmp_path / "1.keras")(X_V), loaded(X_V)
    )


@pytest.mark.slow
def test_stage_1_keeps_no_examples():
    model = keras.Sequential([keras.Input((20,)), layers.Dense(CLASSES)])
    tracemalloc.start()
    try:
        # Of 10 MB in float64, which are converted.
        x = np.random.default_rng(0).normal(size=(60_000, 20))
        y = np.arange(len(x)) % CLASSES
        pretrain(model, x, y, epochs=1, batch_size=6000, **QUIET)
        del x
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # What is compiled is less.
    assert kept < 4e6


# Numbers out of bounds


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


def diverging(model, error, validation_data):
    pretrain(
        model, X_L, Y_L, epochs=3, report_every=1,
        optimizer=keras.optimizers.SGD(0.0), callbacks=[EndBadly(error)],
        validation_data=validation_data, **QUIET,
    )  # fmt: skip


def diverging_gar(model, error, validation_data):
    gar(
        model, epochs=4, optimizer=keras.optimizers.SGD(0.0),
        validation_data=validation_data, callbacks=[EndBadly(error)],
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("train", "error", "measured", "bias"),
    [
        (diverging_gar, FloatingPointError, True, 0),
        (diverging_gar, KeyboardInterrupt, True, 0),
        (diverging_gar, FloatingPointError, False, 7),
        (diverging_gar, KeyboardInterrupt, False, np.nan),
        (diverging, FloatingPointError, False, 7),
    ],
)
def test_a_stage_that_ends_badly_leaves_the_weights_that_count(
    train, error, measured, bias
):
    model = network()
    # With its first weights the error is 0.
    y = ops.convert_to_numpy(model(X_V)).argmax(axis=1)
    model.layers[-1].bias.assign([7.0, 0, 0])
    with pytest.raises(error):
        train(model, error, (X_V, y) if measured else None)
    np.testing.assert_array_equal(model.get_weights()[-1], [bias, 0, 0])


@dataclass(frozen=True)
class FailingTerm(Term):
    name: ClassVar[str] = "failing"
    uses_labels: ClassVar[bool] = True
    keeps_dropout: ClassVar[bool] = True

    def loss(self, stage_2, x, y, logits):
        raise RuntimeError("mine")


class FailingCallback(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        raise RuntimeError("mine")


@pytest.mark.parametrize(
    "options",
    [
        {"method": [SafeGAR(), FailingTerm()]},
        {"method": "safe-gar", "callbacks": [FailingCallback()]},
    ],
    ids=["in the first step", "before"],
)
def test_a_training_that_fails_at_once_leaves_the_model_as_it_was(options):
    model = network(dropout=0.5)
    start = model.get_weights()
    with pytest.raises(RuntimeError, match="mine"):
        gar(model, y_labeled=Y_L, epochs=2, **options)
    np.testing.assert_equal(model.get_weights(), start)
    # The seeds of its dropout are there as well.
    gar(model, y_labeled=Y_L, method="pi", epochs=1)


class Interrupt(keras.callbacks.Callback):
    """Notes the weights of the first epoch, and ends the second in a step."""

    def __init__(self, model):
        super().__init__()
        self.watched = model

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 1:
            self.noted = self.watched.get_weights()
            train = self.model.train_function

            def step(*data):
                train(*data)
                raise KeyboardInterrupt

            self.model.train_function = step


@pytest.mark.parametrize("stage", [1, 2])
def test_where_a_step_is_interrupted_training_can_go_on(stage):
    model, optimizer = network(), keras.optimizers.Adam()

    def train(**options):
        options = {"epochs": 4, "optimizer": optimizer, **options}
        if stage == 2:
            return gar(model, **options)
        options["report_every"] = 1
        return pretrain(model, X_L, Y_L, batch_size=2, **options, **QUIET)

    interrupt = Interrupt(model)
    with pytest.raises(KeyboardInterrupt):
        train(callbacks=[interrupt])
    if keras.backend.backend() == "jax":
        # The step has taken them out of the model, and gives none back.
        np.testing.assert_equal(model.get_weights(), interrupt.noted)
    assert np.isfinite(model.get_weights()[0]).all()
    steps = int(optimizer.iterations)
    train(initial_epoch=1)
    assert int(optimizer.iterations) > steps > 0


@pytest.mark.parametrize("stage", [1, 2])
def test_a_checkpoint_of_a_step_is_whole(stage, tmp_path):
    model, path = attach(network()), tmp_path / "{batch}.keras"
    # TensorFlow makes the five steps of an epoch in one call.
    options = {
        "callbacks": [keras.callbacks.ModelCheckpoint(path, save_freq=5)]
    }
    if stage == 1:
        pretrain(model, X_L, Y_L, epochs=5, batch_size=6, **options, **QUIET)
    else:
        gar(model, epochs=1, **options)
    (saved,) = tmp_path.iterdir()
    loaded = keras.saving.load_model(saved, compile=False)
    np.testing.assert_equal(loaded.get_weights(), model.get_weights())


@pytest.mark.slow
def test_average_is_taken_where_training_is_interrupted():
    class Interrupt(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            self.model.evaluated.weights[-1].assign([1.0, 2.0, 3.0])
            raise KeyboardInterrupt

    model = network()
    with pytest.raises(KeyboardInterrupt):
        gar(
            model, y_labeled=Y_L, method="mean-teacher", epochs=1,
            callbacks=[Interrupt()],
        )  # fmt: skip
    np.testing.assert_array_equal(model.get_weights()[-1], [1, 2, 3])


SOUND = {
    pretrain: dict(x_labeled=X_L, y_labeled=Y_L, epochs=1, **QUIET),
    regularize: dict(
        x_labeled=X_L, x_unlabeled=X_U, epochs=1, **BATCHES, **QUIET
    ),
}
BAD_INPUT = {
    "one-hot rows without a column": (
        pretrain, dict(y_labeled=np.eye(2)[Y_L % 2]), r"shape=\(6, 2\), and 3",
    ),
    "-1 in uint8": (
        pretrain, dict(y_labeled=np.array(5 * [0] + [255], "uint8")),
        "In uint8 -1 is 255",
    ),
    "the largest int8": (
        pretrain, dict(y_labeled=np.array(5 * [0] + [127], "int8")),
        "give the model 128 outputs",
    ),
    "no batch": (pretrain, dict(batch_size=0), "Received: batch_size=0"),
    "report": (pretrain, dict(report_every=0), "report_every=0"),
    "begins in between": (
        pretrain, dict(epochs=4, initial_epoch=2), "multiple of the 4 epochs",
    ),
    "seed": (pretrain, dict(seed=-1), "seed=-1"),
    "no pair": (pretrain, dict(validation_data=X_V), r"pair \(x, y\)"),
    "validation source": (
        pretrain, dict(validation_data=(Source(X_U), Y_U)), "an array first",
    ),
    "validation dtype": (
        pretrain, dict(validation_data=(X_V.astype("uint8"), Y_V)),
        "same shape and dtype",
    ),
    "callback": (
        pretrain, dict(callbacks=["stop"]), "Received: callback='stop'",
    ),
    "shape": (regularize, dict(x_unlabeled=X_U[:, :1]), "same shape and dtype"),
    "guides from a source": (
        regularize, dict(x_labeled=Source(X_U)), "an array first",
    ),
    "no unlabelled batch": (
        regularize, dict(unlabeled_per_batch=0),
        "Received: unlabeled_per_batch=0",
    ),
    "begins late": (regularize, dict(initial_epoch=2), "initial_epoch=2"),
    "layer": (
        regularize, dict(layer=GraphActivityRegularizer()), "layer must be",
    ),
    "no number": (regularize, dict(epochs="many"), "Received: epochs='m"),
}  # fmt: skip


@pytest.mark.parametrize("train", SOUND)
def test_a_model_without_weights_to_train_is_refused(train):
    model = network()
    model.trainable = False
    with pytest.raises(ValueError, match="of whose 4 weights none is. Set"):
        train(model, **SOUND[train])


@pytest.mark.parametrize(
    ("train", "change", "message"), BAD_INPUT.values(), ids=BAD_INPUT
)
def test_bad_input_is_refused(train, change, message):
    model = network()
    before = model.get_weights()
    with pytest.raises(ValueError, match=message):
        train(model, **{**SOUND[train], **change})
    np.testing.assert_equal(model.get_weights(), before)


# Classes that are lost


EYE = np.tile(np.eye(CLASSES, dtype="float32"), (200, 1))


def test_a_model_of_ones_own_is_watched_after_loading(tmp_path):
    eye = layers.Dense(CLASSES, kernel_initializer="identity")
    layer = GraphActivityRegularization(name="digits")
    model = sequential(eye, layer, shape=(CLASSES,))
    model.save(tmp_path / "model.keras")
    model = keras.saving.load_model(tmp_path / "model.keras")
    model.compile(keras.optimizers.SGD(0.0), steps_per_execution=3)
    # None of class 0 in the last 32 of 42 steps.
    x = np.concatenate([EYE[:200], np.tile(EYE[1:3], (320, 1))])
    # Validation, which has all classes, comes before on_epoch_end.
    options = {"validation_data": (EYE,), "callbacks": [WarnOnCollapse()]}
    (text,) = said(
        lambda: model.fit(x, batch_size=20, shuffle=False, **options, **QUIET)
    )
    assert "without class 0 in the layer 'digits'" in text
    history = model.history.history
    assert history["digits_classes_in_use"] == [2]
    assert history["val_digits_classes_in_use"] == [3]


def test_validation_does_not_count_in_the_classes_of_an_epoch():
    eye = layers.Dense(CLASSES, kernel_initializer="identity")
    model = attach(sequential(eye, shape=(CLASSES,)))
    # It has no class 2, and more examples than the epoch.
    without = np.tile(EYE[:2], (1000, 1)), np.tile([0, 1], 1000)
    options = {"validation_data": without, "method": "gar", "epochs": 1}
    texts = said(
        lambda: regularize(model, EYE[:3], EYE, **BATCHES, **options, **QUIET)
    )
    assert not any("is without class" in text for text in texts)


# Callbacks and data sets in Keras' order


class Restores(keras.callbacks.Callback):
    """As `EarlyStopping` with `restore_best_weights`, of its own choice."""

    def on_train_end(self, logs=None):
        for weight in self.model.network.weights:
            weight.assign(np.full(weight.shape, 7.0))


def test_the_weights_are_those_that_are_told():
    # A rate that makes each epoch worse than the start.
    start = linear()
    start.set_weights([np.array([[0, 4, -3], [4.0, 0, -3]]), np.zeros(3)])
    model = keras.models.clone_model(start)
    model.set_weights(start.get_weights())
    texts = said(
        lambda: gar(
            model, epochs=2, optimizer=keras.optimizers.SGD(1e3),
            validation_data=(X_V, Y_V), callbacks=[Restores()],
        )
    )  # fmt: skip
    assert any("the model has these" in text for text in texts)
    np.testing.assert_equal(model.get_weights(), start.get_weights())
    # Without validation data it is the user's callback that restores.
    gar(model, epochs=1, callbacks=[Restores()])
    assert all((weight == 7).all() for weight in model.get_weights())


def test_a_lost_class_is_looked_for_in_the_weights_of_the_end():
    model = linear()
    start = [np.array([[0, 4, -3], [4.0, 0, -3]]), np.zeros(3)]
    model.set_weights(start)
    texts = said(
        lambda: gar(model, y_labeled=Y_L, epochs=1, callbacks=[Restores()])
    )
    # Equal logits: all examples are of the first class.
    assert any("Stage 2 has lost classes" in text for text in texts)
    for received, expected in zip(model.get_weights(), start, strict=True):
        np.testing.assert_array_equal(received, expected.astype("float32"))


@pytest.mark.slow
def test_a_model_that_does_not_tell_its_layers_of_training_is_told():
    model = Untold(layers.BatchNormalization(), layers.Dense(CLASSES))
    model(X_L)
    texts = said(lambda: pretrain(model, X_L, Y_L, epochs=3, **QUIET))
    assert sum("has no argument training" in text for text in texts) == 1
    # What it was trained with stays.
    normalization = model.layers[0]
    np.testing.assert_equal(np.array(normalization.moving_mean), 0)
    np.testing.assert_equal(np.array(normalization.moving_variance), 1)
    plain = Untold(layers.Dense(CLASSES))
    plain(X_L)
    texts = said(lambda: pretrain(plain, X_L, Y_L, epochs=1, **QUIET))
    assert not [text for text in texts if "training" in text]


def test_labels_that_no_term_uses_are_told():
    texts = said(
        lambda: gar(network(), y_labeled=Y_L, method=[GAR()], epochs=1)
    )
    assert sum("labels play no part" in text for text in texts) == 1


@pytest.mark.slow
def test_the_model_in_training_is_not_evaluated():
    trained = gar(linear(), epochs=1).model
    with pytest.raises(ValueError, match="Evaluate your own"):
        trained.evaluate(X_V, Y_V)


class Counted(keras.utils.PyDataset):
    """Its batches are others in each epoch."""

    def __init__(self):
        super().__init__()
        self.begun, self.ended, self.seen = 0, 0, []

    def __len__(self):
        return 5

    def on_epoch_begin(self):
        self.begun += 1

    def on_epoch_end(self):
        self.ended += 1

    def __getitem__(self, index):
        self.seen.append((self.begun, self.ended, index))
        rows = np.random.default_rng([self.begun, index]).integers(0, 45, 10)
        return X_U[rows]


@pytest.mark.parametrize("epochs", [1, 4])
def test_a_data_set_hears_of_its_epochs(epochs):
    data = Counted()
    gar(linear(), data, epochs=epochs)
    assert (data.begun, data.ended) == (epochs, epochs)
    trained = [
        (begun, index) for begun, ended, index in data.seen if begun > ended
    ]
    for epoch in range(1, epochs + 1):
        assert sorted(i for begun, i in trained if begun == epoch) == [
            *range(5)
        ]


def test_a_labelled_data_set_hears_of_its_one_pass():
    class Labelled(Counted):
        def __getitem__(self, index):
            return super().__getitem__(index), np.arange(10) % 3

    data, validation = Labelled(), Labelled()
    pretrain(linear(), data, epochs=2, validation_data=validation, verbose=0)
    for each in (data, validation):
        assert (each.begun, each.ended) == (1, 1)
        read = [index for begun, _, index in each.seen if begun == 1]
        assert read == [*range(5)]


# Elsewhere


LOADED = """
import sys, keras, numpy as np
x = np.load("x.npy")
for path in sys.argv[1:]:
    model = keras.models.load_model(path)
    assert "gar_keras" not in sys.modules
    assert type(model.optimizer).__module__.startswith("keras.")
    print(float(model(x)[0, 0]))
    model.fit(x, np.zeros(len(x)), verbose=0)
"""
OPTIMIZERS = {
    "by default": lambda: None,
    "the paper's": lambda: sgd(0.1, global_clipnorm=1.0),
    "Keras'": lambda: keras.optimizers.Adam(0.1),
}


@pytest.mark.slow
def test_a_trained_model_loads_in_plain_keras(tmp_path):
    expected = []
    for name, make in OPTIMIZERS.items():
        model, path = network(), tmp_path / f"{name}.keras"
        pretrain(model, X_L, Y_L, epochs=3, optimizer=make(), verbose=0)
        gar(model, y_labeled=Y_L, epochs=2)
        model.save(path)
        again = keras.models.load_model(path)
        assert error_rate(again, X_U, Y_U) == error_rate(model, X_U, Y_U)
        expected.append(float(model(X_U)[0, 0]))
    np.save(tmp_path / "x.npy", X_U)
    # Nothing of this package is found.
    env = {**fresh.environment(), "PYTHONPATH": ""}
    paths = [f"{name}.keras" for name in OPTIMIZERS]
    printed = fresh.run(LOADED, *paths, env=env, cwd=tmp_path).split()
    assert [*map(float, printed)] == pytest.approx(expected, rel=1e-4)


def test_many_trainings_are_quiet(caplog):
    caplog.set_level(logging.WARNING)
    for _ in range(8):
        model = network()
        pretrain(model, X_L, Y_L, epochs=1, verbose=0)
        error_rate(model, X_U, Y_U)
    assert "retracing" not in caplog.text


def test_a_layer_that_was_in_a_prediction_is_trained_with():
    layer = GraphActivityRegularization()
    model = network()
    attach(model, layer).predict(X_U, verbose=0)
    history = gar(model, method=[GAR(layer=layer)], epochs=1)
    assert 0 < history.history["affinity"][0] < 1


def test_a_name_is_wanted_for_each_class():
    with pytest.raises(ValueError, match="Received: 2 names for 3 outputs"):
        gar(network(), class_names=["ant", "bee"])
