"""The benchmarks: pairs, what is timed, the record, and what is shown."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import keras
import numpy as np
import pytest
from keras import layers

from gar_keras.models import is_regularized, mlp
from reproduction import benchmarks, environment
from reproduction.report.benchmark_tables import benchmark_markdown

COMMON = {"precision": "float32", "pairs": 2}
TINY = {
    "task": "regularize", "network": "cnn6", "images": 24, "stretch": 2,
    **COMMON,
}  # fmt: skip
FEW = {
    "batch_size": 4, "num_classes": 10, "num_images": 8, "steps": 2, **COMMON
}  # fmt: skip


def test_the_two_take_turns_and_the_warm_up_does_not_count(monkeypatch):
    monkeypatch.setattr(benchmarks, "PER_BUILD", 2)
    calls = []

    def way(name):
        calls.append(f"build {name}, ")

        def run():
            calls.append(name)
            return len(calls) / 1000

        return run

    times = benchmarks.interleave(lambda: way("a"), lambda: way("b"), pairs=3)
    assert "".join(calls) == (
        "build a, build b, ba" + "abba" + "build a, build b, ba" + "ab"
    )
    assert times == [(5, 6), (8, 7), (13, 14)]


def test_the_second_of_two_epochs_is_timed(monkeypatch):
    model = keras.Sequential([keras.Input((1,)), layers.Dense(1)])
    model.compile("sgd", "mse")

    def timed(x):
        fit = partial(model.fit, x, np.ones((4, 1)))
        return benchmarks.training(fit, steps=2)()

    # In place of the module, whose clock Keras and other threads read as well.
    clock = iter([5.0, 8.0])
    time = SimpleNamespace(perf_counter=lambda: next(clock))
    monkeypatch.setattr(benchmarks, "time", time)
    assert timed(np.ones((4, 1))) == (8 - 5) / 2


def run(folder, kind, *cases):
    """The entries of a record, once cases are measured."""
    for case in cases:
        benchmarks.run(folder, kind, case)
    here = environment.describe()
    return benchmarks.read(benchmarks.path_of(kind, here, folder))


def test_a_case_is_replaced_and_others_stay(tmp_path, monkeypatch):
    times = iter([1.0, 2.0, 3.0])
    monkeypatch.setattr(
        benchmarks,
        "interleave",
        lambda first, second, pairs: [(1.0, next(times))] * pairs,
    )
    first, second = FEW, FEW | {"second": "without"}
    run(tmp_path, "overhead", first, second)
    found = run(tmp_path, "overhead", first)
    assert [entry["case"] for entry in found] == [second, first]
    assert [entry["ms"]["median"] for entry in found] == [2.0, 3.0]


def test_the_command_measures_stage_2_and_the_layer_beside_itself():
    (kind, case), (_, again), (other, layer) = benchmarks.cases()
    assert (kind, case["images"], other) == ("benchmark", 60_000, "overhead")
    assert again == layer | {"second": "without"}
    assert layer["num_images"] == layer["steps"] * layer["batch_size"] <= 60_000


@pytest.fixture
def tiny(monkeypatch):
    """Batches of 8 + 4 images in place of 112 + 16, and a small network."""
    changes = {"num_labeled": 10, "labeled_per_batch": 4}
    e = benchmarks.EXPERIMENT
    e = replace(e, network="mlp", unlabeled_per_batch=8, **changes)
    monkeypatch.setattr(benchmarks, "EXPERIMENT", e)
    monkeypatch.setattr(benchmarks, "cnn6", partial(mlp, (28, 28, 1)))


def test_the_plain_way_is_the_same_function_of_the_same_batches(
    tiny, monkeypatch
):
    seen = []
    monkeypatch.setattr(
        benchmarks, "training", lambda train, steps: seen.append(train)
    )
    case = TINY | {"stretch": 67}
    benchmarks.regularize(case, True)
    benchmarks.regularize(case, False)
    plain, ours = seen
    (batches,) = plain.args
    x = [batches[i] for i in range(len(batches))]
    # A stretch is no longer than an epoch.
    assert [batch.shape for batch in x] == [(12, 28, 28, 1)] * 3
    images = benchmarks.load_mnist().x_train[:24]
    ready = images.astype("float32") / 255

    def rows(images):
        return sorted(image.tobytes() for image in images)

    assert rows(np.concatenate([batch[:8] for batch in x])) == rows(ready)
    guides = {image.tobytes() for batch in x for image in batch[8:]}
    assert guides <= {image.tobytes() for image in ready[:10]}
    model, data = ours.args
    assert data.sampler.steps == len(batches)
    np.testing.assert_allclose(
        plain.func.__self__.predict(ready, verbose=0),
        model.predict(images, verbose=0),
        atol=1e-5,
    )


@pytest.mark.parametrize("second", [True, False])
def test_the_two_networks_differ_in_the_regularizer_alone(
    second, tiny, monkeypatch
):
    seen = []
    monkeypatch.setattr(
        benchmarks, "training", lambda train, steps: seen.append(train)
    )
    for gar in (False, second):
        benchmarks.train_layer(FEW, gar)
    plain, gar = (train.func.__self__ for train in seen)
    assert [len(train.args[0]) for train in seen] == [8, 8]
    assert (is_regularized(plain), is_regularized(gar)) == (False, second)
    for one, other in zip(plain.weights, gar.weights, strict=False):
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
def test_tiny_cases_are_measured_and_shown(tiny, tmp_path, capsys):
    (entry,) = run(tmp_path, "benchmark", TINY)
    ms = entry["ms"]["median"]
    assert entry["images_per_second"] == pytest.approx(12 / ms * 1000)
    assert "task regularize, network cnn6" in capsys.readouterr().out
    assert "| cnn6 | float32 |" in benchmark_markdown("benchmark", tmp_path)
    again, entry = run(tmp_path, "overhead", FEW | {"second": "without"}, FEW)
    assert len(again["ratio"]["all"]) == len(entry["ratio"]["all"]) == 2
    text = benchmark_markdown("overhead", tmp_path)
    assert "| 4 | 10 | 8 | float32, A/A |" in text
    assert "| 4 | 10 | 8 | float32 |" in text
