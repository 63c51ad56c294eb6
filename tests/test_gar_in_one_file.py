"""The student's page against the package's stages, and as a program."""

import importlib.util
import json
import runpy
import sys
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

SCRIPT = Path(__file__).parents[1] / "scripts/gar_in_one_file.py"


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


def compiled(page, loss):
    model = network()
    model.compile(keras.optimizers.SGD(**page.SGD), loss)
    return model


def check_weights(model, other):
    for weights, expected in zip(
        model.get_weights(), other.get_weights(), strict=True
    ):
        np.testing.assert_allclose(weights, expected, rtol=0, atol=1e-6)


@pytest.mark.slow
def test_fifteen_steps_of_stage_1_are_those_of_pretrain(page, data):
    log_loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model, expected = compiled(page, log_loss), network()
    for _ in range(15):
        page.stage_1_step(model, data.x_L, data.t_L)
    pretrain(
        expected, data.x_L, data.t_L,
        epochs=15, batch_size=60, report_every=15, verbose=0,
    )  # fmt: skip
    check_weights(model, expected)


@pytest.mark.slow
def test_fifteen_steps_of_stage_2_are_those_of_regularize(page, data):
    model, expected = compiled(page, page.U), network()
    # The third batch of an epoch is a shorter one.
    sampler = BatchSampler(290, 100, num_labeled=60, labeled_per_batch=8)
    for epoch in range(1, 6):
        order, chosen = sampler.epoch(epoch)
        batches = np.split(order, [100, 200])
        for rows, known in zip(batches, chosen, strict=True):
            page.stage_2_step(model, data.x_U[rows], data.x_L[known])
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
    loss = float(page.U(None, keras.ops.convert_to_tensor(Z)))
    np.testing.assert_allclose(loss, oracle.loss(Z), rtol=1e-5, atol=1e-5)


def test_the_loss_of_outputs_that_are_all_0_is_a_number(page):
    assert float(page.U(None, keras.ops.zeros((4, page.n)))) == page.c_beta


@pytest.mark.slow
def test_a_run_prints_a_line_an_epoch_and_writes_its_record(
    page, monkeypatch, tmp_path, capsys
):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (200, 28, 28, 1), "uint8")
    t = np.arange(200) % 10
    tiny = SimpleNamespace(x_train=x, y_train=t, x_test=x[:30], y_test=t[:30])
    monkeypatch.setattr(page, "load_mnist", lambda: tiny)
    path = tmp_path / "record.json"
    with path.open("x") as file:
        page.main([2, 1], 5, file)
    run = json.loads(path.read_text())
    assert (run["epochs"], run["seed"], run["floatx"]) == ([2, 1], 5, "float32")
    backend = keras.backend.backend()
    assert set(run["versions"]) == {"keras", "numpy", backend}
    assert run["versions"]["keras"] == keras.__version__
    assert int(run["hardware"][0]) >= 1 and run["revision"]
    assert run["seconds"] >= 0
    errors = run["test_errors"]
    assert len(errors) == 2 and all(0 <= error <= 1 for error in errors)
    lines = capsys.readouterr().out.splitlines()
    for epoch, (line, error) in enumerate(zip(lines, errors, strict=True)):
        assert line.startswith(f"epoch {epoch}: test error {error:.2%}, ")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--epochs", "-1", "1"], "must be at least 0"),
        (["--seed", "-1"], "must be at least 0"),
        (["--record", "there.json"], "File exists"),
        (["--record", "gone/new.json"], "No such file or directory"),
    ],
)
def test_refusals(options, error, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    Path("there.json").touch()
    monkeypatch.setattr(sys, "argv", [SCRIPT.name, *options])
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    assert end.value.code == 2
    assert error in capsys.readouterr().err.splitlines()[-1]
