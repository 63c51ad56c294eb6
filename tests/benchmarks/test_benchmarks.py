"""The benchmarks: counts known by hand, order, resume, and what is shown."""

import json
import math
import operator
import os
import time
from dataclasses import asdict, replace

import filelock
import keras
import numpy as np
import pytest
from keras import layers
from pages import without_links

from gar_keras import attach, cnn6, cnn9, datasets
from gar_keras.benchmarks import (
    cases,
    memory,
    overhead,
    roofline,
    speed,
    timing,
    variants,
)
from gar_keras.benchmarks import records as store
from gar_keras.benchmarks.cases import Case, Workload
from gar_keras.benchmarks.roofline import Ceilings, Operation
from gar_keras.experiments import records
from gar_keras.experiments.placement import path_of_benchmark
from gar_keras.experiments.recorder import OutOfTime
from gar_keras.experiments.records import RecordError
from gar_keras.models import is_regularized
from gar_keras.report import benchmarks

# Timing.


def noted(calls, name, seconds):
    """A function that notes each call and returns the seconds."""

    def run():
        calls.append(name)
        return seconds

    return run


def test_the_two_take_turns_and_change_their_order():
    calls = []
    first, second = noted(calls, "A", 2.0), noted(calls, "B", 3.0)
    times = timing.interleave(first, second, pairs=4)
    # B A to warm up.
    assert "".join(calls) == "BA" + "ABBAABBA"
    assert times == [(2.0, 3.0)] * 4


def test_the_warm_up_does_not_count():
    seconds = iter([100.0, 1.0, 2.0, 3.0])
    times = timing.interleave(lambda: next(seconds), lambda: 5.0, pairs=3)
    assert times == [(1.0, 5.0), (2.0, 5.0), (3.0, 5.0)]


def test_what_is_timed_is_built_anew_and_in_turns():
    built = []

    def build(name):
        built.append(name)
        number = float(len(built))
        return lambda: number

    times = timing.rebuild(
        lambda: build("a"), lambda: build("b"), pairs=5, per_build=2
    )
    assert "".join(built) == "abbaab"
    assert times == [(1.0, 2.0)] * 2 + [(4.0, 3.0)] * 2 + [(5.0, 6.0)]


def test_a_pair_that_would_end_too_late_is_not_begun():
    calls = []
    run = noted(calls, "A", 1.0)
    with pytest.raises(OutOfTime):
        timing.interleave(run, run, 3, deadline=time.monotonic() - 1)
    assert calls == []


def test_pairs_are_compared_pair_by_pair():
    # Ratios 2, 1 and 3; the ratio of the medians would be 40 / 20 too, but
    # not its quartiles.
    result = timing.compare([(0.01, 0.02), (0.04, 0.04), (0.02, 0.06)])
    assert result["ratio"] == {
        "median": 2.0,
        "quartiles": [1.5, 2.5],
        "all": pytest.approx([2.0, 1.0, 3.0]),
    }
    assert result["reference_ms"]["median"] == pytest.approx(20)
    assert result["ms"]["median"] == pytest.approx(40)
    # 10, 0 and 40 more.
    assert result["difference_ms"]["median"] == pytest.approx(10)


def test_seconds_are_those_of_a_unit(monkeypatch):
    clock = iter([10.0, 16.0])
    monkeypatch.setattr(timing.time, "perf_counter", lambda: next(clock))
    assert timing.timed(lambda: None, units=3)() == 2.0


def line(rate=0.1):
    """A model of one weight, compiled."""
    model = keras.Sequential([keras.Input((1,)), layers.Dense(1)])
    model.compile(keras.optimizers.SGD(rate), "mse")
    return model


ONES = np.ones((4, 1), "float32")


def test_fit_is_timed_from_the_first_epoch_to_the_last(monkeypatch):
    clock = iter([5.0, 8.0, 11.0])
    run = timing.fit(line(), ONES, units=12, y=ONES, epochs=2)
    monkeypatch.setattr(timing.time, "perf_counter", lambda: next(clock))
    assert run() == (11 - 5) / 12


def test_a_diverged_network_is_no_measurement():
    run = timing.fit(line(), ONES * np.inf, units=1, y=ONES)
    with pytest.raises(FloatingPointError, match="diverged"):
        run()


# Memory.


def test_peak_memory_is_that_of_the_new_process_alone():
    # Mebibytes that are written to; this process holds far more.
    small = memory.peak(operator.mul, b"1", 10 << 20)
    large = memory.peak(operator.mul, b"1", 110 << 20)
    assert small["device_mib"] is large["device_mib"] is None
    grown = large["host_mib"] - small["host_mib"]
    assert 90 < grown < 110
    assert small["host_mib"] < memory._host_peak() / memory.MIB


def test_a_process_that_is_killed_is_told():
    with pytest.raises(ChildProcessError, match="_exit.*Make room"):
        memory.peak(os._exit, 9)


def test_memory_of_a_gpu_is_named():
    text = memory.text({"host_mib": 9.0, "device_mib": 2345.6})
    assert text == "2,346 MiB of the GPU"


# The record.

HERE = {
    "device": "AMD EPYC",
    "device_kind": "cpu",
    "cores": 2,
    "processor": "AMD EPYC",
    "backend": "tensorflow",
    "backend_version": "2.21.0",
    "keras": "3.15.0",
    "python": "3.12.0",
    "git_revision": "0123456789abcdef+changes",
}
GPU = HERE | {"device": "NVIDIA H100", "device_kind": "gpu", "backend": "jax"}
NAME = "overhead_amd-epyc-2-cores_tensorflow.json"
CASE = overhead.Case(pairs=2)
OTHER = replace(CASE, batch_size=256)
PEAK = {"host_mib": 1234.5, "device_mib": None}


def timed(reference_ms, ms):
    """What `compare` returns for three equal pairs."""
    return timing.compare([(reference_ms / 1000, ms / 1000)] * 3)


@pytest.fixture
def here(monkeypatch):
    from gar_keras.experiments import environment

    monkeypatch.setattr(environment, "describe", lambda: HERE)


def measured(seen, stop_at=None):
    """A `measure` that notes its cases, and runs out of time at one."""

    def measure(case, deadline):
        if case == stop_at:
            raise OutOfTime
        seen.append(case)
        return {**timed(100, 101), "peak": {"without": PEAK, "with": PEAK}}

    return measure


def test_a_finished_case_is_not_measured_again(here, tmp_path):
    seen, said = [], []
    path, complete = store.fill(
        tmp_path, "overhead", [CASE, OTHER], measured(seen, OTHER)
    )
    assert (path.name, complete, seen) == (NAME, False, [CASE])
    assert [e["case"] for e in store.read(path)["cases"]] == [asdict(CASE)]
    _, complete = store.fill(
        tmp_path, "overhead", [CASE, OTHER], measured(seen), say=said.append
    )
    assert complete and seen == [CASE, OTHER]
    # Both are said: the one that was there, too.
    assert said == store.read_all(tmp_path, "overhead")
    assert [e["environment"] for e in said] == [HERE, HERE]


def test_no_case_is_begun_after_the_deadline(here, tmp_path):
    seen = []
    _, complete = store.fill(
        tmp_path, "overhead", [CASE], measured(seen), deadline=-math.inf
    )
    assert not complete and seen == []
    assert store.read_all(tmp_path, "overhead") == []


def test_machines_and_backends_have_records_of_their_own():
    names = {
        path_of_benchmark("benchmark", e, "").name
        for e in (HERE, HERE | {"cores": 4}, HERE | {"backend": "jax"}, GPU)
    }
    assert len(names) == 4
    assert "benchmark_nvidia-h100_jax.json" in names
    # None is taken for the record of a run.
    assert not any("_seed" in name for name in names)


def test_two_do_not_measure_at_once(here, tmp_path):
    folder = tmp_path / ".checkpoints"
    folder.mkdir()
    with filelock.FileLock((folder / NAME).with_suffix(".lock")):
        with pytest.raises(ValueError, match="Another process is measuring"):
            store.fill(tmp_path, "overhead", [CASE], measured([]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not readable JSON"),
        ("[]", "not a record"),
        ('{"format": 0}', "not a record"),
        ('{"format": 1}', "not a whole record"),
        ('{"format": 1, "cases": [{"case": {}}]}', "not a whole record"),
    ],
)
def test_what_is_no_record_is_refused(text, message, here, tmp_path):
    (tmp_path / NAME).write_text(text)
    with pytest.raises(RecordError, match=message):
        store.read_all(tmp_path, "overhead")
    with pytest.raises(RecordError, match=message):
        store.fill(tmp_path, "overhead", [CASE], measured([]))
    # And stays as it was.
    assert (tmp_path / NAME).read_text() == text


def test_a_copied_record_is_refused(here, tmp_path):
    path, _ = store.fill(tmp_path, "overhead", [CASE], measured([]))
    copy = tmp_path / "overhead_other_tensorflow.json"
    copy.write_bytes(path.read_bytes())
    with pytest.raises(RecordError, match=f"belongs in {NAME}"):
        store.read_all(tmp_path, "overhead")


# The floor.


def small(dtype="float32", trainable=True):
    """4x4 images, a convolution of 2 filters, pooling, 3 logits."""
    return keras.Sequential(
        [
            keras.Input((4, 4, 1)),
            layers.Conv2D(
                2, 3, padding="same", activation="relu", name="conv",
                dtype=dtype, trainable=trainable,
            ),
            layers.MaxPooling2D(name="pool", dtype=dtype),
            layers.Flatten(name="flat", dtype=dtype),
            layers.Dense(3, name="logits", dtype="float32"),
        ]
    )  # fmt: skip


def counted(operations):
    """`{(layer, part): (flops, bytes)}`, of those that do anything."""
    return {
        (o.layer, o.part): (o.flops, o.bytes)
        for o in operations
        if o.flops or o.bytes
    }


def test_a_step_by_hand():
    # Two images. Tensors of 2*16, 2*32, 2*8 and 2*3 numbers of 4 bytes: 128,
    # 256, 64 and 24. Weights: 18 + 2 and 24 + 3 numbers, 80 and 108 bytes.
    # A convolution is 2*32 outputs of 9 products, a Dense 2*3 of 8.
    assert counted(roofline.step_operations(small(), batch=2)) == {
        ("conv", "forward"): (2 * 64 * 9, 128 + 80 + 256),
        ("pool", "forward"): (0, 256 + 64),
        ("logits", "forward"): (2 * 6 * 8, 64 + 108 + 24),
        # x, dy, y for the flat part of ReLU, dw.
        ("conv", "weight gradient"): (2 * 64 * 9, 128 + 256 + 256 + 80),
        # dy, x for the place of the maximum, dx.
        ("pool", "input gradient"): (0, 64 + 256 + 256),
        ("logits", "input gradient"): (2 * 6 * 8, 24 + 108 + 64),
        ("logits", "weight gradient"): (2 * 6 * 8, 64 + 24 + 108),
        # Gradient, weight and moment are read, the latter two written.
        ("conv", "update"): (0, 5 * 80),
        ("logits", "update"): (0, 5 * 108),
    }


def test_a_step_in_bfloat16_by_hand():
    operations = roofline.step_operations(small("mixed_bfloat16"), batch=2)
    found = counted(operations)
    # The images are float32, the maps bfloat16, the weights float32.
    assert found["conv", "forward"] == (1152, 128 + 80 + 128)
    assert found["conv", "weight gradient"] == (1152, 128 + 128 + 128 + 40)
    assert found["conv", "update"] == (0, 4 * 80 + 40)
    assert found["logits", "forward"] == (96, 32 + 108 + 24)
    assert found["logits", "input gradient"] == (96, 24 + 108 + 32)
    assert roofline.product_dtypes(operations) == ["bfloat16", "float32"]


def test_nothing_comes_before_the_first_layer_that_is_trained():
    found = counted(roofline.step_operations(small(trainable=False), batch=2))
    backward = {key for key in found if key[1] != "forward"}
    assert backward == {
        ("logits", "weight gradient"),
        ("logits", "update"),
    }


def test_an_optimizer_without_moments_moves_less():
    found = counted(roofline.step_operations(small(), batch=2, moments=0))
    assert found["conv", "update"] == (0, 3 * 80)


# Multiplications of an image in cnn6: 28*28*32*9, 28*28*32*288, 14*14*64*288,
# 14*14*64*576, 3136*2048 and 2048*10.
CNN6 = (225_792, 7_225_344, 3_612_672, 7_225_344, 6_422_528, 20_480)


@pytest.mark.parametrize("dropout", [True, False])
def test_the_products_of_cnn6(dropout):
    model = attach(
        cnn6(preprocessing=layers.Rescaling(1 / 255), dropout=dropout)
    )
    flops = 2 * sum(CNN6)
    forward = roofline.forward_operations(model, batch=1)
    assert sum(o.flops for o in forward) == flops
    step = roofline.step_operations(model, batch=128)
    assert sum(o.flops for o in step) == 128 * (3 * flops - 2 * CNN6[0])
    parts = [(o.layer, o.part) for o in step if o.flops]
    assert len(parts) == 6 + 6 + 5 and len(set(parts)) == 17
    # Every weight is updated: 4 bytes of the gradient, weight and moment twice.
    moved = sum(o.bytes for o in step if o.part == "update")
    assert moved == 20 * model.count_params()


def test_the_products_of_cnn9():
    sizes = [(32, 2, 32), (32, 32, 32), (16, 32, 64), (16, 64, 64)]
    sizes += [(8, 64, 128), (8, 128, 128), (8, 128, 128)]
    expected = 2 * (
        sum(side**2 * 9 * a * b for side, a, b in sizes)
        + 4 * 4 * 128 * 2048
        + 2048 * 5
    )
    model = cnn9((32, 32, 2), 5, filters=32)
    operations = roofline.forward_operations(model, batch=1)
    assert sum(o.flops for o in operations) == expected


def test_the_layer_of_gar_reads_the_logits_twice_and_writes_a_gradient():
    found = roofline.step_operations(attach(cnn6()), batch=128)
    moved = {o.part: o.bytes for o in found if o.layer.startswith("graph")}
    logits = 128 * 10 * 4
    assert moved == {"forward": logits, "input gradient": 2 * logits}


def test_a_layer_without_a_known_floor_is_refused():
    model = keras.Sequential(
        [keras.Input((3,)), layers.BatchNormalization(name="bn")]
    )
    with pytest.raises(ValueError, match="Received: BatchNormalization 'bn'"):
        roofline.step_operations(model, batch=2)


class Opaque(keras.Model):
    def call(self, x):
        return x


@pytest.mark.parametrize("model", [Opaque(), None])
def test_a_model_without_a_graph_is_refused(model):
    with pytest.raises(ValueError, match="Functional or a built Sequential"):
        roofline.forward_operations(model, batch=2)


@pytest.mark.parametrize("batch", [0, 1.5, True])
def test_a_wrong_batch_is_refused(batch):
    with pytest.raises(ValueError, match="batch must be an integer"):
        roofline.forward_operations(small(), batch)


def test_the_floor_takes_each_operation_s_own_limit():
    ceilings = Ceilings({"float32": 1e3, "bfloat16": 1e4}, bytes=100.0)
    operations = [
        Operation("a", "forward", 2000, 100, "float32"),  # 2 s and 1 s
        Operation("b", "forward", 2000, 100, "bfloat16"),  # 0.2 s and 1 s
        Operation("c", "forward", 0, 50, "float16"),  # no product
    ]
    assert roofline.floor_ms(operations, ceilings) == pytest.approx(3500)


@pytest.fixture
def tiny_ceilings(monkeypatch):
    measure = roofline.measure_ceilings
    monkeypatch.setattr(
        roofline,
        "measure_ceilings",
        lambda dtypes: measure(dtypes, sides=[8], mebibytes=[1], repeats=1),
    )


def test_ceilings_are_measured_for_the_dtypes_asked(tiny_ceilings):
    found = roofline.measure_ceilings(["bfloat16", "float32"])
    assert list(found.flops) == ["bfloat16", "float32"]
    rates = [*found.flops.values(), found.bytes]
    assert all(math.isfinite(rate) and rate > 0 for rate in rates)


# What is run.

TINY = Case("regularize", "cnn6", "fit", "float32", 24, stretch=2, pairs=2)


@pytest.fixture
def tiny(monkeypatch):
    """Batches of 8 + 4 images in place of 112 + 16."""
    experiment = replace(
        cases.EXPERIMENTS["cnn6"],
        num_labeled=10,
        labeled_per_batch=4,
        unlabeled_per_batch=8,
        batch_size=6,
    )
    monkeypatch.setitem(cases.EXPERIMENTS, "cnn6", experiment)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"task": "train"}, "task must be one of regularize"),
        ({"network": "vgg"}, "network must be one of cnn6, cnn9"),
        ({"precision": "float16"}, "precision must be one of"),
        ({"images": 60_001}, "from 1 to 60000"),
        ({"stretch": 0}, "stretch must be an integer of at least 1"),
        ({"pairs": 1}, "pairs must be an integer of at least 2"),
    ],
)
def test_wrong_cases_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        replace(TINY, **change)


def test_a_path_that_is_not_here_is_refused():
    # Convolutions in a loop are many times slower on a CPU.
    assert variants.available("regularize") == ["fit"]
    assert variants.available("pretrain") == ["fit"]
    with pytest.raises(ValueError, match="Received: path='compiled'"):
        variants.stretch(replace(TINY, path="compiled"), "compiled")
    with pytest.raises(ValueError, match="Received: path='compiled'"):
        variants.cases(
            ["regularize"], ["cnn6"], ["float32"], path_names=["compiled"]
        )


@pytest.mark.parametrize("task", ["regularize", "pretrain"])
def test_with_jax_on_a_gpu_the_compiled_path_comes_first(task, monkeypatch):
    assert not variants.VARIANTS[task]["compiled"].there()
    monkeypatch.setattr("gar_keras.engine.backend.name", lambda: "jax")
    monkeypatch.setattr("gar_keras.engine.hardware.device_kind", lambda: "gpu")
    assert variants.available(task) == ["compiled", "fit"]


def test_every_case_of_the_paper_s_sizes():
    found = variants.cases(
        cases.TASKS, ["cnn6", "cnn9"], ["float32", "bfloat16"], steps=9
    )
    assert len(found) == len(set(found)) == 3 * 2 * 2
    sizes = {(c.task, c.network): (c.images, c.stretch) for c in found}
    assert sizes["regularize", "cnn6"] == (60_000, 9)
    assert sizes["pretrain", "cnn6"] == (100, 100)
    assert sizes["evaluate", "cnn9"] == (24_300, 1)
    # The paper's epochs: 60,000 / 112 and 24,300 / 96.
    whole = {c.network: Workload(c).sampler for c in found if c.images > 10_000}
    assert whole["cnn6"].steps == 536


def test_an_epoch_of_stage_2_has_the_paper_s_steps():
    cnn6, cnn9 = variants.cases(["regularize"], ["cnn6", "cnn9"], ["float32"])
    for case, steps, images in ((cnn6, 536, 128), (cnn9, 254, 128)):
        work = Workload(case)
        assert work.sampler.steps == steps
        assert work.images_per_unit == images


@pytest.mark.parametrize(
    ("stretch", "at_once", "expected"),
    [
        (1, 1, (1, 1)),
        (60, 67, (1, 67)),
        (68, 67, (1, 134)),
        (535, 1, (1, 535)),
        (536, 67, (1, 536)),
        (537, 67, (2, 536)),
    ],
)
def test_a_stretch_is_part_of_an_epoch_or_whole_ones(
    stretch, at_once, expected
):
    case = replace(TINY, images=60_000, stretch=stretch)
    assert Workload(case).lengths(at_once) == expected


def test_plain_batches_are_mixed_like_those_of_the_paper(tiny):
    work = Workload(TINY)
    batches = variants.MixedBatches(work)
    assert len(batches) == work.sampler.steps == 3
    x = [batches[i] for i in range(3)]
    assert {batch.shape for batch in x} == {(12, 28, 28, 1)}
    assert all(batch.dtype == np.float32 for batch in x)

    def rows(images):
        return sorted(image.tobytes() for image in images)

    ready = work.ready_images
    assert rows(np.concatenate([batch[:8] for batch in x])) == rows(ready)
    guides = {image.tobytes() for batch in x for image in batch[8:]}
    assert guides <= {image.tobytes() for image in ready[:10]}


def test_the_plain_network_is_the_same_function(tiny):
    work = Workload(replace(TINY, images=6))
    np.testing.assert_allclose(
        work.plain_network().predict(work.ready_images, verbose=0),
        work.network().predict(work.images, verbose=0),
        atol=1e-5,
    )


def test_the_batches_of_a_pass_are_counted_as_they_are(tiny):
    case = replace(TINY, task="pretrain", images=10)
    operations, units = Workload(case).operations()
    # 6 and 4 images: the products of 10, the updates of two steps.
    products = 10 * 2 * (3 * sum(CNN6) - CNN6[0])
    assert units == 1
    assert sum(o.flops for o in operations) == products
    assert sum(o.part == "update" for o in operations) == 2 * 6


def test_an_evaluation_is_counted_by_the_thousand(tiny):
    case = replace(TINY, task="evaluate", path="error_rate", images=1000)
    operations, units = Workload(case).operations()
    assert units == 0.5
    assert sum(o.flops for o in operations) == 500 * 2 * sum(CNN6)


@pytest.fixture
def no_processes(monkeypatch):
    asked = []

    def peak(function, *arguments):
        asked.append((function, *arguments))
        return PEAK

    monkeypatch.setattr(memory, "peak", peak)
    return asked


@pytest.mark.slow
def test_a_case_from_end_to_end(
    tiny, tiny_ceilings, no_processes, here, tmp_path
):
    path, complete = store.fill(tmp_path, "benchmark", [TINY], speed.measure)
    assert (
        complete and path.name == "benchmark_amd-epyc-2-cores_tensorflow.json"
    )
    assert no_processes == [
        (variants.run_once, TINY, "plain"), (variants.run_once, TINY, "fit")
    ]  # fmt: skip
    (entry,) = json.loads(path.read_text())["cases"]
    ms = entry["ms"]["median"]
    assert ms > 0 and len(entry["ms"]["all"]) == 2
    # 24 images, 8 to a step.
    assert entry["seconds"] == pytest.approx(100 * 3 * ms / 1000)
    assert entry["images_per_second"] == pytest.approx(12 / ms * 1000)
    assert entry["floor_share"] == pytest.approx(entry["floor_ms"] / ms)
    ratios = zip(entry["reference_ms"]["all"], entry["ms"]["all"], strict=True)
    assert entry["speedup"]["all"] == pytest.approx([a / b for a, b in ratios])
    text = speed.describe(entry)
    assert text.startswith("regularize, cnn6, fit, float32: ")
    assert "100 epochs in" in text and "peak 1,234 MiB" in text
    assert "| fit | float32 |" in benchmarks.speed_markdown([], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "names"),
    [("pretrain", ["plain", "fit"]), ("evaluate", ["plain", "error_rate"])],
)
def test_the_other_tasks_run(task, names, tiny):
    case = replace(TINY, task=task, path=names[1], images=10, stretch=1)
    for name in names:
        seconds = variants.stretch(case, name)()
        assert math.isfinite(seconds) and seconds > 0


# The regularizer's share.

FEW = overhead.Case(batch_size=4, num_images=10, steps=1, pairs=2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch_size": 11}, "batch_size must be an integer from 1 to 10"),
        ({"num_images": 0}, "num_images must be an integer of at least 1"),
        ({"num_classes": 1}, "num_classes must be an integer of at least 2"),
        ({"precision": "int8"}, "precision must be one of"),
        ({"steps": 0}, "steps must be an integer of at least 1"),
        ({"pairs": 1}, "pairs must be an integer of at least 2"),
    ],
)
def test_wrong_cases_of_the_overhead_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        replace(FEW, **change)


@pytest.mark.slow
def test_the_overhead_from_end_to_end(no_processes, here, tmp_path):
    path, complete = store.fill(tmp_path, "overhead", [FEW], overhead.measure)
    assert complete and path.name == NAME
    assert no_processes == [
        (overhead.run_once, FEW, False), (overhead.run_once, FEW, True)
    ]  # fmt: skip
    (entry,) = store.read(path)["cases"]
    assert len(entry["ratio"]["all"]) == 2 and entry["ratio"]["median"] > 0
    assert overhead.describe(entry).startswith("batch 4, n = 10, m = 10, float")
    assert "| 4 | 10 | 10 | float32 |" in benchmarks.overhead_markdown(
        [], tmp_path
    )


@pytest.mark.slow
def test_the_two_networks_differ_in_the_regularizer_alone(monkeypatch):
    monkeypatch.setattr(timing, "fit", lambda model, *a, **k: (model, a, k))
    without, with_gar = (overhead.stretch(FEW, gar) for gar in (False, True))
    assert not is_regularized(without[0]) and is_regularized(with_gar[0])
    weights = with_gar[0].trainable_weights
    for a, b in zip(without[0].trainable_weights, weights, strict=True):
        np.testing.assert_array_equal(a, b)
    assert without[2] == with_gar[2]
    batches = [model[1][0].take(2) for model in (without, with_gar)]
    for a, b in zip(*batches, strict=True):
        np.testing.assert_array_equal(a[0], b[0])
        np.testing.assert_array_equal(a[1], b[1])
        # No batch of another size.
        assert a[0].shape == (4, 28, 28, 1) and a[1].shape == (4,)


def test_more_images_than_mnist_has_are_made(monkeypatch):
    made = []
    monkeypatch.setattr(
        datasets, "load_infimnist", lambda length: made.append(length)
    )
    case = overhead.Case(num_images=600_000, batch_size=512)
    feed = overhead._feed(case)
    assert made == [600_000]
    # An epoch of 60,000 images, in full batches, none of them MNIST's own.
    assert feed.sampler.images_per_epoch == 59_904
    order, _ = feed.sampler.epoch(feed.first_epoch)
    assert order.min() >= 59_904 and order.max() < 600_000
    assert len(feed.labels) == 600_000


# What is shown.


def speed_entry(environment, speedup=2.5, seconds=14.2, **case):
    """An entry of stage 2 of cnn6."""
    c = replace(TINY, **{"images": 60_000, "stretch": 67, **case})
    return {
        "case": asdict(c),
        "environment": environment,
        **timed(100 * speedup, 100),
        "speedup": timing.spread([speedup] * 2),
        "images_per_second": 1280.0,
        "seconds": seconds,
        "reference_seconds": 2 * seconds,
        "ceilings": {"flops": {"float32": 1e12}, "bytes": 1e10},
        "floor_ms": 43.21,
        "floor_share": 0.4321,
        "peak": {"path": PEAK, "reference": PEAK | {"host_mib": 2000.0}},
    }


def write(folder, kind, *entries):
    """Writes the entries of one machine as its record."""
    name = path_of_benchmark(kind, entries[0]["environment"], "").name
    content = {"format": store.FORMAT, "kind": kind, "cases": list(entries)}
    records.write(folder / name, content)


def lines(text, start):
    return [x for x in text.splitlines() if x.startswith(start)]


def test_without_records_nothing_is_claimed(tmp_path):
    text = without_links(benchmarks.speed_markdown([], tmp_path))
    assert lines(text, "| one data-centre GPU: not measured: no such device")
    assert lines(text, "| a CPU: not measured |")
    assert not lines(text, "- ")
    assert "reached" not in text
    assert "6.3 %" in benchmarks.overhead_markdown([], tmp_path)
    rows = [row.count("|") for row in lines(text, "| ") if "aim" not in row]
    # The aims have two columns, the cases as many as their heading.
    assert set(rows) == {3, 1 + len(benchmarks.SPEED_HEADING)}


def test_a_case_is_a_row(tmp_path):
    write(tmp_path, "benchmark", speed_entry(HERE))
    text = without_links(benchmarks.speed_markdown([], tmp_path))
    assert lines(text, "| AMD EPYC (2 cores), tensorflow |") == [
        "| AMD EPYC (2 cores), tensorflow | stage 2, a step | cnn6 | fit | "
        "float32 | 250 (250 to 250) | 100 (100 to 100) | 2.50 (2.50 to 2.50) "
        "| 14.2 (28.4) | 1,280 | 1,234 (2,000) | 43.2 | 43 % |"
    ]
    assert lines(text, "- ") == [
        "- AMD EPYC (2 cores), tensorflow: AMD EPYC, 2 cores; tensorflow "
        "2.21.0, Keras 3.15.0, Python 3.12.0, commit 0123456+changes; medians "
        "of 2 pairs, with quartiles"
    ]
    assert lines(text, "| one data-centre GPU: not measured")
    assert not lines(text, "| a CPU")


def test_a_gpu_is_no_longer_absent_once_it_is_measured(tmp_path):
    write(tmp_path, "benchmark", speed_entry(HERE))
    gpu = speed_entry(GPU, path="compiled")
    gpu["peak"]["path"] = PEAK | {"device_mib": 777.0}
    write(tmp_path, "benchmark", gpu)
    text = without_links(benchmarks.speed_markdown([], tmp_path))
    assert "not measured" not in text
    (row,) = lines(text, "| NVIDIA H100, jax |")
    assert "| 777 (2,000) |" in row
    # GPUs come first.
    devices = lines(text, "| NVIDIA") + lines(text, "| AMD")
    assert [x for x in text.splitlines() if x in devices] == devices
    first, second = lines(text, "- ")
    assert first.startswith("- NVIDIA") and first.endswith("(row 1)")
    assert second.startswith("- AMD") and second.endswith("(row 2)")


@pytest.mark.parametrize(
    ("environment", "change", "expected"),
    [
        (GPU, {"seconds": 14.2}, "| reached: 14.2 s, fit, float32, NVIDIA"),
        (GPU, {"seconds": 15.1}, "| not reached: 15.1 s, fit, float32, NV"),
        (HERE, {"speedup": 2.0}, "| reached: 2.00 (2.00 to 2.00), fit, fl"),
        (HERE, {"speedup": 1.9}, "| not reached: 1.90 (1.90 to 1.90), fit"),
    ],
)
def test_an_aim_is_reached_or_not(environment, change, expected, tmp_path):
    write(tmp_path, "benchmark", speed_entry(environment, **change))
    text = without_links(benchmarks.speed_markdown([], tmp_path))
    assert expected in text


def test_the_best_way_stands_for_the_aim(tmp_path):
    slow = speed_entry(HERE, speedup=1.5)
    fast = speed_entry(HERE, speedup=3.0, precision="bfloat16")
    other = speed_entry(HERE, speedup=9.0, network="cnn9", images=24_300)
    short = speed_entry(HERE, speedup=9.0, images=1000)
    write(tmp_path, "benchmark", slow, fast, other, short)
    text = without_links(benchmarks.speed_markdown([], tmp_path))
    assert "| reached: 3.00 (3.00 to 3.00), fit, bfloat16," in text


def test_an_evaluation_has_no_epochs(tmp_path):
    entry = speed_entry(HERE, task="evaluate", path="error_rate", seconds=0.0)
    entry |= {"seconds": None, "reference_seconds": None}
    write(tmp_path, "benchmark", entry)
    assert "| test error of 1,000 images | cnn6 |" in benchmarks.speed_markdown(
        [], tmp_path
    )
    assert "(2.50 to 2.50) | - | 1,280 |" in benchmarks.speed_markdown(
        [], tmp_path
    )
    assert " 1,000: " not in speed.describe(entry)
    assert speed.describe(entry).endswith("plain 2,000 MiB")


def test_the_overhead_is_a_row(tmp_path):
    entry = {
        "case": asdict(replace(CASE, num_images=600_000)),
        "environment": HERE,
        **timed(100, 100.5),
        "peak": {"without": PEAK, "with": PEAK | {"host_mib": 1300.0}},
    }
    write(tmp_path, "overhead", entry)
    text = without_links(benchmarks.overhead_markdown([], tmp_path))
    assert lines(text, "| AMD EPYC (2 cores), tensorflow |") == [
        "| AMD EPYC (2 cores), tensorflow | 128 | 10 | 600,000 | float32 | "
        "100 | 100 | +0.5 (+0.5 to +0.5) | +0.5 (+0.5 to +0.5) | 1,300 "
        "(1,234) |"
    ]
    assert lines(text, "| one data-centre GPU: not measured")
    assert overhead.describe(entry) == (
        "batch 128, n = 10, m = 600,000, float32: 100 ms a step without, "
        "100.5 ms with GAR; ratio 1.0050 (1.0050 to 1.0050, 2 pairs); peak "
        "1,234 MiB and 1,300 MiB"
    )
