"""Trainings under another `keras.config.floatx()` than float32."""

import keras
import numpy as np
import pytest
from keras import layers
from stacks import sequential

from gar_keras import (
    VAT,
    Consistency,
    CrossEntropy,
    GARAfter,
    GARClassifier,
    GraphActivityRegularization,
    GraphActivityRegularizer,
    MeanTeacher,
    RandomAffine,
    SafeGAR,
    SparseCategoricalAccuracy,
    attach,
    error_rate,
    pretrain,
    regularize,
    sgd,
)
from gar_keras.engine.optimizers import SGD
from gar_keras.methods import METHODS
from gar_keras.methods.base import Stage2

# JAX has no float64 unless it is told to.
pytestmark = pytest.mark.filterwarnings("ignore:Explicitly requested dtype")

RNG = np.random.default_rng(0)
Y = np.arange(48) % 3
FEW = np.where(np.arange(48) < 12, Y, -1)
X = 4 * np.eye(3)[Y] + RNG.normal(size=(48, 3))
IMAGES = RNG.random((24, 6, 6, 1))
ONE = dict(epochs=1, verbose=0)
SMALL = dict(labeled_per_batch=4, unlabeled_per_batch=16, **ONE)


@pytest.fixture
def floatx(request):
    before = keras.config.floatx(), keras.config.dtype_policy()
    keras.config.set_floatx(request.param)
    keras.config.set_dtype_policy(request.param)
    yield request.param
    keras.config.set_floatx(before[0])
    keras.config.set_dtype_policy(before[1])


def network():
    """The same weights in each precision."""
    hidden = layers.Dense(4, "relu"), layers.Dropout(0.1)
    model = sequential(*hidden, layers.Dense(3), shape=(3,))
    rng = np.random.default_rng(1)
    model.set_weights([rng.normal(size=w.shape) for w in model.get_weights()])
    return model


def one_fit():
    layer = GraphActivityRegularization(balance_memory=0.5)
    model = attach(network(), layer)
    loss = keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, ignore_class=-1
    )
    metrics = [SparseCategoricalAccuracy()]
    optimizer = SGD(decay=1e-3, warmup_steps=2, momentum=0.9)
    model.compile(optimizer, loss, metrics=metrics)
    model.fit(X, FEW, batch_size=16, callbacks=[GARAfter(epochs=0)], **ONE)
    model.evaluate(X, FEW, verbose=0)
    return model


def by_activity_regularizer():
    regularizer = GraphActivityRegularizer()
    dense = layers.Dense(3, activity_regularizer=regularizer)
    model = keras.Sequential([keras.Input((3,)), dense])
    model.compile(sgd(), "mse")
    model.fit(X, np.eye(3)[Y], **ONE)
    return model


def two_stages(method):
    model = network()
    x, y = X[:12], Y[:12]
    pretrain(model, x, y, validation_data=(X, Y), **ONE)
    regularize(model, x, X, y_labeled=y, method=method, **SMALL)
    return model


def on_images():
    stack = layers.Conv2D(2, 3), layers.Flatten(), layers.Dense(2)
    moves = RandomAffine(0.1, shift=1)
    model, y = sequential(moves, *stack, shape=(6, 6, 1)), np.arange(24) % 2
    pretrain(model, IMAGES, y, **ONE)
    method = [SafeGAR(), CrossEntropy(), Consistency(1.0), VAT()]
    regularize(model, IMAGES, IMAGES, y_labeled=y, method=method, **SMALL)
    return model


def classifier(network):
    fitted = GARClassifier(network, pretrain_epochs=1, epochs=1).fit(X, FEW)
    assert np.isfinite(fitted.predict_proba(X)).all()
    return fitted.model_


TRAININGS = {
    "one fit": one_fit,
    "activity regularizer": by_activity_regularizer,
    "images": on_images,
    "classifier": lambda: classifier("auto"),
    "own classifier": lambda: classifier(network()),
}
# An average is refused in half precision: see below.
for name in METHODS:
    if name != "mean-teacher":
        TRAININGS[name] = lambda name=name: two_stages(name)
RUNS = [(name, dtype) for name in TRAININGS for dtype in ("float64", "float16")]
# bfloat16 has the range of float32, and is none of NumPy's own dtypes.
RUNS += [
    (name, "bfloat16")
    for name in ("one fit", "images", "own classifier", "safe-gar")
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "floatx"), RUNS, indirect=["floatx"])
def test_every_training_runs(name, floatx):
    # Some first weights make the adversarial loss too large for float16.
    keras.utils.set_random_seed(0)
    model = TRAININGS[name]()
    assert all(np.isfinite(w.astype("f8")).all() for w in model.get_weights())


@pytest.mark.parametrize("floatx", ["bfloat16"], indirect=True)
def test_the_mean_of_a_term_counts_all_steps(floatx):
    stage_2 = Stage2([CrossEntropy()], network(), 3, 1, labeled_per_batch=4)
    mean = stage_2.means["supervised"]
    # In bfloat16 256 + 1 is 256.
    for value in [4.0] * 100 + [0.0] * 400:
        mean.update_state(value)
    assert float(mean.result()) == pytest.approx(0.8)


@pytest.mark.slow
@pytest.mark.parametrize("floatx", ["float64", "bfloat16"], indirect=True)
@pytest.mark.parametrize(
    "average", ["mean-teacher", [SafeGAR(), MeanTeacher(decay=0.9)]]
)
def test_an_average_moves_or_is_refused(average, floatx):
    if floatx == "float64":
        assert error_rate(two_stages(average), X, Y) < 0.7
        return
    with pytest.raises(ValueError, match=f"average.*weights in {floatx}"):
        two_stages(average)
