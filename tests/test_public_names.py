"""The names that `import gar_keras` gives, and what they need."""

import fresh
import keras
import numpy as np
import pytest
import user_code

import gar_keras

# What only the scripts need.
EXTRAS = (
    *("filelock", "networkx", "pandas", "pooch", "reproduction"),
    *("scipy", "sklearn", "tqdm"),
)

CORE = f"""
import sys
for name in {EXTRAS}:
    sys.modules[name] = None
import keras
before = {{name.partition(".")[0] for name in sys.modules}}
import gar_keras
loaded = {{name.partition(".")[0] for name in sys.modules}} - before
assert loaded - sys.stdlib_module_names == {{"gar_keras"}}, loaded
from gar_keras import datasets

mnist = datasets.load_mnist()
split = datasets.make_split(mnist.y_train, 20, seed=0)
labeled = mnist.x_train[split.labeled], mnist.y_train[split.labeled]
x = mnist.x_train[:128]
model = keras.Sequential([
    keras.Input((28, 28, 1)),
    keras.layers.Rescaling(1 / 255),
    keras.layers.Flatten(),
    keras.layers.Dense(10),
])
gar_keras.pretrain(model, *labeled, epochs=2)
gar_keras.regularize(model, labeled[0], x, epochs=1)
method = [gar_keras.GAR(), gar_keras.VAT()]
gar_keras.regularize(
    model, labeled[0], x, y_labeled=labeled[1], method=method, epochs=1
)
gar_keras.attach(model).save("model.keras")
loaded = keras.saving.load_model("model.keras")
assert gar_keras.error_rate(loaded, mnist.x_test, mnist.y_test) < 1
"""


def test_all_names_are_there():
    assert all(hasattr(gar_keras, name) for name in gar_keras.__all__)
    assert "GARClassifier" not in gar_keras.__all__
    assert gar_keras.GARClassifier.__name__ == "GARClassifier"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        gar_keras.nothing  # noqa: B018


@pytest.mark.slow
def test_the_core_needs_no_package_of_the_extras(tmp_path):
    # JAX needs SciPy itself.
    env = fresh.environment(KERAS_BACKEND="tensorflow")
    fresh.run(CORE, cwd=tmp_path, env=env)


@pytest.mark.slow
def test_the_code_of_a_user_runs():
    x = np.random.default_rng(0).normal(size=(60, 2)).astype("float32")
    y = (x[:, 0] > 0).astype("int64")
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)])
    # As annotated.
    assert isinstance(user_code.both_stages(model, x, y), float)
    few = np.where(np.arange(60) < 20, y, -1)
    assert isinstance(user_code.classifier(x, few), float)
    for call in user_code.what_is_wrong(model, x, y):
        with pytest.raises((AttributeError, TypeError, ValueError)):
            call()
