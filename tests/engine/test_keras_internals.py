"""What is used of Keras' internals, and that few modules import them."""

import re
from pathlib import Path

import keras
import numpy as np
from keras import layers, ops

import gar_keras
from gar_keras.engine import backend, keras_internals


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


def test_assignments_of_a_scope():
    first, second = keras.Variable(1.0), keras.Variable(2.0)
    assert keras_internals.stateless_scope() is None
    with keras.StatelessScope([(second, ops.convert_to_tensor(5.0))]) as around:
        assert keras_internals.stateless_scope() is around
        scope = keras_internals.AssignmentScope(around)
    with scope:
        first.assign(second + 1)
    assert scope.assigned == [first]
    assert float(scope.get_current_value(first)) == 6
    assert (float(first.value), float(second.value)) == (1, 2)


def test_variables_are_taken_within_an_epoch_on_jax():
    model = functional()
    model.compile("sgd", "mse")
    taken = []

    class Ask(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            taken.append(keras_internals.is_taken(model.weights[0]))

    model.fit(np.ones((4, 4)), np.ones((4, 2)), callbacks=[Ask()], verbose=0)
    assert set(taken) == {backend.name() == "jax"}
    assert not keras_internals.is_taken(model.weights[0])


def test_layer_in_call():
    seen = []

    def regularizer(x):
        seen.append(keras_internals.layer_in_call())
        return ops.sum(x)

    layer = layers.Dense(2, activity_regularizer=regularizer)
    keras.Sequential([layer])(np.ones((3, 4)))
    assert seen and set(seen) == {layer}
    seen.clear()
    regularizer(np.ones((3, 4)))
    assert seen == [None]


def test_nothing_private_is_imported_elsewhere():
    private = re.compile(r"(import|from) (keras\.src|tensorflow\.python)")
    found = {
        path.name
        for path in Path(gar_keras.__file__).parent.rglob("*.py")
        if private.search(path.read_text(encoding="utf-8"))
    }
    assert found == {"keras_internals.py", "replicas.py"}
