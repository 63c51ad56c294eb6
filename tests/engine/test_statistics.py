"""Inference, after each epoch, is of the network that was trained."""

import keras
import numpy as np
import pytest
from keras import layers
from said import said
from stacks import Subclassed, functional, sequential

from gar_keras import error_rate, pretrain, regularize, sgd
from gar_keras.engine.statistics import MeasureStatistics
from gar_keras.training import LARGEST_GAP

MOMENTA = [0.9, 0.999]
QUIET = {"verbose": 0}

rng = np.random.default_rng(0)
Y = np.arange(600) % 3
X = (rng.normal(size=(600, 4)) + 4 * np.eye(4)[Y] + 2).astype("float32")
X_L, Y_L = X[:24], Y[:24]
# Drawn once: a network gets the same, whichever test ran before.
IMAGES = rng.integers(0, 256, (30, 32, 32, 3)).astype("float32")
FEW = {"labeled_per_batch": 8, "unlabeled_per_batch": 40}


def head():
    return layers.ReLU(), layers.Dense(3)


def nested(normalization):
    inner = sequential(normalization, shape=(16,))
    return sequential(sequential(layers.Dense(16), inner), *head())


def twice(normalization):
    """One layer for two halves, whose moments are those of both."""
    inputs = keras.Input((4,))
    hidden = layers.Dense(16)(inputs)
    halves = [normalization(hidden[:, :8]), normalization(hidden[:, 8:])]
    hidden = layers.Concatenate()(halves)
    for layer in head():
        hidden = layer(hidden)
    return keras.Model(inputs, hidden)


FORMS = {
    "sequential": lambda bn: sequential(layers.Dense(16), bn, *head()),
    "functional": lambda bn: functional(layers.Dense(16), bn, *head()),
    "first": lambda bn: sequential(bn, layers.Dense(16), *head()),
    "bare": lambda bn: sequential(
        layers.BatchNormalization(
            center=False, scale=False, momentum=bn.momentum
        ),
        *head(),
    ),
    "nested": nested,
    "twice": twice,
    "dropout": lambda bn: sequential(
        layers.Dense(16), layers.Dropout(0.5), bn, *head()
    ),
    "subclassed": lambda bn: Calls(layers.Dense(16), bn, *head()),
}


class Calls(Subclassed):
    def call(self, x, training=None):
        for layer in self.stack:
            normalizes = isinstance(layer, layers.BatchNormalization)
            x = layer(x, training=training) if normalizes else layer(x)
        return x


def network(form="sequential", **options):
    keras.utils.set_random_seed(0)
    model = FORMS[form](layers.BatchNormalization(**options))
    model(X_L)
    return model


def normalization_of(model):
    found = [
        layer
        for layer in model._flatten_layers()
        if isinstance(layer, layers.BatchNormalization)
    ]
    return found[0]


def in_training(model, x):
    """The logits of `x` as one batch of training, without a change."""
    for layer in model._flatten_layers():
        if isinstance(layer, layers.Dropout):
            layer.rate = 0.0
    with keras.StatelessScope():
        return keras.ops.convert_to_numpy(model(x, training=True))


def in_inference(model, x):
    return keras.ops.convert_to_numpy(model(x, training=False))


@pytest.mark.parametrize("form", FORMS)
def test_stage_1_ends_as_it_trained(form):
    results = []
    for momentum in MOMENTA:
        model = network(form, momentum=momentum)
        pretrain(model, X_L, Y_L, epochs=30, report_every=10, **QUIET)
        layer = normalization_of(model)
        assert layer.momentum == momentum and layer.trainable
        results.append(in_inference(model, X))
        if form not in ("dropout", "twice"):
            received = in_inference(model, X_L)
            expected = in_training(model, X_L)
            np.testing.assert_allclose(received, expected, atol=1e-3)
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize(
    "method", ["safe-gar", "gar", "mean-teacher", "vat-entropy", "supervised"]
)
def test_stage_2_ends_alike_for_each_momentum(method):
    results = []
    for momentum in MOMENTA:
        model = network(momentum=momentum)
        # A plain `fit` of Keras, in which no statistics are measured.
        model.compile(
            keras.optimizers.Adam(0.02),
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        )
        model.fit(
            np.tile(X_L, (60, 1)), np.tile(Y_L, 60), 24, shuffle=False, **QUIET
        )
        history = regularize(
            model, X_L, X, y_labeled=Y_L, method=method, epochs=2,
            validation_data=(X, Y), keep_best=False, **QUIET,
        )  # fmt: skip
        assert error_rate(model, X, Y) == history.history["val_error"][-1]
        results.append((error_rate(model, X, Y), in_inference(model, X)))
    (first, expected), *others = results
    assert first < 0.05
    for error, received in others:
        # A teacher's targets are made with moving statistics within an epoch.
        if method != "mean-teacher":
            np.testing.assert_allclose(received, expected, rtol=1e-2, atol=0.05)
        assert error == pytest.approx(first, abs=0.01)


def test_what_is_not_measured_stays_to_the_bit():
    """Frozen layers and those with renorm, weights, and the state of seeds."""

    def run(form, freeze=False, measures=True, **options):
        model = network(form, **options)
        layer = normalization_of(model)
        layer.trainable = not freeze
        with pytest.MonkeyPatch.context() as patch:
            if not measures:
                patch.setattr(MeasureStatistics, "measure", lambda self: 0.0)
            pretrain(model, X_L, Y_L, epochs=4, report_every=2, **QUIET)
        return model, [np.asarray(v.numpy()) for v in layer.weights]

    start = [np.asarray(v.numpy()) for v in normalization_of(network()).weights]
    np.testing.assert_equal(run("sequential", freeze=True)[1], start)
    for form, options in (("dropout", {}), ("sequential", {"renorm": True})):
        if options and not hasattr(layers.BatchNormalization(), "renorm"):
            continue
        model, mine = run(form, **options)
        other, others = run(form, measures=False, **options)
        if options:
            np.testing.assert_equal(mine, others)
        for ours, theirs in zip(model.variables, other.variables, strict=True):
            if "moving" not in ours.path:
                np.testing.assert_equal(ours.numpy(), theirs.numpy())


def test_the_moments_are_those_of_all_examples():
    """Of batches of 10, 10 and 4, by hand."""
    model = network("dropout")
    pretrain(model, X_L, Y_L, epochs=3, batch_size=10, **QUIET)
    layer = normalization_of(model)
    hidden = in_inference(model.layers[0], X_L).astype("float64")
    for received, expected in (
        (layer.moving_mean, hidden.mean(0)),
        (layer.moving_variance, hidden.var(0)),
    ):
        np.testing.assert_allclose(received.numpy(), expected, rtol=1e-4)


def test_each_callback_sees_them_and_a_run_goes_on(tmp_path):
    """Validation error, checkpoints, and a training that was cut."""

    class Stop(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            raise KeyboardInterrupt

    def train(stage, model, callbacks):
        if stage == 1:
            return pretrain(
                model, X_L, Y_L, epochs=60, report_every=20, batch_size=24,
                validation_data=(X, Y), callbacks=callbacks, **QUIET,
            )  # fmt: skip
        return regularize(
            model, X_L, X, y_labeled=Y_L, epochs=3, validation_data=(X, Y),
            keep_best=False, callbacks=callbacks, **FEW, **QUIET,
        )  # fmt: skip

    for stage in (1, 2):
        backup = keras.callbacks.BackupAndRestore(
            tmp_path / f"backup{stage}", delete_checkpoint=False
        )
        saved = tmp_path / f"{stage}.keras"
        whole = network(momentum=0.999)
        checkpoint = keras.callbacks.ModelCheckpoint(saved)
        history = train(stage, whole, [checkpoint]).history
        assert history["val_error"][-1] < 0.05
        loaded = keras.models.load_model(saved, compile=False)
        assert error_rate(loaded, X, Y) == history["val_error"][-1]
        model = network(momentum=0.999)
        with pytest.raises(KeyboardInterrupt):
            train(stage, model, [backup, Stop()])
        again = network(momentum=0.999)
        train(stage, again, [backup])
        np.testing.assert_equal(again.get_weights(), whole.get_weights())


def test_they_fit_the_averages_of_an_optimizer():
    model = network()
    # Raw weights and averages are far apart.
    optimizer = sgd(use_ema=True, ema_momentum=0.99)
    pretrain(model, X_L, Y_L, epochs=30, optimizer=optimizer, **QUIET)
    received, expected = in_inference(model, X_L), in_training(model, X_L)
    np.testing.assert_allclose(received, expected, atol=1e-3)


def test_a_stream_is_read_once():
    class Counted(keras.utils.PyDataset):
        reads = 0

        def __len__(self):
            return 60

        def __getitem__(self, index):
            Counted.reads += 1
            return X[10 * index : 10 * index + 10]

    model = network(momentum=0.999)
    pretrain(model, X_L, Y_L, epochs=30, **QUIET)
    counts = []
    for epochs in (1, 3):
        Counted.reads = 0
        regularize(model, X_L, Counted(), epochs=epochs, **FEW, **QUIET)
        counts.append(Counted.reads)
    assert error_rate(model, X, Y) < 0.05
    # Two more epochs of 60 batches; what is fetched ahead may differ.
    assert counts[1] - counts[0] <= 2 * 60 + 10


def test_statistics_that_do_not_fit_are_told():
    def train(model):
        return lambda: regularize(
            model, X_L, X, y_labeled=Y_L, epochs=1, **QUIET
        )

    for momentum in MOMENTA:
        model = network(momentum=momentum)
        pretrain(model, X_L, Y_L, epochs=30, **QUIET)
        assert "statistics" not in "".join(said(train(model)))
    layer = normalization_of(model)
    layer.moving_mean.assign(layer.moving_mean + 9)
    found = [text for text in said(train(model)) if "statistics" in text]
    assert len(found) == 1 and "anew" in found[0]
    # By hand: means off by one, two and three standard deviations.
    model = network("first", epsilon=0.0)
    mean, std = X[:8].mean(0), X[:8].std(0)
    layer = normalization_of(model)
    layer.moving_mean.assign(mean + std * [1, 2, 3, 0])
    layer.moving_variance.assign(std**2)

    class Batches:
        images = X

    measured = MeasureStatistics(model, Batches())
    measured._batches = lambda: [X[:8]]
    gap = measured.measure()
    assert gap == pytest.approx(np.sqrt(14 / 4), rel=1e-4) and gap > LARGEST_GAP
    assert measured.measure() == pytest.approx(0, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"),
    [("MobileNetV2", {"alpha": 0.35}), ("EfficientNetB0", {})],
)
def test_networks_of_keras_learn_their_labels(name, options):
    keras.utils.set_random_seed(0)
    y = np.arange(30) % 3
    x = IMAGES.copy()
    x[:, :8] = 100 * y[:, None, None, None]
    base = getattr(keras.applications, name)(
        input_shape=(32, 32, 3), weights=None, include_top=False,
        pooling="avg", **options,
    )  # fmt: skip
    model = sequential(base, layers.Dense(3), shape=(32, 32, 3))
    pretrain(model, x / 255, y, epochs=40, report_every=40, **QUIET)
    assert error_rate(model, x / 255, y) == 0


def test_a_large_loss_is_told():
    model = sequential(layers.Dense(3))
    model(X)
    model.set_weights([np.ones((4, 3)) * [1e3, 0, -1e3], np.zeros(3)])
    options = {"method": "supervised", "epochs": 2, **FEW, **QUIET}
    optimizer = keras.optimizers.SGD(1e-9)
    texts = said(
        lambda: regularize(
            model, X_L, X, y_labeled=Y_L, optimizer=optimizer, **options
        )
    )
    found = [text for text in texts if "mean loss" in text]
    assert len(found) == 1 and "most of it supervised=" in found[0]
