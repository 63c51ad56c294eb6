"""docs/leaving.md: what is saved and exported runs without this package."""

import subprocess
import sys
import warnings
from pathlib import Path

import keras
import numpy as np
import pytest
from snippets import python_blocks, run_blocks

from gar_keras import GraphActivityRegularization
from gar_keras.engine import backend

PAGE = Path(__file__).parents[1] / "docs/leaving.md"
X = np.random.default_rng(0).normal(size=(5, 6)).astype("float32")

# Where `import gar_keras` fails.
ELSEWHERE = """
import sys
sys.modules["gar_keras"] = None
import numpy as np
import tensorflow as tf
x = np.load("x.npy")
exported = tf.saved_model.load("saved_model")
np.save("saved_model.npy", exported.serve(x))
import keras
for name in ("plain", "other"):
    model = keras.saving.load_model(f"{name}.keras")
    np.save(f"{name}.npy", model(x))
try:
    keras.saving.load_model("with_gar.keras")
except TypeError:
    print("refused")
"""


@pytest.fixture
def blocks(tmp_path, monkeypatch):
    """The Python of the page, without that of optional formats."""
    if backend.name() != "tensorflow":
        pytest.skip("the formats of TensorFlow")
    monkeypatch.chdir(tmp_path)
    found = python_blocks(PAGE.read_text(encoding="utf-8"))
    return [block for block in found if "format=" not in block]


def of_format(name):
    """The block of the page that exports in a format."""
    found = python_blocks(PAGE.read_text(encoding="utf-8"))
    (block,) = (block for block in found if f'format="{name}"' in block)
    return block


def outputs(model):
    return keras.ops.convert_to_numpy(model(X))


def test_rescaling_takes_the_place_of_normalization(blocks):
    found = run_blocks([blocks[0], blocks[-1]], {})
    inputs = keras.Input((6,))
    layer = keras.layers.Normalization(mean=X.mean(0), variance=X.var(0))
    dense = keras.layers.Dense(3)
    model = keras.Model(inputs, dense(layer(inputs)))
    clone = keras.models.clone_model(
        model, clone_function=found["rescaling_for_normalization"]
    )
    assert not [x for x in clone.layers if x.name == layer.name]
    np.testing.assert_allclose(
        outputs(clone), outputs(model), rtol=1e-5, atol=1e-6
    )


@pytest.mark.slow
def test_files_are_loaded_where_this_package_is_not(blocks, tmp_path):
    found = run_blocks(blocks, {})
    model = found["model"]
    assert isinstance(model.layers[-1], GraphActivityRegularization)
    model.save("with_gar.keras")
    np.save("x.npy", X)
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "refused\n"
    for name, expected in (
        ("saved_model", model),
        ("plain", model),
        ("other", found["other"]),
    ):
        np.testing.assert_allclose(
            np.load(tmp_path / f"{name}.npy"), outputs(expected), rtol=1e-5
        )


def of_onnx():
    """The outputs of the exported file."""
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession("model.onnx")
    (given,) = session.get_inputs()
    return session.run(None, {given.name: X})[0]


def of_litert():
    try:
        from ai_edge_litert.interpreter import Interpreter
    except ImportError:
        import tensorflow

        Interpreter = tensorflow.lite.Interpreter
    runner = Interpreter("model.tflite").get_signature_runner()
    (name,) = runner.get_input_details()
    rows = [runner(**{name: X[i : i + 1]}) for i in range(len(X))]
    return np.concatenate([next(iter(row.values())) for row in rows])


FORMATS = {"onnx": of_onnx, "litert": of_litert}


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_exported_files_have_the_outputs_of_the_model(name, blocks):
    if name == "onnx":
        for package in ("onnx", "tf2onnx"):
            pytest.importorskip(package)
    # Of the converters.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = run_blocks([blocks[0], of_format(name)], {"x": X})
        results = FORMATS[name]()
    np.testing.assert_allclose(
        results, outputs(found["model"]), rtol=1e-5, atol=1e-6
    )
