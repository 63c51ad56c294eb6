"""The benchmarks: pairs, what is timed, the record, and what is shown."""

from dataclasses import replace
from functools import partial

import keras
import numpy as np
import pytest
from keras import layers
from made_records import OVERHEAD_CASE as FEW

from gar_keras.models import is_regularized, mlp
from reproduction import environment
from reproduction.benchmarks import (
    benchmark_command,
    benchmark_records,
    layer_overhead,
    speed,
    timing,
)
from reproduction.benchmarks.benchmark_records import SpeedSettings
from reproduction.paths import path_of_benchmark
from reproduction.report.benchmark_tables import benchmark_markdown

TINY = SpeedSettings(
    task="regularize",
    network="cnn6",
    path="fit",
    precision="float32",
    images=24,
    stretch=2,
    pairs=2,
)


def test_the_two_take_turns_and_the_warm_up_does_not_count():
    calls = []

    def way(name):
        calls.append(f"build {name}, ")

        def run():
            calls.append(name)
            return float(len(calls))

        return run

    times = timing.interleave(
        lambda: way("a"), lambda: way("b"), pairs=3, per_build=2
    )
    assert "".join(calls) == (
        "build a, build b, ba" + "abba" + "build b, build a, ba" + "ab"
    )
    assert times == [(5, 6), (8, 7), (13, 14)]


def line(x):
    """A `fit` of a model of one weight over three epochs."""
    model = keras.Sequential([keras.Input((1,)), layers.Dense(1)])
    model.compile("sgd", "mse")
    y = np.ones((4, 1))
    return lambda callbacks: model.fit(
        x, y, epochs=3, callbacks=callbacks, verbose=0
    )


def test_training_is_timed_from_the_second_epoch_to_the_last(monkeypatch):
    run = timing.training(line(np.ones((4, 1))), units=2)
    clock = iter([5.0, 8.0, 11.0])
    monkeypatch.setattr(timing.time, "perf_counter", lambda: next(clock))
    assert run() == (11 - 5) / 2 / 2


def test_a_diverged_network_is_no_measurement():
    with pytest.raises(FloatingPointError, match="diverged"):
        timing.training(line(np.full((4, 1), np.inf)), units=1)()


def run(folder, kind, cases, measure):
    """The entries of a record, once cases are measured."""
    benchmark_command.run(folder, kind, cases, measure)
    path = path_of_benchmark(kind, environment.describe(), folder)
    return benchmark_records.read(path)


def measured(seen):
    """A `measure` that notes its cases."""

    def measure(case, tell):
        seen.append(case)
        return timing.compare([(0.1, 0.101)] * 2)

    return measure


def test_a_finished_case_is_not_measured_again(tmp_path):
    cases = [replace(FEW, **{"batch_size": b}) for b in (4, 5)]
    seen = []
    found = run(tmp_path, "overhead", cases[:1], measured(seen))
    assert len(found) == 1
    more = run(tmp_path, "overhead", cases, measured(seen))
    assert seen == cases and more[:1] == found


def test_two_processes_do_not_measure_into_one_record(tmp_path):
    path = path_of_benchmark("overhead", environment.describe(), tmp_path)
    seen = []

    def meanwhile(case, tell):
        # Another process has come, while this one measures.
        with pytest.raises(ValueError, match="Another process is measuring"):
            run(tmp_path, "overhead", [FEW], measured(seen))
        return measured(seen)(case, tell)

    found = run(tmp_path, "overhead", [FEW], meanwhile)
    assert seen == [FEW] and benchmark_records.read(path) == found
    assert run(tmp_path, "overhead", [FEW], measured(seen)) == found


@pytest.fixture
def tiny(monkeypatch):
    """Batches of 8 + 4 images in place of 112 + 16, and a small network."""
    e, classes = speed.NETWORKS["cnn6"]
    changes = {"num_labeled": 10, "labeled_per_batch": 4}
    e = replace(e, network="mlp", unlabeled_per_batch=8, **changes)
    monkeypatch.setitem(speed.NETWORKS, "cnn6", (e, classes))
    monkeypatch.setattr(layer_overhead, "cnn6", partial(mlp, (28, 28, 1)))


def test_plain_batches_are_mixed_like_those_of_the_paper(tiny):
    work = speed.Workload(replace(TINY, **{"stretch": 67}))
    batches = speed.MixedBatches(work)
    x = [batches[i] for i in range(len(batches))]
    # A stretch is no longer than an epoch.
    assert [batch.shape for batch in x] == [(12, 28, 28, 1)] * 3

    def rows(images):
        return sorted(image.tobytes() for image in images)

    ready = work.ready_images
    assert rows(np.concatenate([batch[:8] for batch in x])) == rows(ready)
    guides = {image.tobytes() for batch in x for image in batch[8:]}
    assert guides <= {image.tobytes() for image in ready[:10]}


def test_the_plain_network_is_the_same_function(tiny):
    work = speed.Workload(TINY)
    np.testing.assert_allclose(
        work.plain_network().predict(work.ready_images, verbose=0),
        work.network().predict(work.images, verbose=0),
        atol=1e-5,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "images", "whole"),
    # 100 epochs of 24 images, 8 to a step; or 1,000 passes.
    [("regularize", 12, 300), ("pretrain", 24, 1000), ("evaluate", 1000, None)],
)
def test_a_tiny_case_is_measured_and_shown(
    task, images, whole, tiny, tmp_path, capsys
):
    case = replace(TINY, **{"task": task})
    (entry,) = run(tmp_path, "benchmark", [case], speed.measure)
    ms = entry["ms"]["median"]
    assert entry["images_per_second"] == pytest.approx(images / ms * 1000)
    seconds = None if whole is None else pytest.approx(whole * ms / 1000)
    assert entry["seconds"] == seconds
    ratios = zip(entry["reference_ms"]["all"], entry["ms"]["all"], strict=True)
    assert entry["speedup"]["all"] == pytest.approx([a / b for a, b in ratios])
    assert f"task {task}, network cnn6" in capsys.readouterr().out
    assert "| cnn6 | float32 |" in benchmark_markdown("benchmark", tmp_path)


@pytest.mark.slow
def test_the_overhead_is_measured_and_shown(tiny, tmp_path):
    (entry,) = run(tmp_path, "overhead", [FEW], layer_overhead.measure)
    assert len(entry["ratio"]["all"]) == 2
    text = benchmark_markdown("overhead", tmp_path)
    assert "| 4 | 10 | 10 | float32 |" in text


def test_the_two_networks_differ_in_the_regularizer_alone(tiny, monkeypatch):
    seen = []
    monkeypatch.setattr(
        layer_overhead, "fit", lambda *a, **k: seen.append((a, k))
    )
    monkeypatch.setattr(timing, "training", lambda train, units: train())
    for gar in (False, True):
        layer_overhead.stretch(FEW, gar)
    ((plain, a), k), ((gar, b), same) = seen
    assert k == same and a.sampler == b.sampler
    assert not is_regularized(plain) and is_regularized(gar)
    for one, other in zip(plain.weights, gar.weights, strict=False):
        np.testing.assert_array_equal(one, other)


def test_more_images_than_mnist_has_are_made(monkeypatch):
    made = []
    monkeypatch.setattr(
        layer_overhead, "InfiMNIST", lambda length: made.append(length)
    )
    many = {"num_images": 600_000, "batch_size": 512, "steps": 40}
    feed = layer_overhead.feed(replace(FEW, **many))
    assert made == [600_000]
    # Full batches, of none of MNIST's own.
    order, _ = feed.sampler.epoch(feed.first_epoch)
    assert len(order) == 40 * 512
    assert order.min() >= 60_000 and order.max() < 600_000
