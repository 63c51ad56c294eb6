"""The benchmarks: pairs, what is timed, the record, and what is shown."""

import json
import math
from dataclasses import replace

import filelock
import keras
import numpy as np
import pytest
from keras import layers

from gar_keras.experiments import environment, records
from gar_keras.experiments.benchmarks import command, overhead, speed, timing
from gar_keras.experiments.placement import path_of_benchmark
from gar_keras.experiments.records import OverheadSettings, SpeedSettings
from gar_keras.models import is_regularized
from gar_keras.report import benchmarks

FEW = OverheadSettings(
    batch_size=4,
    num_classes=10,
    num_images=10,
    precision="float32",
    steps=2,
    pairs=2,
)
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


def test_pairs_are_compared_pair_by_pair():
    # Ratios 2, 1 and 3; the ratio of the medians would be 40 / 20 too, but
    # not its quartiles.
    result = timing.compare([(0.01, 0.02), (0.04, 0.04), (0.02, 0.06)])
    assert result["ratio"]["median"] == 2
    assert result["ratio"]["quartiles"] == [1.5, 2.5]
    assert result["reference_ms"]["median"] == pytest.approx(20)
    assert result["ms"]["median"] == pytest.approx(40)
    # 10, 0 and 40 more.
    assert result["difference_ms"]["median"] == pytest.approx(10)


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


def measured(seen):
    """A `measure` that notes its cases."""

    def measure(case):
        seen.append(case)
        return timing.compare([(0.1, 0.101)] * 2)

    return measure


def test_a_finished_case_is_not_measured_again(tmp_path):
    path = path_of_benchmark("overhead", environment.describe(), tmp_path)
    other = FEW.model_copy(update={"batch_size": 5})
    seen = []
    (first,) = command.fill(path, "overhead", [FEW], measured(seen))
    cases = [FEW, other]
    found = [*command.fill(path, "overhead", cases, measured(seen))]
    assert seen == cases and found[0] == first
    assert records.read(path)["cases"] == found
    # No case is begun after the deadline.
    third = FEW.model_copy(update={"steps": 1})
    late = command.fill(path, "overhead", [FEW, third], measured(seen), -1.0)
    assert [*late] == [first, None] and len(seen) == 2


def test_two_do_not_measure_at_once(tmp_path):
    folder = tmp_path / ".checkpoints"
    folder.mkdir()
    with filelock.FileLock(folder / "a.lock"):
        with pytest.raises(ValueError, match="Another process is measuring"):
            [*command.fill(tmp_path / "a.json", "overhead", [], None)]


def test_every_case_of_the_paper_s_sizes():
    found = speed.cases(
        speed.WAYS, speed.NETWORKS, ["float32", "bfloat16"], steps=9
    )
    assert len(found) == len(set(found)) == 3 * 2 * 2
    sizes = {(c.task, c.network): (c.images, c.stretch) for c in found}
    assert sizes["regularize", "cnn6"] == (60_000, 9)
    assert sizes["pretrain", "cnn6"] == (100, 100)
    assert sizes["evaluate", "cnn9"] == (24_300, 1)


@pytest.fixture
def tiny(monkeypatch):
    """Batches of 8 + 4 images in place of 112 + 16."""
    e, classes = speed.NETWORKS["cnn6"]
    changes = {"num_labeled": 10, "labeled_per_batch": 4, "batch_size": 6}
    e = replace(e, unlabeled_per_batch=8, **changes)
    monkeypatch.setitem(speed.NETWORKS, "cnn6", (e, classes))


def test_plain_batches_are_mixed_like_those_of_the_paper(tiny):
    work = speed.Workload(TINY.model_copy(update={"stretch": 67}))
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
@pytest.mark.parametrize("task", speed.WAYS)
def test_a_tiny_case_is_measured_and_shown(task, tiny, tmp_path):
    case = TINY.model_copy(update={"task": task})
    path = path_of_benchmark("benchmark", environment.describe(), tmp_path)
    (entry,) = command.fill(path, "benchmark", [case], speed.measure)
    assert json.loads(path.read_text())["cases"] == [entry]
    records.read(path)
    ms = entry["ms"]["median"]
    # 100 epochs of 24 images, 8 to a step; or 1,000 passes.
    whole = {"regularize": 300, "pretrain": 1000, "evaluate": math.nan}[task]
    assert (entry["seconds"] or math.nan) == pytest.approx(
        whole * ms / 1000, nan_ok=True
    )
    images = {"regularize": 12, "pretrain": 24, "evaluate": 1000}[task]
    assert entry["images_per_second"] == pytest.approx(images / ms * 1000)
    ratios = zip(entry["reference_ms"]["all"], entry["ms"]["all"], strict=True)
    assert entry["speedup"]["all"] == pytest.approx([a / b for a, b in ratios])
    assert f"task {task}, network cnn6" in command.describe(entry)
    text = benchmarks.benchmark_markdown("benchmark", tmp_path)
    assert "| cnn6 | fit | float32 |" in text


@pytest.mark.slow
def test_the_overhead_is_measured_and_shown(tmp_path):
    path = path_of_benchmark("overhead", environment.describe(), tmp_path)
    (entry,) = command.fill(path, "overhead", [FEW], overhead.measure)
    assert len(records.read(path)["cases"][0]["ratio"]["all"]) == 2
    text = benchmarks.benchmark_markdown("overhead", tmp_path)
    assert "| 4 | 10 | 10 | float32 |" in text


def test_the_two_networks_differ_in_the_regularizer_alone(monkeypatch):
    seen = []
    monkeypatch.setattr(overhead, "fit", lambda *a, **k: seen.append((a, k)))
    monkeypatch.setattr(timing, "training", lambda train, units: train())
    for gar in (False, True):
        overhead.stretch(FEW, gar)
    ((plain, a), k), ((gar, b), same) = seen
    assert k == same and a.sampler == b.sampler
    assert not is_regularized(plain) and is_regularized(gar)
    for one, other in zip(plain.weights, gar.weights, strict=False):
        np.testing.assert_array_equal(one, other)


def test_more_images_than_mnist_has_are_made(monkeypatch):
    made = []
    monkeypatch.setattr(
        overhead, "InfiMNIST", lambda length: made.append(length)
    )
    many = {"num_images": 600_000, "batch_size": 512, "steps": 40}
    feed = overhead.feed(FEW.model_copy(update=many))
    assert made == [600_000]
    # Full batches, of none of MNIST's own.
    order, _ = feed.sampler.epoch(feed.first_epoch)
    assert len(order) == 40 * 512
    assert order.min() >= 60_000 and order.max() < 600_000


def test_without_records_nothing_is_claimed(tmp_path):
    assert benchmarks.benchmark_markdown("benchmark", tmp_path) == ""
    assert benchmarks.benchmark_markdown("overhead", tmp_path) == ""
