"""The student's page against the package's stages, and as a program."""

import importlib.util
import json
import re
from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from keras import layers

from gar_keras import pretrain, regularize, sgd
from gar_keras.engine.batches import BatchSampler

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "scripts/gar_in_one_file.py"
RECORD = ROOT / "results/one_file/mnist-100_seed0.json"


@pytest.fixture(scope="module")
def page():
    spec = importlib.util.spec_from_file_location(SCRIPT.stem, SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def data():
    """60 labelled examples of 10 classes, and 290 that take no part in them."""
    rng = np.random.default_rng(0)
    means = 2 * rng.normal(size=(10, 6))
    t = np.arange(350) % 10
    x = (means[t] + rng.normal(size=(350, 6))).astype("float32")
    return SimpleNamespace(x_L=x[:60], t_L=t[:60], x_U=x[60:])


def network():
    """A network without dropout, with the same weights in each call."""
    keras.utils.set_random_seed(0)
    stack = [keras.Input((6,)), layers.Dense(16, "relu"), layers.Dense(10)]
    return keras.Sequential(stack)


def check_weights(model, other):
    for weights, expected in zip(
        model.get_weights(), other.get_weights(), strict=True
    ):
        np.testing.assert_allclose(weights, expected, rtol=0, atol=1e-6)


@pytest.mark.slow
def test_fifteen_steps_of_stage_1_are_those_of_pretrain(page, data):
    model, expected = network(), network()
    optimizer = page.optimizer_of(model)
    for _ in range(15):
        page.stage_1_step(model, optimizer, data.x_L, data.t_L)
    pretrain(
        expected, data.x_L, data.t_L,
        epochs=15, batch_size=60, report_every=15, verbose=0,
    )  # fmt: skip
    check_weights(model, expected)


@pytest.mark.slow
def test_fifteen_steps_of_stage_2_are_those_of_regularize(page, data):
    model, expected = network(), network()
    optimizer = page.optimizer_of(model)
    # The third batch of an epoch is a shorter one.
    sampler = BatchSampler(290, 100, num_labeled=60, labeled_per_batch=8)
    for epoch in range(1, 6):
        order, chosen = sampler.epoch(epoch)
        batches = np.split(order, [100, 200])
        for rows, known in zip(batches, chosen, strict=True):
            page.stage_2_step(model, optimizer, data.x_U[rows], data.x_L[known])
    regularize(
        expected, data.x_L, data.x_U, epochs=5, seed=0, optimizer=sgd(),
        labeled_per_batch=8, unlabeled_per_batch=100, verbose=0,
    )  # fmt: skip
    check_weights(model, expected)


@given(
    m=st.integers(1, 128),
    seed=st.integers(0, 999),
    scale=st.sampled_from([1.0, 30.0]),
)
def test_the_loss_is_the_equation_of_the_paper(page, m, seed, scale):
    Z = oracle.logits(m, page.n, seed, scale=scale)
    # Of smaller logits the epsilon of the page, as the authors', is seen.
    loss = float(page.U(keras.ops.convert_to_tensor(Z)))
    np.testing.assert_allclose(loss, oracle.loss(Z), rtol=1e-5, atol=1e-5)


def test_the_loss_of_outputs_that_are_all_0_is_a_number(page):
    assert float(page.U(keras.ops.zeros((4, page.n)))) == page.c_beta


@pytest.mark.slow
def test_a_run_prints_a_line_an_epoch(page, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (200, 28, 28, 1), "uint8")
    t = np.arange(200) % 10
    tiny = SimpleNamespace(x_train=x, y_train=t, x_test=x[:30], y_test=t[:30])
    monkeypatch.setattr(page, "load_mnist", lambda: tiny)
    page.main([2, 1], 5)
    stage_1, stage_2 = capsys.readouterr().out.splitlines()
    assert re.match(
        r"stage 1, epoch 2: loss [\d.]+, test error [\d.]+%, \d+ s$", stage_1
    )
    assert re.match(
        r"stage 2, epoch 1: loss [\d.]+, test error [\d.]+%, \d+ s$", stage_2
    )


def test_the_errors_that_it_names_are_those_of_its_record(page):
    run = json.loads(RECORD.read_text())
    assert run["command"] == "python scripts/gar_in_one_file.py"
    assert f"{run['seconds'] / 60:.0f} minutes on two cores" in " ".join(
        page.__doc__.split()
    )
    for error in (
        run["test_errors"]["stage 1"][-1],
        run["test_errors"]["stage 2"][-1],
    ):
        assert f"{error:.2%}".replace("%", " %") in page.__doc__
