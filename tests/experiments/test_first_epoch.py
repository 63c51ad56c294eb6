"""The first epoch by step: what is noted, and that noting changes nothing."""

from dataclasses import replace

import keras
import numpy as np
import oracle
import pytest
import tiny_runs
from keras import ops
from tiny_runs import TINY, numbers

from gar_keras.experiments import records, runner
from gar_keras.experiments.first_epoch import (
    TracedRegularization,
    TracedSGD,
    steps_kept,
)
from gar_keras.experiments.placement import path_of
from gar_keras.experiments.settings import Experiment
from gar_keras.experiments.variations import Extensions

ONE_EPOCH = replace(TINY, epochs=1)
STEPS = 106


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    tiny_runs.install(monkeypatch)


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        tiny_runs.install(patch)
        folder = tmp_path_factory.mktemp("traced")
        runner.run(ONE_EPOCH, 0, folder)
        return records.read(path_of(ONE_EPOCH, 0, folder))


def test_the_layer_notes_what_the_paper_defines():
    layer = TracedRegularization(steps=2, num_classes=3)
    Z = np.array([[2.0, -1.0, 0.5], [0.0, 3.0, -2.0]], "float32")
    layer(Z, training=True)
    layer(2 * Z, training=False)
    layer(2 * Z, training=True)
    B = np.maximum(Z, 0)
    expected = [4.0, 9.0, 0.25, oracle.affinity(B), oracle.balance(B), 2.5]
    first, second = ops.convert_to_numpy(layer.rows)
    np.testing.assert_allclose(first, expected, rtol=1e-6)
    np.testing.assert_allclose(second[:3], 4 * first[:3], rtol=1e-6)
    np.testing.assert_allclose(second[3:5], first[3:5], rtol=1e-6)


def test_the_optimizer_notes_the_norm_before_clipping():
    weights = [keras.Variable([0.0, 0.0]), keras.Variable([0.0])]
    optimizer = TracedSGD(2, learning_rate=1.0, global_clipnorm=1.0)
    for scale in (1.0, 2.0):
        gradients = [scale * np.array(g) for g in ([2.0, 3.0], [6.0])]
        optimizer.apply(
            [ops.convert_to_tensor(g, "float32") for g in gradients], weights
        )
    np.testing.assert_allclose(ops.convert_to_numpy(optimizer.norms), [7, 14])
    # Two steps of length 1.
    np.testing.assert_allclose(
        ops.convert_to_numpy(weights[1]), [-2 * 6 / 7], rtol=1e-6
    )


@pytest.mark.slow
def test_a_run_of_one_epoch_is_noted(traced):
    first = traced["first_epoch"]
    kept = steps_kept(STEPS)
    assert first["step"] == kept
    assert [len(row) for row in first["v"]] == [3] * len(kept)
    for name in ("affinity", "balance", "top_logit", "gradient_norm"):
        assert len(first[name]) == len(kept)
    assert min(first["gradient_norm"]) > 0
    assert first["error_step"][-1] == STEPS
    assert first["error_step"][:3] == [0, 4, 8]
    # All 90 test images are measured, at both ends of the epoch.
    curve = traced["regularization"]["curve"]["test_error"]
    assert [first["test_error"][0], first["test_error"][-1]] == curve


@pytest.mark.slow
def test_noting_changes_no_number(traced, tmp_path, monkeypatch):
    monkeypatch.setattr(Experiment, "is_traced", False)
    plain = numbers(runner.run(ONE_EPOCH, 0, tmp_path))
    expected = numbers(traced)
    assert expected.pop("first_epoch") and "first_epoch" not in plain
    assert plain == expected


@pytest.mark.slow
def test_additions_are_noted_too(tmp_path):
    extended = replace(
        ONE_EPOCH,
        extensions=Extensions(supervised=1.0, global_clipnorm=0.5),
    )
    first = runner.run(extended, 0, tmp_path)["first_epoch"]
    assert min(map(min, first["v"])) >= 0
    assert len(first["gradient_norm"]) == len(steps_kept(STEPS))


def test_longer_runs_and_other_methods_are_not_noted():
    assert not TINY.is_traced
    assert not replace(ONE_EPOCH, method="entropy").is_traced
