"""The callbacks, each against numbers worked out by hand."""

import math
import re
import warnings

import keras
import numpy as np
import oracle
import pytest
from keras import layers
from said import said
from stacks import sequential

from gar_keras import (
    GAR,
    CrossEntropy,
    GARWarning,
    GraphActivityRegularization,
    attach,
    error_rate,
    regularize,
    sgd,
)
from gar_keras.callbacks import (
    Advice,
    BestWeights,
    CoefficientSchedule,
    ErrorRate,
    StopOnNaN,
    WarnOnCollapse,
)
from gar_keras.metrics import ClassesInUse
from gar_keras.utils.warnings import shown_by, warn


def identity(n=3):
    """A model whose logits are its images."""
    return sequential(
        layers.Dense(n, kernel_initializer="identity"), shape=(n,)
    )


X = np.array(
    [[1, 0, 0], [0, 5, 1], [0, -1, -2], [-3, -2, -1]], "float32"
)  # argmax: 0, 1, 0, 2
Y = np.array([0, 1, 2, 2])


@pytest.mark.parametrize(
    "y",
    [Y, Y.tolist(), Y[:, None], np.eye(3)[Y]],
    ids=["array", "list", "m1", "one-hot"],
)
def test_error_rate_by_hand(y):
    assert error_rate(identity(), X, y) == 1 / 4


@pytest.mark.parametrize(
    ("x", "size", "message"),
    [
        (X.astype(str), 500, "x must be an array of real numbers"),
        (X, 0, "batch_size must be an integer of at least 1"),
        (X, 2.0, "batch_size must be an integer of at least 1"),
    ],
)
def test_error_rate_refuses(x, size, message):
    with pytest.raises(ValueError, match=message):
        error_rate(identity(), x, Y, batch_size=size)


def test_error_rate_of_nan_logits_is_refused():
    model = identity()
    model.layers[0].bias.assign([0.0, math.nan, 0.0])
    with pytest.raises(FloatingPointError, match="NaN or infinite"):
        error_rate(model, X, Y)


# ErrorRate


def fit(model, epochs=1, **options):
    """Fits on the loss of GAR alone, two steps an epoch."""
    rate = options.pop("rate", 0.0)
    model.compile(keras.optimizers.SGD(rate), loss=None)
    options = {"batch_size": 2, "shuffle": False, "verbose": 0, **options}
    return model.fit(X, epochs=epochs, **options).history


def test_accuracy_and_loss_have_the_names_of_keras():
    errors = ErrorRate(val_error=(X, Y), other=(X, Y))
    model = identity()
    history = fit(attach(model), epochs=2, callbacks=[errors])
    assert history["val_error"] == [1 / 4] * 2
    assert history["val_accuracy"] == [3 / 4] * 2
    assert history["val_loss"] == pytest.approx([oracle.log_loss(X, Y)] * 2)
    assert history["other"] == [1 / 4] * 2
    assert not {"other_accuracy", "other_loss"} & history.keys()


def test_loss_of_large_logits():
    model = identity()
    model.set_weights([np.eye(3) * 1e4, np.zeros(3)])
    errors, logs = ErrorRate(val_error=(X, Y)), {}
    errors.set_model(model)
    errors.on_epoch_end(0, logs)
    # The third row is taken for class 0, whose logit is ahead by 2e4.
    assert logs["val_loss"] == pytest.approx(2e4 / 4)


def see(keeper, errors):
    """The bias after epochs of these errors, each with its number as bias."""
    model = identity()
    bias = model.layers[0].bias
    keeper.set_model(model)
    keeper.on_train_begin()
    for epoch, error in enumerate(errors):
        bias.assign([float(epoch + 1)] * 3)
        keeper.on_epoch_end(epoch, {"val_error": error})
    keeper.on_train_end()
    return bias.numpy().tolist()


@pytest.mark.parametrize(
    "errors, best",
    [([0.3, 0.1, 0.2], 2), ([0.1, 0.1, 0.1], 3), ([0.3, 0.1, 0.1], 3)],
)
@pytest.mark.parametrize("start", [math.inf, 0.1])
def test_best_epoch_is_kept(start, errors, best):
    keeper = BestWeights(start)
    assert see(keeper, errors) == [best] * 3
    assert (keeper.best_epoch, keeper.best) == (best, min(errors))
    # It belongs to this training, and not to the next one.
    assert not keeper.restore()


def test_the_start_is_kept_if_every_epoch_is_worse():
    with pytest.warns(GARWarning, match="Every epoch has a greater error"):
        assert see(BestWeights(0.05), [0.3, 0.1, 0.2]) == [0] * 3


# StopOnNaN


def test_logs_that_are_not_finite_are_named():
    callback = StopOnNaN()
    logs = {"affinity": 0.5, "regularization": math.inf, "loss": math.nan}
    with pytest.raises(FloatingPointError) as error:
        callback.on_train_batch_end(4, logs)
    assert "became nan at step 5. Not finite: regularization, loss." in str(
        error.value
    )
    for logs in ({"loss": 1.0}, {"loss": 0.0}, {}, None):
        callback.on_train_batch_end(4, logs)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_weight_that_is_not_finite_is_named(bad):
    model = identity()
    callback = StopOnNaN()
    callback.set_model(model)
    callback.on_train_begin()
    callback.on_epoch_end(1)
    model.layers[0].bias.assign([0.0, bad, 0.0])
    for call, when in (
        (callback.on_train_begin, "before training"),
        (lambda: callback.on_epoch_end(1), "after epoch 2"),
    ):
        with pytest.raises(FloatingPointError, match=f"bias is NaN.*{when}"):
            call()


# WarnOnCollapse


def watched(logs, steps=1, model=None, earlier=(), **options):
    """The messages of a training of hand-made logs, as (epoch, message).

    Those of its end count for the epoch after the last.
    """
    callback = WarnOnCollapse(earlier=earlier, **options)
    callback.set_model(model or attach(identity(4)))
    callback.set_params({"steps": steps})
    calls = [(len(earlier), callback.on_train_begin, ())]
    for epoch, row in enumerate(logs, len(earlier)):
        calls += [
            (epoch + 1, callback.on_epoch_begin, (epoch,)),
            (epoch + 1, callback.on_train_batch_end, (steps - 1, row)),
            (epoch + 1, callback.on_epoch_end, (epoch, row)),
        ]
    calls.append((len(earlier) + len(logs) + 1, callback.on_train_end, ()))
    found = []
    for epoch, call, arguments in calls:
        texts = said(lambda call=call, given=arguments: call(*given))
        found += [(epoch, text) for text in texts]
    return found


def epochs_of(found):
    return [epoch for epoch, _ in found]


@pytest.fixture
def unused(monkeypatch):
    """Sets the classes not in use of each epoch; gives their logs."""

    def set_unused(*epochs, n=4):
        left = iter([classes for classes in epochs if classes])
        monkeypatch.setattr(ClassesInUse, "unused", lambda _: next(left))
        return [{"classes_in_use": n - len(classes)} for classes in epochs]

    return set_unused


def built(layer=None):
    model = attach(identity(4), layer)
    model(np.eye(4))
    return model


def test_classes_are_named_when_more_are_missing_than_before(unused):
    found = watched(unused([], [2], [2], [1, 2], [3]), model=built())
    assert epochs_of(found) == [2, 4]
    assert "is without class 2: at the end of epoch 2 hardly" in found[0][1]
    assert "is without classes 1, 2: at the end of epoch 4" in found[1][1]
    assert "class_prior" in found[0][1]


def test_classes_of_earlier_epochs_are_not_named_again(unused):
    logs = unused([1], [1, 3])
    earlier = [{"classes_in_use": 3}]
    assert epochs_of(watched(logs, model=built(), earlier=earlier)) == [3]


def test_classes_have_the_names_that_are_given(unused):
    layer = GraphActivityRegularization(name="digits")
    names = ["ant", "bee", 7, "d"]
    logs = [
        {"digits_classes_in_use": row["classes_in_use"]}
        for row in unused([1, 2])
    ]
    ((_, text),) = watched(logs, model=built(layer), class_names=names)
    assert "is without classes bee, 7 in the layer 'digits': at" in text


def test_advice_is_in_the_words_of_the_door(unused):
    advice = Advice("fewer steps", "the labels (y)", "as p", "It keeps some.")
    logs = unused([1], [1])
    for row in logs:
        row |= {"balance": 0.99, "val_error": 0.9}
    options = dict(batch_size=4, error_before=0.1, num_validation=100)
    found = watched(logs, model=built(), advice=advice, **options)
    lost, small, worse = (text for _, text in found)
    assert "model, with fewer steps, or the labels (y). One that" in lost
    assert "40 examples or more, or start again with the labels (y)." in small
    for text in (lost, worse):
        end = " If classes are imbalanced, give their shares as p. It keeps "
        assert text.endswith(f"{end}some.")
    # What is in use is not advised.
    layer = GraphActivityRegularization(class_prior=[0.1, 0.2, 0.3, 0.4])
    found = watched(unused([1]), model=built(layer))
    ((_, text),) = found
    assert "model, with a lower learning rate. One that" in text
    assert text.endswith("pretrain longer, or on more labels of it.")


def test_warm_up_is_left_alone(unused):
    model = built()
    model.compile(sgd(warmup_steps=20), loss=None)
    logs = unused([2], [2], [2])
    for row in logs:
        row |= {"balance": 0.99, "val_error": 0.9}
    options = dict(batch_size=4, error_before=0.1, num_validation=100)
    found = watched(logs, steps=10, model=model, **options)
    assert epochs_of(found) == [3, 3, 4]
    assert "(epochs above in a row: 1)" in found[2][1]


# expected_balance of 8, 9 and 10 images of 4 classes is 0.636, 0.667 and
# 0.692: the limits are at 0.727, 0.75 and 0.769.
@pytest.mark.parametrize(
    "m, balances, epoch",
    [
        (8, [0.72, 0.74, 0.9], 2),
        (9, [0.74, 0.76], 2),
        (10, [0.76, 0.76], None),
        # Of 13 images it is 0.75.
        (13, [0.99, 0.99], None),
        (None, [0.99, 0.99], None),
        (8, [math.nan], None),
    ],
)
def test_batches_that_are_too_small_are_said_once(m, balances, epoch):
    found = watched([{"balance": b} for b in balances], batch_size=m)
    assert epochs_of(found) == ([] if epoch is None else [epoch])
    for _, text in found:
        assert f"after epoch {epoch} the balance is" in text
        assert f"{m} rightly classified examples of 4 classes have" in text
        assert "Take batches of 40 examples or more." in text


@pytest.mark.parametrize("m, small", [(11, True), (9, False)])
def test_what_is_expected_of_batches_knows_the_prior(m, small):
    # 0.585 for 11 images. With 9, most batches are without a rare class.
    layer = GraphActivityRegularization(class_prior=[0.1, 0.1, 0.8])
    model = attach(identity(), layer)
    found = watched([{"balance": 0.7}], model=model, batch_size=m)
    assert len(found) == small
    assert all("Take batches of 71 examples" in text for _, text in found)


# Of 1,000 images, 13.0 % is 2.1 standard errors above 10 %, 12.8 % is 1.97.
@pytest.mark.parametrize(
    "errors, epoch",
    [
        ([0.13] * 9, 5),
        ([0.13] * 4 + [0.128] + [0.13] * 6, 10),
        ([0.128] * 9, None),
        ([0.5, 0.5, 0.5, 0.5, 0.1, 0.5], None),
        # Training ends before: all of its epochs count.
        ([0.13] * 4, 5),
        ([0.13, 0.1, 0.13], None),
        ([], None),
    ],
)
def test_higher_validation_error_is_said_once(errors, epoch):
    found = watched(
        [{"val_error": e} for e in errors],
        error_before=0.1, num_validation=1000,
    )  # fmt: skip
    assert epochs_of(found) == ([] if epoch is None else [epoch])
    for _, text in found:
        assert "10.00 % before, and is 13.00 % now" in text


def test_what_was_warned_of_is_warned_of_again_in_the_same_words():
    logs = [{"val_error": 0.5, "balance": 0.9}] * 6
    options = dict(error_before=0.1, num_validation=1000, batch_size=8)
    whole = [text for _, text in watched(logs, **options)]
    again = watched(logs[5:], earlier=logs[:5], **options)
    assert whole == [text for _, text in again]
    assert epochs_of(again) == [5, 5]


# In training


EYE = np.tile(np.eye(3, dtype="float32"), (8, 1))
STILL = dict(labeled_per_batch=3, epochs=1, verbose=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [{}, {"y_labeled": np.arange(3), "method": [CrossEntropy(), GAR()]}],
)
def test_training_knows_the_size_of_its_batches(options):
    # It uses its outputs evenly, whatever the image.
    model = identity()
    model.set_weights([np.ones((3, 3), "float32"), np.zeros(3, "float32")])
    found = said(
        lambda: regularize(
            model, EYE[:3], EYE, unlabeled_per_batch=3,
            optimizer=keras.optimizers.SGD(0.0), **options, **STILL,
        )
    )  # fmt: skip
    (text,) = [text for text in found if "too small" in text]
    assert "6 rightly classified examples of 3" in text


BALANCED = np.tile(np.eye(3, dtype="float32"), (60, 1))
WITH_LABELS = {"y_labeled": np.arange(3)}
VALIDATED = {"validation_data": (BALANCED, np.arange(180) % 3)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "told", "not_told"),
    [
        (
            WITH_LABELS,
            ["is without class 2.*learning rate[.].*as class_prior[.].*began"],
            "y_labeled|default optimizer|GAR layer",
        ),
        (
            {},
            ["without class 2.*rate, or the labels .y_labeled.*GAR layer[.]$"],
            "default optimizer",
        ),
        (
            WITH_LABELS | {"method": "gar", "optimizer": "sgd"},
            ["the default optimizer or .*, or the labels .method='safe-gar'"],
            "y_labeled",
        ),
        (
            WITH_LABELS | VALIDATED,
            ["is without class 2.*ends with the weights of the least valid",
             "makes the model worse.*in a row: 5.*ends with the weights of"],
            "y_labeled|default optimizer|GAR layer|Every epoch",
        ),
        (
            VALIDATED | {"epochs": 4},
            ["is without class 2",
             "makes the model worse.*in a row: 4.*Every epoch has a greater"],
            "default optimizer",
        ),
        (
            VALIDATED | {"callbacks": [WarnOnCollapse()]},
            ["is without class 2", "Every epoch has a greater"],
            "makes the model worse",
        ),
    ],
    ids=["labels", "none", "labels unused", "validation", "short", "own watch"],
)  # fmt: skip
def test_an_event_is_told_once_with_what_can_be_done(options, told, not_told):
    model = identity()
    dense = model.layers[0]
    # Rows that sum to 1 would be taken for probabilities.
    dense.kernel.assign(2 * np.eye(3))
    lose = keras.callbacks.LambdaCallback(
        on_epoch_begin=lambda *_: dense.bias.assign([0.0, 0.0, -15.0])
    )
    options = {**STILL, "epochs": 7, **options}
    options["callbacks"] = [lose, *options.get("callbacks", ())]
    texts = said(lambda: regularize(model, EYE[:3], BALANCED, **options))
    assert len(texts) == len(told)
    for text, pattern in zip(texts, told, strict=True):
        assert re.search(pattern, text)
        assert not re.search(not_told, text)
    is_safe = "y_labeled" in options and "method" not in options
    if is_safe or "validation_data" in options:
        np.testing.assert_array_equal(dense.bias.numpy(), [0.0, 0.0, 0.0])


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


@pytest.mark.slow
def test_schedule_sets_the_coefficients_of_every_layer_in_each_epoch():
    inner, outer = (
        GraphActivityRegularization(frobenius=0, name=name)
        for name in ("inner", "outer")
    )
    stack = attach(identity(), inner), outer
    schedule = CoefficientSchedule(
        affinity=lambda epoch: epoch, balance=lambda epoch: 0.5 * epoch
    )
    history = fit(sequential(*stack, shape=(3,)), 3, callbacks=[schedule])
    for layer in (inner, outer):
        assert layer.coefficients == {"affinity": 2.0, "balance": 1.0}
    alpha, beta = history["inner_affinity"][0], history["inner_balance"][0]
    expected = [2 * (e * alpha + 0.5 * e * (1 - beta)) for e in range(3)]
    assert history["loss"] == pytest.approx(expected, rel=1e-5)
