"""What is used of Keras' internals, and that few modules import them."""

import re
from pathlib import Path

import keras
from keras import layers

import gar_keras
from gar_keras.engine import keras_internals


def functional():
    inputs = keras.Input((4,))
    hidden = layers.Dense(3, name="hidden")(inputs)
    return keras.Model(inputs, layers.Dense(2, name="logits")(hidden))


def test_the_graph_of_a_model():
    inner = functional()
    found = keras_internals.flatten_layers(
        keras.Sequential([keras.Input((4,)), inner])
    )
    assert {inner, *inner.layers} <= set(found)
    # Each call after those that it needs.
    calls = keras_internals.calls(inner)
    assert [c.operation.name for c in calls][1:] == ["hidden", "logits"]
    assert calls[2].input_tensors[0] is calls[1].output_tensors[0]
    (logits,) = inner.outputs
    assert keras_internals.operation_behind(logits) is inner.layers[-1]
    unknown = keras.KerasTensor((None, 2))
    assert keras_internals.operation_behind(unknown) is None


def test_nothing_private_is_imported_elsewhere():
    private = re.compile(r"(import|from) (keras\.src|tensorflow\.python)")
    found = {
        path.name
        for path in Path(gar_keras.__file__).parent.rglob("*.py")
        if private.search(path.read_text(encoding="utf-8"))
    }
    assert found == {"keras_internals.py", "replicas.py"}
