"""The callbacks, each against numbers worked out by hand."""

import itertools
import math
import warnings

import keras
import numpy as np
import pytest
from keras import layers

from gar_keras import (
    ExtendedGAR,
    GARWarning,
    GraphActivityRegularization,
    GraphActivityRegularizer,
    attach,
    balance,
    callbacks,
    collapse,
    error_rate,
    regularize,
)
from gar_keras.callbacks import (
    BestWeights,
    CoefficientSchedule,
    ErrorRate,
    LatestBestWeights,
    StopOnNaN,
    TimeLimit,
)
from gar_keras.collapse import WarnOnCollapse
from gar_keras.metrics import ClassesInUse
from gar_keras.utils.warnings import shown_by, warn


def identity(n=3):
    """A model whose logits are its images."""
    return keras.Sequential(
        [keras.Input((n,)), layers.Dense(n, kernel_initializer="identity")]
    )


X = np.array(
    [[1, 0, 0], [0, 5, 1], [0, -1, -2], [-3, -2, -1]], "float32"
)  # argmax: 0, 1, 0, 2
Y = np.array([0, 1, 2, 2])


def test_former_place_of_warn_on_collapse():
    with pytest.warns(DeprecationWarning, match="gar_keras.collapse"):
        assert callbacks.WarnOnCollapse is WarnOnCollapse
    with pytest.raises(AttributeError, match="nothing"):
        callbacks.nothing  # noqa: B018


# error_rate


def test_error_rate_by_hand():
    assert error_rate(identity(), X, Y) == 1 / 4


@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_error_rate_does_not_depend_on_the_batch_size(batch_size):
    assert error_rate(identity(), X, Y, batch_size) == 1 / 4


@pytest.mark.parametrize(
    "y",
    [Y.tolist(), Y.astype("uint8"), Y[:, None], Y / 1.0, np.eye(3)[Y]],
    ids=["list", "u8", "m1", "floats", "one-hot"],
)
def test_error_rate_of_other_forms_of_labels(y):
    assert error_rate(identity(), X, y) == 1 / 4


@pytest.mark.parametrize(
    "y, message",
    [
        (np.eye(3, dtype=int)[Y[:3]], "one for each of the 4 examples"),
        (Y[:3], r"of the 4 examples.*shape=\(3,\)"),
        (Y[:1], "one for each of the 4 examples"),
        (Y / 2, "integer class indices"),
        ([0, 1, 2, 3], "from 0 to 2"),
        ([0, 1, 2, -1], "negative.*Leave out the examples that have no label"),
        ([0, 1, 2, None], "Leave out the examples that have no label"),
    ],
)
def test_error_rate_of_bad_labels_is_refused(y, message):
    with pytest.raises(ValueError, match=message):
        error_rate(identity(), X, y)


@pytest.mark.parametrize(
    "x, message",
    [("none", "must be an array"), (X[:0], "at least one example")],
)
def test_error_rate_of_bad_images_is_refused(x, message):
    with pytest.raises(ValueError, match=message):
        error_rate(identity(), x, Y[: len(x)])


def one_output():
    return keras.Sequential([keras.Input((3,)), layers.Dense(1)])


def two_outputs():
    source = keras.Input((3,))
    return keras.Model(source, [layers.Dense(3)(source), source])


@pytest.mark.parametrize("make", [one_output, two_outputs])
def test_error_rate_of_what_are_no_logits_is_refused(make):
    with pytest.raises(ValueError, match="one row of logits"):
        error_rate(make(), X, Y)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_error_rate_of_nan_logits_is_refused(bad):
    model = identity()
    kernel, bias = model.get_weights()
    kernel[1, 1] = bad
    model.set_weights([kernel, bias])
    with pytest.raises(FloatingPointError, match="NaN or infinite"):
        error_rate(model, X, Y)


# ErrorRate


def fit(model, epochs=1, **options):
    """Fits on the loss of GAR alone, two steps an epoch."""
    rate = options.pop("rate", 0.0)
    model.compile(keras.optimizers.SGD(rate), loss=None)
    options = {"batch_size": 2, "shuffle": False, "verbose": 0, **options}
    return model.fit(X, epochs=epochs, **options).history


@pytest.mark.slow
def test_errors_are_in_the_history():
    errors = ErrorRate(val_error=(X, Y), test_error=(X, 0 * Y))
    history = fit(attach(identity()), epochs=2, callbacks=[errors])
    assert history["val_error"] == [1 / 4] * 2
    assert history["test_error"] == [2 / 4] * 2
    assert errors.seconds > 0


def test_accuracy_and_loss_have_the_names_of_keras():
    errors = ErrorRate(val_error=(X, Y), other=(X, Y))
    model = identity()
    history = fit(attach(model), callbacks=[errors])
    assert history["val_accuracy"] == [3 / 4]
    Z = X.astype("float64")
    odds = np.exp(Z[np.arange(4), Y]) / np.exp(Z).sum(axis=1)
    assert history["val_loss"] == pytest.approx([-np.mean(np.log(odds))])
    assert history["other"] == [1 / 4]
    assert not {"other_accuracy", "other_loss"} & history.keys()
    # As by Keras' own `evaluate`.
    model.compile(
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    )
    loss = model.evaluate(X, Y, verbose=0)
    assert history["val_loss"] == pytest.approx([loss], rel=1e-6)


def test_loss_of_large_logits():
    model = identity()
    model.set_weights([np.eye(3) * 1e4, np.zeros(3)])
    history = fit(model=attach(model), callbacks=[ErrorRate(val_error=(X, Y))])
    # The third row is taken for class 0, whose logit is ahead by 2e4.
    assert history["val_loss"] == pytest.approx([2e4 / 4])


# BestWeights


class Logs(keras.callbacks.Callback):
    """Puts hand-made errors into the logs, and each epoch into the weights."""

    def __init__(self, errors):
        super().__init__()
        self.errors = errors

    def on_epoch_end(self, epoch, logs=None):
        self.model.layers[1].bias.assign([float(epoch + 1)] * 3)
        logs["val_error"] = self.errors[epoch]


@pytest.mark.slow
@pytest.mark.parametrize(
    "errors, best",
    [([0.3, 0.1, 0.2], 2), ([0.1, 0.1, 0.1], 1), ([0.3, 0.2, 0.1], 3)]
    + [([0.3, 0.1, 0.1], 2)],
)
def test_first_of_the_best_epochs_is_kept(errors, best):
    model = attach(identity())
    keeper = BestWeights()
    fit(model, epochs=3, callbacks=[Logs(errors), keeper])
    assert keeper.best_epoch == best
    assert keeper.best == errors[best - 1]
    np.testing.assert_array_equal(model.layers[1].bias.numpy(), [best] * 3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "errors, best",
    [([0.3, 0.1, 0.2], 2), ([0.1, 0.1, 0.1], 3), ([0.1, 0.3, 0.1], 3)],
)
def test_last_of_the_best_epochs_is_kept(errors, best):
    model = attach(identity())
    keeper = LatestBestWeights()
    fit(model, epochs=3, callbacks=[Logs(errors), keeper])
    assert keeper.best_epoch == best
    np.testing.assert_array_equal(model.layers[1].bias.numpy(), [best] * 3)


@pytest.mark.slow
def test_second_training_forgets_the_first():
    model = attach(identity())
    keeper = BestWeights()
    fit(model, epochs=2, callbacks=[Logs([0.1, 0.2]), keeper])
    fit(model, epochs=2, callbacks=[Logs([0.9, 0.8]), keeper])
    assert (keeper.best, keeper.best_epoch) == (0.8, 2)


def test_best_weights_are_not_those_of_an_earlier_training():
    keeper = BestWeights()
    fit(attach(identity()), callbacks=[Logs([0.1]), keeper])
    assert not keeper.restore()


def test_missing_error_is_named():
    with pytest.raises(ValueError, match="no 'val_error'.*ErrorRate"):
        fit(attach(identity()), callbacks=[BestWeights()])


# StopOnNaN


def fault(model, logs):
    callback = StopOnNaN()
    callback.set_model(model)
    with pytest.raises(FloatingPointError) as error:
        callback.on_train_batch_end(4, logs)
    assert "at step 5" in str(error.value)
    return str(error.value).split("At fault: ")[1].split(". ")[0]


NAN, INF = math.nan, math.inf
GAR = {"affinity": 0.5, "balance": 0.5, "regularization": NAN, "loss": NAN}


@pytest.mark.parametrize(
    "logs, what",
    [
        (
            {**GAR, "affinity": NAN, "balance": NAN},
            "affinity and balance, so the logits themselves",
        ),
        ({**GAR, "balance": NAN}, "balance"),
        ({**GAR, "regularization": INF, "loss": INF}, "the Frobenius term"),
        ({**GAR, "regularization": 1.0}, "the supervised loss"),
        ({"loss": NAN}, "the supervised loss"),
        (
            {"digits_affinity": NAN, "digits_balance": NAN, "loss": NAN},
            "digits_affinity and digits_balance, so the logits themselves",
        ),
    ],
    ids=["logits", "balance", "frobenius", "other", "stage 1", "own name"],
)
def test_term_at_fault_is_named(logs, what):
    assert fault(identity(), logs) == what


def test_activity_regularizer_at_fault_is_named():
    dense = layers.Dense(3, activity_regularizer=GraphActivityRegularizer())
    model = keras.Sequential([keras.Input((3,)), dense])
    assert "an activity_regularizer" in fault(model, {"loss": NAN})


def test_weight_that_is_nan_is_named():
    model = identity()
    callback = StopOnNaN()
    callback.set_model(model)
    callback.on_train_begin()
    callback.on_epoch_end(1)
    model.layers[0].bias.assign([0.0, NAN, 0.0])
    for call, when in (
        (callback.on_train_begin, "before training"),
        (lambda: callback.on_epoch_end(1), "after epoch 2"),
    ):
        with pytest.raises(FloatingPointError, match=f"bias is NaN.*{when}"):
            call()


@pytest.mark.parametrize("logs", [{"loss": 1.0}, {"loss": 0.0}, {}, None])
def test_finite_loss_goes_on(logs):
    StopOnNaN().on_train_batch_end(0, logs)


# WarnOnCollapse


def warnings_of(
    balances=(), errors=(), before=None, model=None, n=4, key=None, m=None
):
    """The messages for hand-made logs, as (epoch, message); 0 is the end."""
    callback = WarnOnCollapse(before, batch_size=m)
    callback.set_model(model or attach(identity(n)))
    callback.on_train_begin()
    found = []
    epochs = max(len(balances), len(errors))
    for epoch in range(epochs + 1):
        logs = {}
        if epoch < len(balances):
            logs[key or "balance"] = balances[epoch]
        if epoch < len(errors):
            logs["val_error"] = errors[epoch]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if epoch == epochs:
                callback.on_train_end()
            else:
                callback.on_epoch_end(epoch, logs)
        assert all(w.category is GARWarning for w in caught)
        number = (epoch + 1) % (epochs + 1)
        found += [(number, str(w.message)) for w in caught]
    return found


@pytest.mark.parametrize("n", [2, 5, 10])
def test_balance_counts_the_outputs_in_use(n):
    for k in range(1, n + 1):
        B = np.tile(np.eye(n)[:k], (3, 1))
        assert float(balance(B)) == pytest.approx((k - 1) / (n - 1), abs=1e-6)


@pytest.mark.parametrize(
    "balances, epoch",
    [
        ([0.9, 0.95, 0.93], None),
        ([0.5, 0.5], None),
        ([0.49, 0.9, 0.4], 1),
        ([0.9, 0.499, 0.2], 2),
        # Of four outputs, a third is one.
        ([0.95, 0.9, 0.62, 0.6], 4),
        ([0.62, 0.95, 0.61], 3),
        ([math.nan], None),
    ],
    ids=["well", "at the limit", "at once", "low", "falls", "peak", "nan"],
)
def test_collapse_is_said_once(balances, epoch):
    found = warnings_of(balances)
    assert [e for e, _ in found] == ([] if epoch is None else [epoch])


# Of 1,000 images of 100 classes right predictions have 0.909, and nine tenths
# of that is 0.818.
@pytest.mark.parametrize(
    "balances, epoch",
    [
        ([0.915, 0.91, 0.905, 0.9, 0.825], None),
        ([0.915, 0.9, 0.81], 3),
        # Never higher by a whole output.
        ([0.805, 0.81, 0.8], None),
    ],
)
def test_of_many_classes_one_output_is_little(balances, epoch):
    found = warnings_of(balances, n=100, m=1000)
    assert [e for e, _ in found] == ([] if epoch is None else [epoch])


def test_batches_of_one_image_have_no_balance_to_lose():
    assert warnings_of([0.0, 0.0], m=1) == []


def test_collapse_in_plain_words():
    ((_, message),) = warnings_of([0.9, 1 / 3])
    assert "after epoch 2 the balance is 0.333" in message
    assert "only 2.0 of the 4 outputs" in message
    for advice in ("Pretrain longer", "class_prior", "batches", "learning"):
        assert advice in message
    assert "of 40 examples or more" in message
    assert "give WarnOnCollapse their batch_size" in message


def enumerated_balance(m, p):
    """The mean balance of all batches of m images classified right."""
    mean = 0.0
    for y in itertools.product(range(len(p)), repeat=m):
        u = np.bincount(y, minlength=len(p)) / p
        squares = (u**2).sum()
        beta = (u.sum() ** 2 - squares) / ((len(p) - 1) * squares)
        mean += np.prod(p[list(y)]) * beta
    return mean


@pytest.mark.parametrize(
    "m, p", [(1, [0.5, 0.5]), (2, [0.5, 0.5]), (2, [0.8, 0.2]),
             (4, [0.25] * 4), (5, [0.1, 0.1, 0.8])],
)  # fmt: skip
def test_mean_balance_of_right_predictions(m, p):
    # Two images of two classes: 0, 1, 1 or 0, and u = 1 / p where it is not 0:
    # 0.32 * (2 * 1.25 * 5) / (1.25² + 5²) for the shares 0.8 and 0.2.
    by_hand = {(1, 0.5): 0, (2, 0.5): 1 / 2, (2, 0.8): 0.1506}
    expected = enumerated_balance(m, np.array(p))
    assert by_hand.get((m, p[0]), expected) == pytest.approx(expected, abs=1e-4)
    received = collapse._mean_balance(m, len(p), tuple(p))
    assert received == pytest.approx(expected, abs=0.05)
    if np.ptp(p) == 0:
        assert collapse._mean_balance(m, len(p), None) == received


# Right predictions have 0.927 with 128 images of ten equal classes. Of two
# images of two they have 1/2, and 0.151 with shares of 0.8 and 0.2.
@pytest.mark.parametrize(
    "n, prior, m, kept, lost",
    [
        (10, None, 128, 0.48, 0.44),
        (2, None, 2, 0.3, 0.2),
        (2, [0.8, 0.2], 2, 0.1, 0.05),
        (10, None, None, 0.5, 0.49),
        (2, [0.8, 0.2], None, 0.5, 0.49),
    ],
)
def test_collapse_is_below_half_of_what_right_predictions_have(
    n, prior, m, kept, lost
):
    layer = GraphActivityRegularization(class_prior=prior)
    model = attach(identity(n), layer)
    assert warnings_of([kept], model=model, m=m) == []
    ((_, message),) = warnings_of([lost], model=model, m=m)
    assert "Stage 2 loses classes" in message


def test_advice_fits_the_prior_and_the_batches():
    # (10 + 10 + 1.25) / 3 * 10 = 70.8 images.
    layer = GraphActivityRegularization(class_prior=[0.1, 0.1, 0.8])
    model = attach(identity(), layer)
    ((_, small),) = warnings_of([0.01], model=model, m=70)
    assert "all classes, of 71 examples or more. Or lower" in small
    ((_, large),) = warnings_of([0.01], model=model, m=71)
    assert "nothing new. Or lower" in large
    for message in (small, large):
        assert "class_prior" not in message
    ((_, worse),) = warnings_of(errors=[0.2] * 5, before=0.1, model=model)
    assert "labels. Or lower the learning rate" in worse


@pytest.mark.parametrize("right", [True, False])
def test_rare_class_is_no_collapse(right):
    # Of 128 images 0.4 are of class 1: two batches of three have none.
    prior = [0.997, 0.003]
    y = np.random.default_rng(0).choice(2, 12800, p=prior)
    x = np.eye(2, dtype="float32")[y if right else 0 * y]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        history = regularize(
            identity(2), x[:1], x, labeled_per_batch=0, unlabeled_per_batch=128,
            epochs=2, layer=GraphActivityRegularization(class_prior=prior),
            optimizer=still(), verbose=0,
        ).history  # fmt: skip
    # Worked out over all batches, 0.195.
    expected = [0.195, 0.195] if right else [0, 0]
    assert history["balance"] == pytest.approx(expected, abs=0.05)
    found = [str(w.message) for w in caught if w.category is GARWarning]
    assert len(found) == (not right)
    # (1 / 0.997 + 1 / 0.003) / 2 * 10.
    assert all("of 1672 examples or more" in text for text in found)


# The mean over all batches of 8, 9 and 10 images of 4 classes is 0.672, 0.698
# and 0.720: the limits are at 0.754, 0.774 and 0.790.
@pytest.mark.parametrize(
    "m, balances, epoch",
    [
        (8, [0.74, 0.77, 0.9], 2),
        (9, [0.76, 0.79], 2),
        (10, [0.78, 0.78], None),
        (10, [0.81, 0.81], 1),
        # Of 13 images it is 0.770, not below 3/4.
        (13, [0.99, 0.99], None),
        (None, [0.99, 0.99], None),
        (8, [math.nan], None),
    ],
)
def test_batches_that_are_too_small_are_said_once(m, balances, epoch):
    found = warnings_of(balances, m=m)
    assert [e for e, _ in found] == ([] if epoch is None else [epoch])
    assert all("batches are too small" in text for _, text in found)


def test_batches_that_are_too_small_in_plain_words():
    ((_, message),) = warnings_of([0.9], m=8)
    assert "after epoch 1 the balance is 0.900" in message
    assert (
        "8 rightly classified examples of 4 classes have about 0.67" in message
    )
    assert "Take batches of 40 examples or more" in message


def test_what_is_expected_of_batches_knows_the_prior():
    # Over all batches of 9 images 0.516, but 0.76 of equal classes.
    layer = GraphActivityRegularization(class_prior=[0.1, 0.1, 0.8])
    model = attach(identity(), layer)
    ((_, message),) = warnings_of([0.7], model=model, m=9)
    # Of 500 batches drawn at random.
    assert "have about 0.53" in message
    assert "Take batches of 71 examples or more" in message
    assert warnings_of([0.7], model=attach(identity()), m=9) == []


def test_batches_without_a_rare_class_are_not_too_small():
    # Right predictions have 0.767 in the mean, though the mean numerator over
    # the mean denominator is 0.540: most batches are without the first class.
    prior = [0.001] + [0.111] * 9
    layer = GraphActivityRegularization(class_prior=prior)
    model = attach(identity(10), layer)
    assert warnings_of([0.767], model=model, m=128) == []


def test_layer_of_a_name_of_its_own_is_watched():
    layer = GraphActivityRegularization(name="digits")
    model = attach(identity(), layer)
    ((epoch, message),) = warnings_of([0.1], model=model, key="digits_balance")
    assert epoch == 1
    assert "the digits_balance is 0.100" in message
    assert "of the 3 outputs" in message


@pytest.mark.parametrize(
    "errors, epoch",
    [
        ([0.11] * 5, 5),
        ([0.11] * 9, 5),
        ([0.11] * 4 + [0.1] + [0.11] * 6, 10),
        ([0.19, 0.12, 0.17, 0.11, 0.1, 0.12, 0.09], None),
        ([0.1] * 9, None),
        # Training ends before: all of its epochs count.
        ([0.11] * 4, 0),
        ([0.11], 0),
        ([0.11, 0.1, 0.11], None),
        ([], None),
    ],
)
def test_higher_validation_error_is_said_once(errors, epoch):
    found = warnings_of(errors=errors, before=0.1)
    assert [e for e, _ in found] == ([] if epoch is None else [epoch])


def test_higher_validation_error_in_plain_words():
    errors = [0.11, 0.12, 0.13, 0.14, 0.1525]
    ((_, message),) = warnings_of(errors=errors, before=0.1)
    assert "10.00 % before, and is 15.25 % now" in message
    assert "(epochs above in a row: 5)" in message
    assert "class_prior" in message


def test_error_without_a_start_is_not_judged():
    assert warnings_of(errors=[0.9] * 9) == []


def test_both_signs_are_said():
    found = warnings_of([0.1] * 5, [0.5] * 5, before=0.1)
    assert [e for e, _ in found] == [1, 5]


@pytest.mark.parametrize(
    "wrong",
    [{"error_before": 12.3}, {"error_before": -0.1}, {"batch_size": 0}],
    ids=str,
)
def test_what_could_never_warn_is_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        WarnOnCollapse(**wrong)


def test_second_training_is_judged_afresh():
    callback = WarnOnCollapse()
    callback.set_model(attach(identity()))
    for _ in range(2):
        callback.on_train_begin()
        with pytest.warns(GARWarning, match="Stage 2 loses classes"):
            callback.on_epoch_end(0, {"balance": 0.1})


def test_classes_have_the_names_that_are_given(monkeypatch):
    model = attach(identity(3))
    monkeypatch.setattr(ClassesInUse, "unused", lambda _: [1, 2])
    monkeypatch.setattr(ClassesInUse, "unused_at_first", lambda _: [2])
    callback = WarnOnCollapse(class_names=["ant", "bee", 7])
    callback.set_model(model)
    callback.on_train_begin()
    callback.on_epoch_begin(0)
    callback.on_train_batch_end(0, {"classes_in_use": 1})
    with pytest.warns(GARWarning) as caught:
        callback.on_epoch_end(0, {})
    lost, missing = (str(w.message) for w in caught)
    assert lost.startswith("Stage 2 has lost class bee: at")
    assert "example was classified as class 7, nor" in missing


def one_sided(share=0.05):
    """A model that hardly uses its last two outputs."""
    model = identity()
    kernel = np.diag([1.0, share, share]).astype("float32")
    model.set_weights([kernel, np.zeros(3, "float32")])
    return model


EYE = np.tile(np.eye(3, dtype="float32"), (8, 1))
STILL = dict(
    labeled_per_batch=3, unlabeled_per_batch=24, epochs=1, verbose=0,
)  # fmt: skip


def still():
    """An optimizer that leaves the model as it is."""
    return keras.optimizers.SGD(0.0)


@pytest.mark.parametrize("share, lost", [(0.05, True), (1.0, False)])
def test_regularize_always_warns(share, lost):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        regularize(one_sided(share), EYE[:3], EYE, optimizer=still(), **STILL)
    found = [w for w in caught if w.category is GARWarning]
    assert len(found) == lost
    assert all("Stage 2 loses classes" in str(w.message) for w in found)


def even():
    """A model that uses its outputs evenly, whatever the image."""
    model = identity()
    model.set_weights([np.ones((3, 3), "float32"), np.zeros(3, "float32")])
    return model


@pytest.mark.slow
@pytest.mark.parametrize("images, small", [(3, True), (24, False)])
@pytest.mark.parametrize("extended", [False, True])
def test_training_knows_the_size_of_its_batches(images, small, extended):
    options = dict(
        labeled_per_batch=3, unlabeled_per_batch=images, epochs=1, verbose=0,
        optimizer=still(),
    )  # fmt: skip
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if extended:
            y = np.arange(3)
            ExtendedGAR().train(even(), EYE[:3], y, EYE, **options)
        else:
            regularize(even(), EYE[:3], EYE, **options)
    found = [str(w.message) for w in caught if w.category is GARWarning]
    assert len(found) == small
    # 5 / 8.
    assert all("6 rightly classified examples of 3" in text for text in found)


class Worsen(keras.callbacks.Callback):
    """Turns the outputs round, so that every image is classified wrongly."""

    def on_train_begin(self, logs=None):
        self.model.layers[1].kernel.assign(np.roll(np.eye(3), 1, axis=1))


@pytest.mark.slow
def test_regularize_knows_the_error_that_it_starts_from():
    y = np.arange(24) % 3
    with pytest.warns(GARWarning, match="0.00 % before, and is 100.00 % now"):
        regularize(
            identity(), EYE[:3], EYE, optimizer=still(), callbacks=[Worsen()],
            validation_data=(EYE, y), **STILL,
        )  # fmt: skip


def test_regularize_takes_a_callback_of_ones_own():
    class Silent(WarnOnCollapse):
        LEAST_BALANCE = 0.0

    with warnings.catch_warnings():
        warnings.simplefilter("error", GARWarning)
        regularize(
            one_sided(), EYE[:3], EYE, optimizer=still(), callbacks=[Silent()],
            **STILL,
        )  # fmt: skip


def test_other_warnings_are_shown_as_ever():
    shown = []
    with pytest.warns(RuntimeWarning, match="another") as others:
        with shown_by(shown.append):
            warn("one")
            warnings.warn("another", RuntimeWarning, stacklevel=1)
            warn("one")
        with pytest.warns(GARWarning, match="outside"):
            warn("outside")
    assert shown == ["one", "one"]
    assert len([w for w in others if w.category is RuntimeWarning]) == 1


def test_runs_show_warnings_by_their_reporter(tmp_path, monkeypatch):
    import tiny_runs
    from tiny_runs import TINY, Stop, Witness

    from gar_keras.experiments import runner
    from gar_keras.methods.gar import GAR

    def stage_2(*arguments, callbacks, **options):
        (watch,) = (c for c in callbacks if isinstance(c, WarnOnCollapse))
        assert watch.error_before == 0.25
        assert watch.batch_size == (
            TINY.labeled_per_batch + TINY.unlabeled_per_batch
        )
        warn("Classes are lost.")
        raise Stop

    tiny_runs.install(monkeypatch)
    monkeypatch.setattr(GAR, "train", stage_2)
    witness = Witness()
    checkpoint = runner.Checkpoint(tmp_path / "state.npz", "", 0)
    job = runner._Run(TINY, 0, checkpoint, None, witness)
    job.state.progress["regularization"]["curve"] = {
        "epoch": [0], "val_error": [0.25],
    }  # fmt: skip
    with pytest.raises(Stop):
        job.execute(math.inf, [])
    assert witness.lines == ["warning: Classes are lost."]


# CoefficientSchedule


@pytest.mark.slow
def test_schedule_sets_the_coefficients_of_each_epoch():
    layer = GraphActivityRegularization(frobenius=0)
    history = fit(
        attach(identity(), layer),
        epochs=3,
        callbacks=[
            CoefficientSchedule(
                affinity=lambda epoch: epoch, balance=lambda epoch: 0.5 * epoch
            )
        ],
    )
    alpha, beta = history["affinity"][0], history["balance"][0]
    assert history["loss"] == pytest.approx(
        [epoch * alpha + 0.5 * epoch * (1 - beta) for epoch in range(3)],
        rel=1e-5,
    )
    assert layer.coefficients == {"affinity": 2.0, "balance": 1.0}


@pytest.mark.slow
def test_schedule_reaches_every_layer():
    inner = attach(identity(), GraphActivityRegularization(name="inner"))
    outer = GraphActivityRegularization(name="outer")
    model = keras.Sequential([keras.Input((3,)), inner, outer])
    fit(model, callbacks=[CoefficientSchedule(affinity=lambda epoch: 0.25)])
    for layer in (inner.layers[-1], outer):
        assert layer.coefficients["affinity"] == 0.25


def test_schedule_of_an_unknown_coefficient_is_refused():
    with pytest.raises(ValueError, match="Received: afinity, balance"):
        CoefficientSchedule(afinity=lambda epoch: 1.0, balance=float)


def test_empty_schedule_is_refused():
    with pytest.raises(ValueError, match="Received: none"):
        CoefficientSchedule()


@pytest.mark.parametrize("bad", [-1.0, math.nan, True, None, "1"])
def test_bad_value_of_a_schedule_is_refused(bad):
    schedule = CoefficientSchedule(affinity=lambda epoch: bad)
    with pytest.raises(ValueError, match="affinity must be a finite number"):
        fit(attach(identity()), callbacks=[schedule])


def test_schedule_of_a_term_left_out_is_refused():
    model = attach(identity(), GraphActivityRegularization(affinity=0))
    schedule = CoefficientSchedule(affinity=lambda epoch: 1.0)
    with pytest.raises(ValueError, match="no term 'affinity'"):
        fit(model, callbacks=[schedule])


def test_schedule_without_a_layer_is_refused():
    dense = layers.Dense(3, activity_regularizer=GraphActivityRegularizer())
    model = keras.Sequential([keras.Input((3,)), dense])
    schedule = CoefficientSchedule(affinity=lambda epoch: 1.0)
    with pytest.raises(ValueError, match="no GraphActivityRegularization lay"):
        fit(model, callbacks=[schedule])


# TimeLimit


class Clock:
    """A clock that each epoch moves on by as many seconds as it is told."""

    def __init__(self, *seconds):
        self.now = 1000.0
        self.seconds = seconds

    def monotonic(self):
        return self.now

    def advance(self, epoch, logs=None):
        self.now += self.seconds[epoch]


@pytest.mark.slow
@pytest.mark.parametrize(
    "seconds, deadline, epochs",
    [
        ([10, 10, 10, 10], 1040, 4),
        ([10, 10, 10, 10], 1039, 3),
        ([10, 10, 10, 10], 1020, 2),
        ([10, 20, 1, 1], 1045, 2),
        ([10, 10, 10, 10], 0, 1),
    ],
    ids=["fits", "one short", "half", "longest epoch counts", "long gone"],
)
def test_epoch_that_would_end_too_late_is_not_begun(
    seconds, deadline, epochs, monkeypatch
):
    clock = Clock(*seconds)
    monkeypatch.setattr(callbacks, "time", clock)
    limit = TimeLimit(deadline)
    advance = keras.callbacks.LambdaCallback(on_epoch_end=clock.advance)
    history = fit(attach(identity()), epochs=4, callbacks=[advance, limit])
    assert len(history["loss"]) == epochs
    assert limit.reached == (clock.now + max(seconds[:epochs]) > deadline)
