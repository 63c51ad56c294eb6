"""Metrics that a layer records in its call."""

from keras import ops

from gar_keras.engine import autodiff


def test_step_mean_is_the_mean_over_the_steps():
    metric = autodiff.StepMean("x", dtype="float32")
    for value in (1.0, 2.0, 6.0):
        metric.record(ops.convert_to_tensor(value))
    assert float(metric.result()) == 3
    metric.reset_state()
    assert float(metric.result()) == 0
