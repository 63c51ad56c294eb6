"""The callbacks, each against numbers worked out by hand."""

import math
import re

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
    GraphActivityRegularization,
    attach,
    error_rate,
    regularize,
    sgd,
)
from gar_keras.callbacks import (
    BestWeights,
    ErrorRate,
    StopOnNaN,
    WarnOfError,
    WarnOfOrder,
    WarnOnCollapse,
)


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


def best_weights(start):
    model = identity()
    return BestWeights(start, model, model.get_weights())


def see(keeper, errors):
    """The bias after epochs of these errors, each with its number as bias."""
    model = keeper.network
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
    keeper = best_weights(start)
    assert see(keeper, errors) == [best] * 3
    assert keeper.best == min(errors)
    # The best epoch belongs to this training, and not to the next one.
    assert not keeper.restore()


def test_without_an_epoch_the_weights_stay():
    keeper = best_weights(0.1)
    keeper.on_train_begin()
    # As a BackupAndRestore has loaded them.
    keeper.network.layers[0].bias.assign([7.0, 7.0, 7.0])
    keeper.on_train_end()
    assert keeper.network.layers[0].bias.numpy().tolist() == [7.0, 7.0, 7.0]


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


# WarnOfError


def end_of(callback, errors):
    """What is told at the end of epochs of these errors."""
    model = identity()
    callback.set_model(model)
    callback.on_train_begin()
    for epoch, error in enumerate(errors):
        callback.on_epoch_end(epoch, {"val_error": error})
    return said(callback.on_train_end)


def error_at_end(error):
    """Of a training that ends with an error on 1,000 examples."""
    y = np.arange(1000) % 3
    wrong = (y + (np.arange(1000) < 1000 * error)) % 3
    return WarnOfError(0.1, identity(), np.eye(3)[y], wrong)


# Of 1,000 images, 13.0 % is 2.1 standard errors above 10 %, 12.8 % is 1.97.
@pytest.mark.parametrize(
    ("callback", "errors", "told"),
    [
        (error_at_end(0.13), [0.1, 0.1], "is 13.00 % at its end"),
        (error_at_end(0.128), [0.5, 0.5], None),
        (error_at_end(0.1), [], None),
        (best_weights(0.1), [0.12, 0.11, 0.13], "is 11.00 % at best. Every"),
        (best_weights(0.1), [0.12, 0.1, 0.13], None),
        (best_weights(0.1), [], None),
    ],
)
def test_an_error_that_has_risen_is_told_at_the_end(callback, errors, told):
    texts = end_of(callback, errors)
    assert len(texts) == (told is not None)
    for text in texts:
        assert "validation error was 10.00 % before" in text
        assert told in text


# WarnOnCollapse


def watched(logs, steps=1, model=None, unused=(), **options):
    """The messages of epochs of hand-made logs, as (epoch, message).

    `unused` are the classes that the layer finds unused in each epoch.
    """
    model = model or attach(identity(4))
    callback = WarnOnCollapse(**options)
    callback.set_model(model)
    layer = model.layers[-1]
    optimizer = getattr(model, "optimizer", None)
    found = [(0, text) for text in said(callback.on_train_begin)]
    begin = len(options.get("earlier", ()))
    for epoch, row in enumerate(logs, begin):
        callback.on_epoch_begin(epoch)
        layer.usage.unused = lambda e=epoch: unused[e] if unused else []
        callback.on_test_begin()
        if optimizer is not None:
            optimizer.iterations.assign(steps * (epoch + 1))
        # Of validation.
        layer.usage.unused = lambda: []
        texts = said(lambda e=epoch, row=row: callback.on_epoch_end(e, row))
        found += [(epoch + 1, text) for text in texts]
    return found


def epochs_of(found):
    return [epoch for epoch, _ in found]


def test_a_model_without_the_layer_is_told():
    callback = WarnOnCollapse()
    callback.set_model(identity())
    (text,) = said(callback.on_train_begin)
    assert "watches nothing" in text and "gar_keras.attach" in text


UNUSED = [[], [2], [2], [1, 2], [3]]


def test_classes_are_named_when_more_are_missing_than_before():
    found = watched([{}] * 5, unused=UNUSED)
    assert epochs_of(found) == [2, 4]
    assert "is without class 2: at the end of epoch 2 hardly" in found[0][1]
    assert "is without classes 1, 2: at the end of epoch 4" in found[1][1]
    assert "class_prior" in found[0][1]
    earlier = [{"classes_in_use": 4}, {"classes_in_use": 3}]
    again = watched([{}] * 3, unused=UNUSED, earlier=earlier)
    assert again == found[1:]


def test_warm_up_is_left_alone():
    model = attach(identity(4))
    model.compile(sgd(warmup_steps=20), loss=None)
    logs = [{"balance": 0.99}] * 3
    unused = [[2], [2], [2]]
    found = watched(logs, 10, model, unused, batch_size=4)
    assert epochs_of(found) == [3, 3]
    # What went on is known by the steps that the optimizer has done.
    earlier = [{"classes_in_use": 3}] * 3
    for done, expected in ((30, []), (15, [4])):
        model.optimizer.iterations.assign(done)
        found = watched([{}], 10, model, [*unused, [2]], earlier=earlier)
        assert epochs_of(found) == expected


@pytest.mark.parametrize(("steps", "warned"), [(20, 0), (22, 1)])
def test_gradients_that_are_accumulated_are_steps_too(steps, warned):
    model = attach(identity(4))
    model.compile(sgd(warmup_steps=20, gradient_accumulation_steps=2), None)
    steps_done, *_ = model.optimizer.variables
    steps_done.assign(steps)
    callback = WarnOnCollapse()
    callback.set_model(model)
    callback.on_train_begin()
    callback.on_epoch_begin(0)
    model.layers[-1].usage.unused = lambda: [2]
    assert len(said(lambda: callback.on_epoch_end(0, {}))) == warned


@pytest.mark.parametrize(
    ("options", "logs"),
    [
        ({"balance_memory": 0.5}, {"affinity": 0.0, "balance": 1.0}),
        ({"affinity": 0.0}, {"balance": 0.0}),
    ],
    ids=["running balance", "balance alone"],
)
def test_logits_that_are_never_positive_are_told_of_any_layer(options, logs):
    model = attach(identity(4), GraphActivityRegularization(**options))
    (found,) = watched([logs], model=model, batch_size=4)
    assert "GAR does nothing" in found[1]
    assert f"balance={logs['balance']:g} in epoch 1" in found[1]
    assert watched([logs | {"balance": 0.9}], model=model) == []


def test_logits_that_are_never_positive_are_told_once():
    model = attach(identity(4))
    logs = [{"affinity": 0.0, "balance": 0.0}] * 2
    (found,) = watched(logs, model=model)
    assert found[0] == 1 and "GAR does nothing" in found[1]
    assert "affinity=0 and balance=0 in epoch 1" in found[1]
    # Of one class, they are 0 too, and that has its own warning.
    found = watched(logs, model=model, unused=[[0, 1, 2]] * 2)
    assert epochs_of(found) == [1] and "is without" in found[0][1]
    assert watched([{"affinity": 0.0, "balance": 0.9}], model=model) == []
    # Before GAR is on there is nothing to tell.
    off = attach(identity(4))
    layer = off.layers[-1]
    layer.set_coefficients(**dict.fromkeys(layer.coefficients, 0.0))
    assert watched(logs, model=off) == []
    # Those of "safe-gar", before it begins.
    never = identity()
    never.layers[0].bias.assign([-9.0, -9.0, -9.0])
    options = STILL | WITH_LABELS | {"epochs": 1}
    texts = said(lambda: regularize(never, EYE[:3], BALANCED, **options))
    assert sum("GAR does nothing" in text for text in texts) == 1


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
    logs = [{"balance": b} for b in balances]
    found = watched(logs, batch_size=m)
    assert epochs_of(found) == ([] if epoch is None else [epoch])
    for _, text in found:
        assert f"after epoch {epoch} the balance is" in text
        assert f"{m} rightly classified examples of 4 classes have" in text
        assert "Take batches of 40 examples or more" in text
    # And again, in the same words, in a training that goes on.
    again = watched([{"balance": 0.99}], batch_size=m, earlier=logs)
    texts = [text for e, text in again if e == 0]
    assert texts == [text for _, text in found]
    # A running balance is of more than one batch.
    running = attach(
        identity(4), GraphActivityRegularization(balance_memory=0.9)
    )
    assert watched(logs, model=running, batch_size=m) == []


def test_layers_of_one_name_are_told():
    inputs = keras.Input((4,))
    names = "graph_activity_regularization", "graph_activity_regularization_1"
    outputs = [
        GraphActivityRegularization(name=name)(keras.layers.Dense(4)(inputs))
        for name in names
    ]
    callback = WarnOnCollapse()
    callback.set_model(keras.Model(inputs, outputs))
    (text,) = said(callback.on_train_begin)
    assert "Received: balance, balance." in text


def test_the_same_is_told_of_each_training():
    callback = WarnOnCollapse()
    callback.set_model(identity())

    def twice():
        for _ in range(2):
            callback.on_train_begin()

    first, second = said(twice)
    assert first == second


def test_each_layer_is_looked_at_for_small_batches():
    inputs = keras.Input((4,))
    without = GraphActivityRegularization(balance=0, name="a")
    layers = [without, GraphActivityRegularization(name="b")]
    outputs = [layer(keras.layers.Dense(4)(inputs)) for layer in layers]
    model = keras.Model(inputs, outputs)
    found = watched([{"b_balance": 0.99}], model=model, batch_size=8)
    assert [text.count("the b_balance is 0.990") for _, text in found] == [1]


@pytest.mark.parametrize("m, small", [(11, True), (9, False)])
def test_what_is_expected_of_batches_knows_the_prior(m, small):
    # 0.585 for 11 images. With 9, most batches are without a rare class.
    layer = GraphActivityRegularization(class_prior=[0.1, 0.1, 0.8])
    model = attach(identity(), layer)
    found = watched([{"balance": 0.7}], model=model, batch_size=m)
    assert len(found) == small
    assert all("Take batches of 71 examples" in text for _, text in found)


# WarnOfOrder


# Of 36 images of 4 classes the balance is 0.897: the limit is at 0.449.
LOW = [{"balance": b} for b in (0.9, 0.44, 0.44, 0.9, 0.1, 0.1)]


def told_of_order(logs, model=None):
    """The messages of epochs of hand-made logs, as (epoch, message)."""
    callback = WarnOfOrder(36)
    callback.set_model(model or attach(identity(4)))
    callback.on_train_begin()
    rows = [{"classes_in_use": 4} | row for row in logs]
    return [
        (epoch + 1, text)
        for epoch, row in enumerate(rows)
        for text in said(lambda e=epoch, r=row: callback.on_epoch_end(e, r))
    ]


def test_batches_of_few_classes_are_said_once():
    ((epoch, text),) = told_of_order(LOW)
    assert epoch == 3
    assert "in epoch 3 the balance is 0.440, but 36 examples of 4" in text
    assert "about 0.897" in text


def off():
    model = attach(identity(4))
    model.layers[-1].set_coefficients(balance=0.0)
    return model


def of_layer(**options):
    return lambda: attach(identity(4), GraphActivityRegularization(**options))


@pytest.mark.parametrize(
    ("balances", "options"),
    [
        ([0.44, 0.46, 0.44, 0.46], {}),
        ([0.44, 0.44], {"classes_in_use": 3}),
        # Of logits that are never positive.
        ([0.0, 0.0], {}),
    ],
)
def test_a_low_balance_has_other_reasons(balances, options):
    assert told_of_order([{"balance": b} | options for b in balances]) == []


@pytest.mark.parametrize(
    "model",
    [off, of_layer(class_prior=[0.25] * 4), of_layer(balance_memory=0.5)],
    ids=["off", "prior", "running"],
)
def test_a_balance_that_tells_nothing_of_order(model):
    assert told_of_order(LOW, model()) == []


# In training


EYE = np.tile(np.eye(3, dtype="float32"), (8, 1))
STILL = dict(labeled_per_batch=3, epochs=1, verbose=0)


@pytest.mark.slow
def test_training_knows_the_size_of_its_batches():
    # The model uses its outputs evenly, whatever the image.
    model = identity()
    model.set_weights([np.ones((3, 3), "float32"), np.zeros(3, "float32")])
    found = said(
        lambda: regularize(
            model, EYE[:3], EYE, y_labeled=np.arange(3), unlabeled_per_batch=3,
            method=[CrossEntropy(), GAR()],
            optimizer=keras.optimizers.SGD(0.0), **STILL,
        )
    )  # fmt: skip
    (text,) = [text for text in found if "too small" in text]
    assert "6 rightly classified examples of 3" in text


class OfOneClass(keras.utils.PyDataset):
    """Batches of 48 examples, each of a class of its own."""

    def __len__(self):
        return 3

    def __getitem__(self, index):
        return np.tile(EYE[[index]], (48, 1))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["gar", "safe-gar"])
def test_batches_of_one_class_are_told_of_by_each_method(method):
    model = identity()
    texts = said(
        lambda: regularize(
            model, EYE[:3], OfOneClass(), y_labeled=np.arange(3), method=method,
            unlabeled_per_batch=48, optimizer=keras.optimizers.SGD(0.0),
            **STILL | {"epochs": 2},
        )
    )  # fmt: skip
    assert sum("hold few of the classes" in text for text in texts) == 1


BALANCED = np.tile(np.eye(3, dtype="float32"), (60, 1))
WITH_LABELS = {"y_labeled": np.arange(3)}
VALIDATED = {"validation_data": (BALANCED, np.arange(180) % 3)}
NAMED = {"class_names": ["ant", "bee", "cat"]}
WORSE = "error was 0.00 % before, and is 33.33 % at best. Every epoch has a gr"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "told"),
    [
        (WITH_LABELS, ["has lost.*it began with.*no example of class 2"]),
        (WITH_LABELS | NAMED, ["no example of class cat any more"]),
        (NAMED, ["without class cat: at the end of epoch .*'safe-gar'"]),
        (WITH_LABELS | VALIDATED, [WORSE]),
        (VALIDATED, ["is without class 2", WORSE]),
        (
            WITH_LABELS | VALIDATED | NAMED | {"keep_best": False},
            ["shares of the classes.*class cat.* 0.00 % .* 33.33 %",
             "error was 0.00 % before, and is 33.33 % at its end"],
        ),
        ({"callbacks": [WarnOnCollapse(None, "xyz")]}, ["without class z"]),
    ],
    ids=["labels", "names", "none", "validation", "both", "last", "own watch"],
)  # fmt: skip
def test_an_event_is_told_once_with_what_can_be_done(options, told):
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
    for pattern in told:
        assert sum(bool(re.search(pattern, text)) for text in texts) == 1
    restores = "validation_data" in options or "y_labeled" in options
    is_restored = restores and options.get("keep_best", True)
    assert np.array_equal(dense.bias, [0.0, 0.0, 0.0]) == is_restored


def test_what_is_said_of_the_end_is_of_the_weights_at_the_end():
    model = identity()
    dense = model.layers[0]
    dense.kernel.assign(2 * np.eye(3))
    lose = keras.callbacks.LambdaCallback(
        on_epoch_begin=lambda epoch, _: dense.bias.assign(
            [0.0, 0.0, -15.0 if epoch > 0 else 0.0]
        )
    )
    restore = keras.callbacks.EarlyStopping(
        "val_error", mode="min", patience=1, restore_best_weights=True
    )
    options = STILL | WITH_LABELS | VALIDATED
    options |= {"epochs": 7, "keep_best": False, "callbacks": [lose, restore]}
    texts = said(lambda: regularize(model, EYE[:3], BALANCED, **options))
    assert error_rate(model, *VALIDATED["validation_data"]) == 0
    assert not [text for text in texts if "worse" in text]
