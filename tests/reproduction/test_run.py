"""Runs from data to record: repeatable, resumable, and never run twice."""

import re
import shutil
import signal
import subprocess
from dataclasses import replace
from functools import partial
from unittest import mock

import fresh
import keras
import numpy as np
import pytest
from tiny_runs import (
    TEST,
    TINY,
    Stop,
    Witness,
    assert_same_run,
    network_run,
    numbers,
    run_tiny,
    snapshots,
    state_of,
    tiny_data,
)

from gar_keras.callbacks import WarnOfError, WarnOnCollapse
from gar_keras.datasets import make_split
from gar_keras.utils.warnings import warn
from reproduction import environment, records, run, settings
from reproduction.paths import path_of
from reproduction.run import (
    STAGES,
    build_model,
    lock_of,
    path_of_state,
)
from reproduction.settings import TABLE_1, Experiment

pytestmark = pytest.mark.usefixtures("tiny")
DATA = tiny_data()


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Folder and record of an unbroken run."""
    folder = tmp_path_factory.mktemp("finished")
    return folder, run_tiny(folder)


def assert_nothing_is_left(folder):
    """No state, whole or half, and no half of what the run has written."""
    left = {path.suffix for path in (folder / ".checkpoints").iterdir()}
    assert left <= {".lock"}
    beside = path_of(TINY, 0, folder).parent.iterdir()
    assert {path.suffix for path in beside} == {".json", ".npz"}


# What a record holds.


def test_a_record_tells_how_to_repeat_the_run(finished):
    folder, record = finished
    assert [*records.read_all(folder).values()] == [record]
    assert_nothing_is_left(folder)
    assert Experiment.from_json(record["experiment"]) == TINY
    assert record["experiment"] == TINY.as_json()
    assert (folder / record["path"]).exists()
    assert record["seed"] == 0
    split = make_split(DATA.y_train, 132, 0, 60)
    assert record["labeled"] == split.labeled.tolist()
    assert record["split_fingerprint"] == split.fingerprint()
    assert record["data"] == {
        "title": "Tiny",
        "source": "made for a test",
        "unlabeled": "all training images",
    }
    assert record["environment"] == environment.describe()
    assert record["resumed_in"] == []
    for stage in STAGES:
        spent = [s for s in record[stage]["curve"]["seconds"] if s is not None]
        assert record[stage]["seconds"] == pytest.approx(sum(spent), abs=0.01)


def test_a_record_has_both_curves(finished):
    folder, record = finished
    first = record["pretraining"]["curve"]
    second = record["regularization"]["curve"]
    assert first["epoch"] == [51, 102]
    assert second["epoch"] == [0, 1, 2, 3]
    assert {"loss", "val_error", "test_error"} <= first.keys()
    for name in ("val_error", "test_error"):
        assert second[name][0] == first[name][-1]
    for i in (1, 2, 3):
        terms = 3 * second["affinity"][i] + 1 - second["balance"][i]
        # What is left is the Frobenius term.
        assert 0 < second["loss"][i] - terms < 0.01
    assert second["loss"][0] is None
    # Guessing among three classes is wrong two times in three.
    assert second["test_error"][0] < 0.4


def test_the_snapshots_are_of_the_epochs_they_name(finished):
    folder, record = finished
    content = snapshots(folder)
    assert content["owner"].tolist() == [TINY.fingerprint(), "0"]
    arrays = records.read_arrays(path_of(TINY, 0, folder), record)
    assert record["snapshot_epochs"] == [*arrays.predicted] == [0, 1, 3]
    assert [*arrays.indices] == [*range(TEST)]
    np.testing.assert_array_equal(arrays.labels, DATA.y_test)
    # All of so few images.
    assert sorted(arrays.logit_indices) == [*range(TEST)]
    curve = record["regularization"]["curve"]["test_error"]
    for epoch in (0, 1, 3):
        predicted = arrays.predicted[epoch]
        assert np.mean(predicted != DATA.y_test) == pytest.approx(curve[epoch])
        of_logits = arrays.logits[epoch].argmax(axis=1)
        np.testing.assert_array_equal(
            of_logits, predicted[arrays.logit_indices]
        )
    balanced = record["balanced_errors"]
    assert balanced == records.balanced_errors_of(arrays)
    assert record["lost_classes"] == []


# What decides the numbers.

OF_GAR = {
    "affinity": 4.0, "balance": 2.0, "frobenius": 0.5, "frobenius_of": "Z",
    "balance_of": "column sums",
}  # fmt: skip
OF_STEPS = {
    "stage_2_rate": 0.0625, "warmup_steps": 5, "global_clipnorm": 0.5
}  # fmt: skip
OTHER = replace(TINY, images_per_epoch=99, **OF_STEPS).with_term(**OF_GAR)


def test_each_stage_gets_its_settings(monkeypatch):
    calls = []

    def stage(*args, **kwargs):
        calls.append((args, kwargs))
        raise Stop

    monkeypatch.setattr(run, "pretrain", stage)
    monkeypatch.setattr(run, "regularize", stage)
    job = network_run(OTHER, 7)
    job.rows("regularization").append({"epoch": 0, "val_error": 0.5})
    for function in (job.pretrain, job.regularize):
        with pytest.raises(Stop):
            function()
    ((model, x, y), first), ((_, _, x_unlabeled), second) = calls
    method = second["method"]
    labeled = job.task.split.labeled
    assert model is job.model
    np.testing.assert_array_equal(x, DATA.x_train[labeled])
    np.testing.assert_array_equal(y, DATA.y_train[labeled])
    np.testing.assert_array_equal(x_unlabeled, DATA.x_train)
    assert first["epochs"] == 102
    numbers = ("epochs", "labeled_per_batch", "unlabeled_per_batch")
    assert [second[name] for name in numbers] == [3, 6, 3]
    assert second["images_per_epoch"] == 99
    assert OF_GAR.items() <= method[0].layer.get_config().items()
    (watch,) = (c for c in second["callbacks"] if isinstance(c, WarnOnCollapse))
    assert watch.batch_size == 9
    (errors,) = (c for c in second["callbacks"] if isinstance(c, WarnOfError))
    assert errors.start == 0.5
    for options, steps in (
        (first, (0.01, 0, None)),
        (second, (0.0625, 5, 0.5)),
    ):
        assert options["seed"] == 7
        optimizer = options["optimizer"]
        rate = pytest.approx(float(optimizer.learning_rate))
        found = rate, optimizer.warmup_steps, optimizer.global_clipnorm
        assert steps == found
        assert (optimizer.decay, optimizer.momentum) == (1e-6, 0.95)


def test_a_run_that_is_finished_is_not_run_again(
    finished, tmp_path, monkeypatch
):
    shutil.copytree(finished[0], tmp_path, dirs_exist_ok=True)
    # Left by a process that was killed behind the record.
    state_of(tmp_path).write_bytes(b"a state")
    monkeypatch.delattr(run, "NetworkRun")
    assert run_tiny(tmp_path) == finished[1]
    assert not state_of(tmp_path).exists()


# Broken off and taken up again.


# Killed while it writes the state of an epoch: half of it is there.
HANG = """
import sys, time
import tiny_runs
from reproduction import run

def half_a_state(file, **arrays):
    file.write(b"PK half of a state")
    file.flush()
    print("reached", flush=True)
    time.sleep(600)

run.np.savez = half_a_state
tiny_runs.run_tiny(sys.argv[1])
"""


@pytest.mark.slow
def test_a_run_broken_again_and_again_ends_as_an_unbroken_one(
    finished, tmp_path, monkeypatch
):
    goes_on = "goes on after epoch {} of {}".format

    def stopped_at(*event):
        reporter = Witness(event)
        with pytest.raises(Stop):
            run_tiny(tmp_path, reporter)
        assert not records.read_all(tmp_path)
        return reporter.lines

    assert stopped_at("step", "pretraining", 0) == []
    assert stopped_at("step", "pretraining", 1) == []
    lines = stopped_at("epoch", "pretraining", 102)
    assert lines == [goes_on(51, "pretraining")]
    lines = stopped_at("step", "regularization", 1)
    assert lines == [goes_on(102, "pretraining")]
    process = fresh.start("-c", HANG, tmp_path)
    assert process.stdout.readline() == "reached\n"
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    # Ended when all was done but the record.
    lines = stopped_at("epoch", "regularization", 3)
    assert lines == [goes_on(1, "regularization")]
    here = environment.describe()
    there = {**here, "device": "another one"}
    monkeypatch.setattr(environment, "describe", lambda: there)
    record = run_tiny(tmp_path)
    assert_same_run(tmp_path, record, finished)
    # Each machine is named, once.
    assert record["environment"] == here
    assert record["resumed_in"] == [there]
    assert_nothing_is_left(tmp_path)


@pytest.mark.slow
def test_what_is_said_at_the_end_is_kept(tmp_path, monkeypatch):
    def speak(self, logs=None):
        warn("At the end.")

    monkeypatch.setattr(run.WarnOfError, "on_train_end", speak)
    # Ended between the last epoch and the end, and between that and the record.
    with pytest.raises(Stop):
        run_tiny(tmp_path, Witness(("epoch", "regularization", 3)))
    with monkeypatch.context() as patch:
        patch.setattr(records, "write", mock.Mock(side_effect=OSError))
        with pytest.raises(OSError):
            run_tiny(tmp_path)
    assert run_tiny(tmp_path)["warnings"] == ["At the end."]


def test_a_run_of_another_process_is_skipped(tmp_path):
    with lock_of(path_of_state(TINY, 0, tmp_path)):
        assert run_tiny(tmp_path) is None
    assert not state_of(tmp_path).exists()


@pytest.mark.slow
def test_a_state_of_other_data_is_told_and_left(tmp_path):
    with pytest.raises(Stop):
        run_tiny(tmp_path, Witness(("epoch", "regularization", 1)))
    state, reporter = state_of(tmp_path), Witness()
    job = network_run(TINY, 0, state, reporter=reporter)
    job.task.described["split_fingerprint"] = "of another split"
    before = job.model.get_weights()
    job.load()
    (line,) = reporter.lines
    assert line.startswith(f"starts afresh: {state} is of another run")
    assert job.rows("pretraining") == []
    np.testing.assert_equal(job.model.get_weights(), before)


# States that runs have in common.


@pytest.mark.slow
def test_runs_share_the_end_of_stage_1(tmp_path, monkeypatch):
    short = replace(TINY, epochs=1)
    # As the paper's own runs, which have no stage 1 other than themselves.
    monkeypatch.setattr(settings, "_MNIST", short)
    assert short.stage_1() == short
    # Of a process that was killed while it wrote.
    shared = run.path_of_stage_1(short, 0, tmp_path)
    shared.parent.mkdir(parents=True)
    leftover = shared.with_name(f".{shared.name}.abcd")
    leftover.touch()
    first = run.run(short, 0, tmp_path, share_stage_1=True)
    assert shared.exists() and not leftover.exists()
    reporter = Witness()
    other = short.with_term(affinity=2.0)
    record = run.run(
        other, 0, tmp_path / ".", share_stage_1=True, reporter=reporter
    )
    assert reporter.lines[0] == "takes stage 1 from an earlier run"
    alone = run.run(other, 0, tmp_path / "alone")
    # It says where its stage 1 was made.
    made_in = record["pretraining"].pop("environment")
    assert made_in == first["environment"]
    assert numbers(record) == numbers(alone)


def test_a_damaged_state_is_named_and_left(tmp_path):
    state = state_of(tmp_path)
    state.parent.mkdir(parents=True)
    state.write_bytes(b"PK\x03\x04 half of it")
    with pytest.raises(records.RecordError) as error:
        run_tiny(tmp_path)
    assert str(error.value).startswith(f"{state} is not a whole")
    assert state.read_bytes() == b"PK\x03\x04 half of it"


def test_a_full_disk_names_the_file_and_the_run_goes_on_after_it(
    finished, tmp_path, monkeypatch
):
    def full(file, **arrays):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(run.np, "savez", full)
        with pytest.raises(OSError, match="No space left.* Make room") as error:
            run_tiny(tmp_path)
    assert error.value.filename == str(state_of(tmp_path))
    assert_same_run(tmp_path, run_tiny(tmp_path), finished)


def test_what_cannot_be_run_is_refused_at_once(tmp_path):
    with pytest.raises(ValueError, match="num_labeled=132"):
        run.run(replace(TINY, labeled_per_batch=133), 0, tmp_path)
    assert not [*tmp_path.rglob("*.npz")]


ROW = np.array([0, 51, 204, 255], "uint8")


@pytest.mark.parametrize(
    ("preprocessing", "expected"),
    [
        ("rescale", [0.0, 0.2, 0.8, 1.0]),
        ("standardize", (ROW - ROW.mean()) / ROW.std()),
    ],
)
def test_images_are_preprocessed_in_the_network(preprocessing, expected):
    experiment = replace(TABLE_1[100], preprocessing=preprocessing)
    layer = build_model(experiment, (4, 4, 1), 10).layers[1]
    x = np.tile(ROW, 4).reshape(1, 4, 4, 1)
    got = keras.ops.convert_to_numpy(layer(x))[0, 0, :, 0]
    np.testing.assert_allclose(got, expected, rtol=1e-6)


def git(folder, *words):
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *words],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip


@pytest.mark.slow
def test_the_revision_is_of_the_package_and_of_the_scripts(tmp_path):
    revision = partial(environment.git_revision, tmp_path)
    package = tmp_path / "gar_keras" / "layers.py"
    script = tmp_path / "scripts" / "reproduction" / "run.py"
    for path in (package, script, tmp_path / "README.md"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    assert revision(package.parent) is None
    git(tmp_path, "init")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--message", "first")
    commit = revision(package.parent)
    assert re.fullmatch("[0-9a-f]{40}", commit)
    (tmp_path / "README.md").write_text("changed")
    assert revision(package.parent) == commit
    for path in (package, script):
        path.write_text("changed")
        assert revision(package.parent) == f"{commit}+changes"
        path.write_text("")
    # Installed from elsewhere, it is of no commit of this clone.
    assert revision(tmp_path / "other") is None


def test_all_runs_of_a_program_are_of_one_revision(monkeypatch):
    first = environment.describe()["git_revision"]
    monkeypatch.setattr(environment, "git_revision", lambda: "edited since")
    assert environment.describe()["git_revision"] == first


@pytest.mark.parametrize(
    ("kind", "flags", "expected"),
    [
        ("cpu", ("avx2",), "Some EPYC without AVX512"),
        ("cpu", ("avx2", "avx512f"), "Some EPYC"),
        ("cpu", (), "Some EPYC"),
        ("gpu", ("avx2",), "Some EPYC"),
    ],
)
def test_a_record_tells_a_processor_without_avx512(
    kind, flags, expected, monkeypatch
):
    hardware = environment.hardware
    described = {"model": "Some EPYC", "flags": flags}
    monkeypatch.setattr(hardware, "processor", lambda: described)
    monkeypatch.setattr(hardware, "device_kind", lambda: kind)
    monkeypatch.setattr(hardware, "device_name", lambda: "Some EPYC")
    assert environment.describe()["device"] == expected
