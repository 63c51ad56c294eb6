"""Runs from data to record: repeatable, resumable, and never run twice.

The runs are those of `tiny_runs`. Where a process of its own is needed, it
imports that module and calls `run_tiny`.
"""

import importlib.metadata
import importlib.util
import io
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from types import SimpleNamespace

import fresh
import keras
import numpy as np
import pytest
import tiny_runs
from rich.console import Console
from rich.text import Text
from tiny_runs import (
    BACKEND,
    TEST,
    TINY,
    TRAIN,
    Stop,
    Witness,
    assert_same_run,
    run_tiny,
    snapshots,
    state_of,
    tiny_data,
)

import gar_keras
from gar_keras import callbacks, datasets
from gar_keras.callbacks import error_rate
from gar_keras.experiments import (
    command,
    environment,
    recorder,
    records,
    runner,
    setup,
    stage_1,
    stage_2,
)
from gar_keras.experiments.options import RunnerOptions
from gar_keras.experiments.placement import path_of
from gar_keras.experiments.settings import TABLE_1, Experiment
from gar_keras.experiments.state import MUST_AGREE, STAGES
from gar_keras.experiments.sweep import sweep
from gar_keras.methods.gar import GAR
from gar_keras.utils import cli
from gar_keras.utils.progress import Reporter

build_real = setup.build_model


@pytest.fixture(scope="module", autouse=True)
def tiny():
    """Puts the data set and the network where the runner finds them."""
    with pytest.MonkeyPatch.context() as patch:
        tiny_runs.install(patch)
        yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Folder and record of an unbroken run."""
    folder = tmp_path_factory.mktemp("finished")
    return folder, run_tiny(folder, save_models=True)


def saved_model(folder):
    path = path_of(TINY, 0, folder).with_suffix(".keras")
    return keras.saving.load_model(path)


# What a record holds.


def test_the_record_is_the_file(finished):
    folder, record = finished
    assert records.read(path_of(TINY, 0, folder)) == record
    assert records.read_all(folder) == [record]


def test_a_record_tells_how_to_repeat_the_run(finished):
    _, record = finished
    assert record["experiment"] == asdict(TINY)
    assert Experiment(**record["experiment"]) == TINY
    assert record["seed"] == 0
    assert record["cell"] == "tiny-12"
    assert record["fingerprint"] == TINY.fingerprint()
    split = datasets.make_split(tiny_data().y_train, 12, 0, 60)
    assert record["labeled"] == split.labeled.tolist()
    assert record["split_fingerprint"] == split.fingerprint()
    assert record["data"] == {
        "title": "Tiny",
        "source": "made for a test",
        "unlabeled": "all training images",
    }


def test_a_record_tells_what_it_ran_on(finished):
    environment = finished[1]["environment"]
    assert environment["backend"] == BACKEND
    assert environment["keras"] == keras.__version__
    assert environment["numpy"] == np.__version__
    assert environment["python"] == sys.version.split()[0]
    assert environment["device_kind"] in ("cpu", "gpu")
    assert environment["cores"] == os.cpu_count()
    assert environment["threads"] >= 1
    for name in ("gar_keras", "backend_version", "device", "system"):
        assert environment[name]
    # None outside of a repository.
    assert len(environment["git_revision"] or 40 * "0") >= 40
    assert finished[1]["resumed_in"] == []


def test_a_copy_that_is_not_installed_can_run(monkeypatch):
    def version(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    assert environment.describe()["gar_keras"] == gar_keras.__version__


def test_a_record_has_the_time_of_each_part(finished):
    _, record = finished
    for stage in STAGES:
        spent = record[stage]["curve"]["seconds"]
        spent = sum(s for s in spent if s is not None)
        assert record[stage]["seconds"] == pytest.approx(spent, abs=0.01)
        assert record[stage]["seconds"] > 0
    assert record["evaluation_seconds"] > 0


def test_a_record_has_both_curves(finished):
    _, record = finished
    stage_1 = record["pretraining"]["curve"]
    assert stage_1["epoch"] == [51, 102]
    assert {"loss", "val_error", "test_error"} <= stage_1.keys()
    stage_2 = record["regularization"]["curve"]
    assert stage_2["epoch"] == [0, 1, 2, 3]
    for name in ("loss", "affinity", "balance", "regularization"):
        assert stage_2[name][0] is None
        assert all(isinstance(v, float) for v in stage_2[name][1:])
    for curve in (stage_1, stage_2):
        assert len({len(values) for values in curve.values()}) == 1
    for name in ("val_error", "test_error"):
        assert stage_2[name][0] == stage_1[name][-1]


def test_the_terms_make_up_the_loss(finished):
    curve = finished[1]["regularization"]["curve"]
    for i in (1, 2, 3):
        terms = 3 * curve["affinity"][i] + 1 - curve["balance"][i]
        # What is left is the Frobenius term.
        assert 0 < curve["loss"][i] - terms < 0.01
        assert curve["loss"][i] == pytest.approx(curve["regularization"][i])


def test_the_results_are_those_of_the_curve(finished):
    _, record = finished
    curve, result = record["regularization"]["curve"], record["result"]
    assert result["baseline_error"] == curve["test_error"][0]
    assert result["last_error"] == curve["test_error"][-1]
    assert result["last_epoch"] == 3
    assert result["chosen_error"] == curve["test_error"][result["chosen_epoch"]]
    assert all(
        error * images == pytest.approx(round(error * images))
        for name, images in (("val_error", 60), ("test_error", TEST))
        for error in curve[name]
    )


def test_the_network_learns(finished):
    # Guessing among three classes is wrong two times in three.
    assert finished[1]["result"]["baseline_error"] < 0.4


def test_the_settings_of_gar_are_those_of_the_experiment(finished):
    assert finished[1]["method_settings"] == {}


def new_run(folder, reporter=None):
    checkpoint = runner.Checkpoint(folder / "state.npz", "", 0)
    return runner._Run(TINY, 0, checkpoint, None, reporter)


@pytest.mark.parametrize(
    ("val_error", "chosen"),
    [
        # Epoch 0 is not an epoch of stage 2; of equals, the first counts.
        ([0.01, 0.3, 0.2, 0.2, 0.4], 2),
        ([0.5, 0.3, 0.3, 0.3, 0.3], 1),
        ([0.5, 0.4, 0.3, 0.2, 0.1], 4),
    ],
)
def test_the_first_best_epoch_is_chosen(val_error, chosen, tmp_path):
    job = new_run(tmp_path)
    job.state.progress["regularization"]["curve"] = {
        "epoch": [0, 1, 2, 3, 4],
        "val_error": val_error,
        "test_error": [0.9, 0.8, 0.7, 0.6, 0.5],
    }
    assert job.record()["result"] == {
        "baseline_error": 0.9,
        "chosen_epoch": chosen,
        "chosen_error": [0.9, 0.8, 0.7, 0.6, 0.5][chosen],
        "last_epoch": 4,
        "last_error": 0.5,
    }


def test_the_saved_model_is_the_chosen_one(finished):
    folder, record = finished
    path = path_of(TINY, 0, folder).with_suffix(".keras")
    model = keras.saving.load_model(path)
    data = tiny_data()
    error = error_rate(model, data.x_test, data.y_test)
    assert error == record["result"]["chosen_error"]


def test_the_kept_weights_are_those_of_the_first_best_epoch(tmp_path):
    job = new_run(tmp_path)
    state, model = job.state, job.setup.model
    seen = []
    for val_error in (0.3, 0.2, 0.2, 0.1, 0.4):
        seen.append(val_error)
        state.progress["regularization"]["curve"] = {
            "epoch": [*range(len(seen) + 1)], "val_error": [0.0, *seen]
        }  # fmt: skip
        model.layers[-1].bias.assign([len(seen), 0.0, 0.0])
        state.keep_chosen(model)
        kept = state.best_weights[-1][0]
        assert kept == seen.index(min(seen)) + 1


def test_the_snapshots_are_of_the_epochs_they_name(finished):
    folder, record = finished
    data, result = tiny_data(), record["result"]
    content = snapshots(folder)
    assert content.keys() == {
        "indices", "labels", "epoch_0", "epoch_1", "epoch_3",
        "chosen_probabilities", "test_labels",
    }  # fmt: skip
    assert record["snapshot_epochs"] == [0, 1, 3]
    assert sorted(content["indices"]) == [*range(TEST)]
    np.testing.assert_array_equal(
        content["labels"], data.y_test[content["indices"]]
    )
    curve = record["regularization"]["curve"]["test_error"]
    for epoch in (0, 1, 3):
        logits = content[f"epoch_{epoch}"]
        assert logits.shape == (TEST, 3) and logits.dtype == np.float32
        error = np.mean(logits.argmax(1) != content["labels"])
        assert error == pytest.approx(curve[epoch])
    assert curve[-1] == result["last_error"]


def test_a_finished_run_leaves_no_state(finished):
    folder, _ = finished
    left = {path.suffix for path in (folder / ".checkpoints").iterdir()}
    assert left <= {".lock"}
    beside = path_of(TINY, 0, folder).parent.iterdir()
    assert {path.suffix for path in beside} == {".json", ".npz", ".keras"}


# What decides the numbers.


def test_a_finished_run_is_not_run_again(finished, monkeypatch):
    folder, record = finished
    monkeypatch.delattr(runner, "_Run")
    assert run_tiny(folder) == record


@pytest.mark.slow
def test_a_damaged_state_starts_the_run_afresh(finished, tmp_path):
    # And so this is the same seed run a second time, too.
    state = state_of(tmp_path)
    state.parent.mkdir()
    state.write_bytes(b"PK\x03\x04 half of a state")
    litter = state.with_name(f".{state.name}.abcd1234")
    litter.write_bytes(b"killed while it wrote")
    reporter = Witness()
    record = run_tiny(tmp_path, reporter)
    assert_same_run(tmp_path, record, finished)
    assert reporter.lines == ["the saved state is damaged; starts afresh"]
    assert not litter.exists() and not state.exists()


@pytest.mark.slow
def test_another_seed_gives_another_run(finished, tmp_path):
    with pytest.raises(Stop):
        run_tiny(tmp_path, Witness(("epoch", "pretraining", 51)), seed=1)
    progress, _ = runner.Checkpoint.of_run(TINY, 1, tmp_path).load()
    _, record = finished
    assert progress["split_fingerprint"] != record["split_fingerprint"]
    loss = progress["pretraining"]["curve"]["loss"][0]
    assert loss != record["pretraining"]["curve"]["loss"][0]


def arguments_of(function, monkeypatch, experiment, seed, folder):
    """What a run calls one of the two stages with."""
    calls = []

    def stage(*args, **kwargs):
        calls.append((args, kwargs))
        raise Stop

    monkeypatch.setattr(stage_1, "pretrain", stage)
    monkeypatch.setattr(GAR, "train", stage)
    checkpoint = runner.Checkpoint(folder / "state.npz", "", 0)
    job = runner._Run(experiment, seed, checkpoint, None, None)
    job.state.progress["regularization"]["curve"] = {
        "epoch": [0], "val_error": [0.5]
    }  # fmt: skip
    with pytest.raises(Stop):
        if function == "pretrain":
            stage_1.run(job.setup, job.state, math.inf)
        else:
            stage_2.run(job.setup, job.state, math.inf)
    ((args, kwargs),) = calls
    return job.setup, args, kwargs


def assert_settings_of_optimizer(optimizer, experiment, first):
    assert float(optimizer.learning_rate) == first
    assert optimizer.decay == experiment.decay
    assert optimizer.momentum == experiment.momentum
    assert optimizer.nesterov


OTHER = replace(
    TINY,
    learning_rate=0.5,
    momentum=0.25,
    decay=0.125,
    affinity=4.0,
    balance=2.0,
    frobenius=0.5,
    frobenius_of="Z",
    balance_of="column sums",
    images_per_epoch=99,
)


def test_stage_1_gets_its_settings_and_the_seed(tmp_path, monkeypatch):
    setup, (model, x, y), options = arguments_of(
        "pretrain", monkeypatch, OTHER, 7, tmp_path
    )
    data = tiny_data()
    assert model is setup.model
    np.testing.assert_array_equal(x, data.x_train[setup.split.labeled])
    np.testing.assert_array_equal(y, data.y_train[setup.split.labeled])
    assert options["seed"] == 7
    assert (options["epochs"], options["batch_size"]) == (102, 5)
    assert_settings_of_optimizer(options["optimizer"], OTHER, 0.5)


def test_stage_2_gets_its_settings_and_the_seed(tmp_path, monkeypatch):
    setup, (method, model, x, _, x_unlabeled), options = arguments_of(
        "regularize", monkeypatch, OTHER, 7, tmp_path
    )
    data = tiny_data()
    assert model is setup.model
    np.testing.assert_array_equal(x, data.x_train[setup.split.labeled])
    np.testing.assert_array_equal(x_unlabeled, data.x_train)
    assert options["seed"] == 7
    assert options["epochs"] == 3
    assert options["labeled_per_batch"] == 6
    assert options["unlabeled_per_batch"] == 3
    assert options["images_per_epoch"] == 99
    config = method.layer.get_config()
    assert {name: config[name] for name in ("affinity", "balance")} == {
        "affinity": 4.0, "balance": 2.0
    }  # fmt: skip
    assert (config["frobenius"], config["frobenius_of"]) == (0.5, "Z")
    assert config["balance_of"] == "column sums"
    assert_settings_of_optimizer(options["optimizer"], OTHER, 0.5)


@pytest.mark.parametrize(("stage", "first"), [(1, 0.5), (2, 0.0625)])
def test_stage_2_may_have_a_rate_of_its_own(
    stage, first, tmp_path, monkeypatch
):
    experiment = replace(OTHER, stage_2_rate=0.0625)
    function = ("pretrain", "regularize")[stage - 1]
    *_, options = arguments_of(function, monkeypatch, experiment, 7, tmp_path)
    assert_settings_of_optimizer(options["optimizer"], experiment, first)


@pytest.mark.parametrize("rate", [0, -1, math.nan, math.inf, "0.1"])
def test_a_wrong_rate_of_stage_2_is_refused(rate):
    with pytest.raises(ValueError, match="stage_2_rate must be"):
        replace(TINY, stage_2_rate=rate)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("event", "goes_on"),
    [
        (("step", "pretraining", 0), None),
        (("step", "pretraining", 1), "after epoch 51 of pretraining"),
        (("epoch", "pretraining", 102), "after epoch 102 of pretraining"),
        (("step", "regularization", 2), "after epoch 2 of regularization"),
    ],
)
def test_a_resumed_run_ends_as_an_unbroken_one(
    event, goes_on, finished, tmp_path
):
    with pytest.raises(Stop):
        run_tiny(tmp_path, Witness(event))
    assert records.read_all(tmp_path) == []
    reporter = Witness()
    record = run_tiny(tmp_path, reporter)
    assert_same_run(tmp_path, record, finished)
    assert reporter.lines == ([f"goes on {goes_on}"] if goes_on else [])
    assert record["resumed_in"] == []


@pytest.mark.slow
def test_a_record_names_every_machine_it_ran_on(
    finished, tmp_path, monkeypatch
):
    # Ended when all was done but the record.
    with pytest.raises(Stop):
        run_tiny(tmp_path, Witness(("epoch", "regularization", 3)))
    here = runner.environment.describe()
    there = {**here, "device": "another one"}
    monkeypatch.setattr(runner.environment, "describe", lambda: there)
    record = run_tiny(tmp_path, save_models=True)
    assert_same_run(tmp_path, record, finished)
    assert record["environment"] == here
    assert record["resumed_in"] == [there]
    # The best weights are part of the state.
    ours, theirs = map(saved_model, (tmp_path, finished[0]))
    assert ours.compiled == theirs.compiled
    ours, theirs = ours.get_weights(), theirs.get_weights()
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
@pytest.mark.parametrize(
    "other", [replace(TINY, affinity=2.0), replace(TINY, epochs=1)]
)
def test_the_state_of_another_experiment_is_refused(other, tmp_path):
    with pytest.raises(Stop):
        runner.run(
            other, 0, tmp_path, reporter=Witness(("epoch", "pretraining", 51))
        )
    state_of(tmp_path, other).rename(state_of(tmp_path))
    with pytest.raises(records.RecordError, match="another run") as error:
        run_tiny(tmp_path)
    assert str(state_of(tmp_path)) in str(error.value)
    assert "\n" not in str(error.value)
    assert not records.read_all(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("change", [{"pretrain_epochs": 51}, {"restart": 1}])
def test_stage_1_of_another_experiment_is_refused(change, tmp_path):
    other = replace(TINY, epochs=1, **change)
    runner.run(other, 0, tmp_path, RunnerOptions(share_stage_1=True))
    mine = runner.stage_1_file(TINY, 0, tmp_path)
    runner.stage_1_file(other, 0, tmp_path).rename(mine)
    with pytest.raises(records.RecordError, match="another run") as error:
        run_tiny(tmp_path, share_stage_1=True)
    assert str(mine) in str(error.value)


@pytest.mark.slow
def test_a_damaged_stage_1_is_made_anew(tmp_path):
    short = replace(TINY, epochs=1)
    path = runner.stage_1_file(short, 0, tmp_path)
    path.parent.mkdir()
    path.write_bytes(b"PK\x03\x04 half of it")
    runner.run(short, 0, tmp_path, RunnerOptions(share_stage_1=True))
    witness = Witness()
    run_tiny(tmp_path, witness, share_stage_1=True)
    assert witness.lines[0] == "takes stage 1 from an earlier run"


def alter(state, text=None, shape=None):
    """Writes other content into a state, of another version's form."""
    with np.load(state) as archive:
        arrays = dict(archive)
    if shape is not None:
        arrays["model/0"] = np.zeros(shape, "float32")
    if text is not None:
        content = json.loads(str(arrays["state"]))
        arrays["state"] = np.array(text(content))
    np.savez(state, **arrays)


def changed_progress(**changes):
    def text(content):
        return json.dumps(
            {**content, "progress": {**content["progress"], **changes}}
        )

    return text


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """Folder of a run that ended in the middle of stage 1, to be copied."""
    folder = tmp_path_factory.mktemp("stopped")
    with pytest.raises(Stop):
        run_tiny(folder, Witness(("epoch", "pretraining", 51)))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        {"shape": (3, 4)},
        {"text": lambda content: "[]"},
        {"text": lambda content: '"text"'},
        {"text": lambda content: "{}"},
        {"text": lambda content: "no JSON"},
        {"text": lambda content: json.dumps({**content, "progress": None})},
        {"text": changed_progress(pretraining=None)},
        {"text": changed_progress(pretraining={"curve": {"loss": [1.0]}})},
        {"text": changed_progress(regularization="none")},
        {"text": changed_progress(environment=None, resumed_in=None)},
        {"text": changed_progress(snapshot_epochs=[0, 1])},
    ],
)
def test_a_state_of_another_form_is_refused(change, stopped, tmp_path):
    shutil.copytree(stopped, tmp_path, dirs_exist_ok=True)
    state = state_of(tmp_path)
    alter(state, **change)
    with pytest.raises(records.RecordError, match="start afresh") as error:
        run_tiny(tmp_path)
    assert str(state) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_state_that_is_a_folder_is_refused(tmp_path):
    state_of(tmp_path).mkdir(parents=True)
    with pytest.raises(records.RecordError, match="cannot be read") as error:
        run_tiny(tmp_path)
    assert str(state_of(tmp_path)) in str(error.value)


@pytest.fixture(scope="module")
def killed(finished, tmp_path_factory):
    """A folder whose process was killed after it wrote the record."""
    folder = tmp_path_factory.mktemp("killed")
    with pytest.raises(Stop):
        run_tiny(folder, Witness(("epoch", "regularization", 3)))
    path = path_of(TINY, 0, folder)
    path.parent.mkdir(parents=True)
    shutil.copy(path_of(TINY, 0, finished[0]), path)
    return folder


@pytest.fixture
def left_over(killed, tmp_path):
    """A copy of `killed`."""
    return shutil.copytree(killed, tmp_path, dirs_exist_ok=True)


@pytest.mark.slow
def test_the_state_of_a_finished_run_is_removed(left_over):
    _, complete = quiet_sweep(left_over)
    assert complete
    assert not [*(left_over / ".checkpoints").glob("*.npz")]


@pytest.mark.slow
def test_the_state_of_a_finished_run_is_kept_as_its_end(left_over):
    _, complete = quiet_sweep(left_over, keep_state=True)
    assert complete
    assert not state_of(left_over).exists()
    witness = Witness()
    longer = replace(TINY, epochs=4)
    kept = RunnerOptions(keep_state=True)
    runner.run(longer, 0, left_over, kept, reporter=witness)
    assert witness.lines[0] == "goes on after epoch 3 of regularization"


@pytest.mark.slow
def test_an_earlier_state_is_not_kept_as_the_end(finished, tmp_path):
    with pytest.raises(Stop):
        run_tiny(tmp_path, Witness(("epoch", "regularization", 2)))
    path = path_of(TINY, 0, tmp_path)
    path.parent.mkdir(parents=True)
    shutil.copy(path_of(TINY, 0, finished[0]), path)
    quiet_sweep(tmp_path, keep_state=True)
    assert not [*(tmp_path / ".checkpoints").glob("*.npz")]


@pytest.mark.slow
def test_the_state_of_a_process_at_work_stays(left_over):
    with runner.Checkpoint.of_run(TINY, 0, left_over).lock():
        quiet_sweep(left_over)
    assert state_of(left_over).exists()


@pytest.mark.parametrize(("name", "what"), MUST_AGREE.items())
def test_a_state_of_another_run_is_not_taken_up(name, what, tmp_path):
    earlier = new_run(tmp_path).state
    earlier.progress[name] = {
        "split_fingerprint": "other",
        "data": {**earlier.progress["data"], "title": "other"},
        "method_settings": {"weight": 2.0},
    }[name]
    earlier.progress["pretraining"]["curve"] = {"epoch": [51]}
    earlier.checkpoint.save(
        earlier.progress, model=earlier.model.variables, optimizer=[]
    )
    reporter = Witness()
    state = new_run(tmp_path, reporter).state
    state.restore()
    assert state.progress["pretraining"]["curve"] == {}
    (line,) = reporter.lines
    assert line == f"the saved state is of other {what}; starts afresh"


# Processes.


def start(code, *arguments):
    """A Python process that can import `tiny_runs`."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        env=fresh.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


RUN_SLOWLY = """
import sys, time
import tiny_runs

class Slow(tiny_runs.Witness):
    def step(self, stage, done, total, logs, steps=1):
        if stage == "regularization" and done > 1:
            time.sleep(60)

    def epoch(self, stage, row, total):
        if (stage, row["epoch"]) == ("regularization", 1):
            print("reached", flush=True)

tiny_runs.run_tiny(sys.argv[1], Slow())
"""

# First the run that was killed goes on, then the same run is made unbroken.
RUN_BOTH = """
import sys
import tiny_runs

for folder in sys.argv[1:]:
    assert tiny_runs.run_tiny(folder) is not None
"""


@pytest.mark.slow
def test_a_run_killed_with_sigkill_ends_as_an_unbroken_one(tmp_path):
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    process = start(RUN_SLOWLY, killed)
    assert process.stdout.readline() == "reached\n"
    process.kill()
    assert process.wait() == -signal.SIGKILL
    process.communicate()
    assert records.read_all(killed) == []
    assert state_of(killed).exists()
    process = start(RUN_BOTH, killed, whole)
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    (resumed,), (unbroken,) = map(records.read_all, (killed, whole))
    assert_same_run(killed, resumed, (whole, unbroken))


HOLD = """
import sys, time
import filelock

with filelock.FileLock(sys.argv[1]):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.mark.slow
def test_a_run_of_another_process_is_skipped_until_that_dies(tmp_path):
    lock = state_of(tmp_path).with_suffix(".lock")
    lock.parent.mkdir()
    process = start(HOLD, lock)
    try:
        assert process.stdout.readline() == "held\n"
        assert run_tiny(tmp_path) is None
        found, complete = quiet_sweep(tmp_path)
        assert (found, complete) == ([], False)
    finally:
        process.kill()
        process.communicate()
    # Now the run is free: it begins, to find its time over.
    with pytest.raises(runner.OutOfTime):
        run_tiny(tmp_path, deadline=time.monotonic())


def test_a_run_that_another_process_finished_meanwhile_is_read(
    finished, tmp_path, monkeypatch
):
    path = path_of(TINY, 0, tmp_path)

    class FileLock(runner.filelock.FileLock):
        def acquire(self, *args, **kwargs):
            record = path_of(TINY, 0, finished[0])
            path.parent.mkdir(parents=True)
            path.write_bytes(record.read_bytes())
            return super().acquire(*args, **kwargs)

    monkeypatch.setattr(runner.filelock, "FileLock", FileLock)
    monkeypatch.delattr(runner, "_Run")
    assert run_tiny(tmp_path) == finished[1]


# Time limits.


class Clock:
    """The time as the runner and its callbacks see it, moved by hand."""

    def __init__(self, monkeypatch):
        self.now = 100.0
        for module in (runner, recorder, callbacks):
            monkeypatch.setattr(
                module,
                "time",
                SimpleNamespace(
                    monotonic=lambda: self.now, perf_counter=time.perf_counter
                ),
            )

    def pass_by(self, seconds):
        self.now += seconds


def test_no_time_ends_a_run_before_it_begins(tmp_path, monkeypatch):
    Clock(monkeypatch)
    with pytest.raises(runner.OutOfTime):
        run_tiny(tmp_path, deadline=100.0)
    assert not state_of(tmp_path).exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("event", "epoch"),
    [
        # The epoch whose end finds that the next one would be too long.
        (("epoch", "regularization", 2), 2),
        # An epoch that is broken off.
        (("step", "regularization", 1), 1),
    ],
)
def test_a_run_out_of_time_can_go_on(event, epoch, tmp_path, monkeypatch):
    clock = Clock(monkeypatch)
    reporter = Witness(event, lambda: clock.pass_by(60))
    with pytest.raises(runner.OutOfTime):
        run_tiny(tmp_path, reporter, deadline=150.0)
    progress, _ = runner.Checkpoint.of_run(TINY, 0, tmp_path).load()
    assert progress["regularization"]["curve"]["epoch"][-1] == epoch


def test_an_epoch_that_would_not_end_in_time_is_not_begun(monkeypatch):
    clock = Clock(monkeypatch)
    limit = recorder.Deadline(deadline=200.0)
    limit.set_model(SimpleNamespace(stop_training=False))
    for _ in range(2):
        limit.on_epoch_begin(0)
        clock.pass_by(40)
        limit.on_epoch_end(0)
    # At 180, with epochs of 40.
    assert limit.model.stop_training and limit.reached


def test_a_step_that_would_not_end_in_time_is_not_taken(monkeypatch):
    clock = Clock(monkeypatch)
    limit = recorder.Deadline(deadline=150.0)
    limit.on_train_begin()
    clock.pass_by(20)
    limit.on_train_batch_end(0)
    clock.pass_by(20)
    with pytest.raises(runner.OutOfTime):
        limit.on_train_batch_end(1)


# Sweeps.


def quiet_sweep(folder, seeds=(0,), **options):
    console = Console(file=io.StringIO())
    options = RunnerOptions(**options)
    return sweep([TINY], seeds, folder, options, console=console)


def swept(monkeypatch, seeds, outcome, experiments=(TINY,), **options):
    """The seeds run by a sweep whose runs are made up, and what it said."""
    runs = []

    def run(experiment, seed, *_, **__):
        runs.append((experiment, seed))
        return outcome(seed)

    monkeypatch.setattr(runner, "run", run)
    text = io.StringIO()
    answer = sweep(
        experiments,
        seeds,
        "nowhere",
        console=Console(file=text, width=200),
        **options,
    )
    return runs, answer, text.getvalue()


def test_a_sweep_takes_each_run_once_and_seeds_first(monkeypatch):
    more = replace(TINY, epochs=4)
    runs, (found, complete), _ = swept(
        monkeypatch, [0, 1, 0], lambda seed: {"seed": seed}, [TINY, more]
    )
    assert runs == [(TINY, 0), (more, 0), (TINY, 1), (more, 1)]
    assert [record["seed"] for record in found] == [0, 0, 1, 1]
    assert complete


def out_of_time_at(last):
    def outcome(seed):
        if seed == last:
            raise runner.OutOfTime
        return {"seed": seed}

    return outcome


def test_a_sweep_out_of_time_keeps_what_is_finished(monkeypatch):
    runs, (found, complete), text = swept(
        monkeypatch, [0, 1, 2], out_of_time_at(1), time_limit=5.0
    )
    assert [seed for _, seed in runs] == [0, 1]
    assert found == [{"seed": 0}]
    assert not complete
    assert "Time limit of 5 s reached in tiny-12 seed 1" in text


def test_a_sweep_counts_its_time_from_where_it_is_told(monkeypatch):
    deadlines = []

    def run(*_, deadline, **__):
        deadlines.append(deadline)
        return {"seed": 0}

    monkeypatch.setattr(runner, "run", run)
    console = Console(file=io.StringIO())
    sweep(
        [TINY], [0], "nowhere", console=console, time_limit=5.0, started=100.0
    )
    assert deadlines == [105.0]


def test_a_sweep_goes_on_after_a_run_of_another_process(monkeypatch):
    _, (found, complete), text = swept(
        monkeypatch, [0, 1], lambda seed: {"seed": 1} if seed else None
    )
    assert found == [{"seed": 1}]
    assert not complete
    assert "tiny-12 seed 0 is being run by another process" in text


def test_a_sweep_says_what_is_finished_and_has_no_model(finished):
    folder, record = finished
    text = io.StringIO()
    console = Console(file=text, width=500)
    model = path_of(TINY, 0, folder).with_suffix(".keras")
    hidden = model.rename(model.with_suffix(".hidden"))
    try:
        answer = sweep(
            [TINY],
            [0],
            folder,
            RunnerOptions(save_models=True),
            console=console,
        )
    finally:
        hidden.rename(model)
    assert answer == ([record], True)
    assert "tiny-12 seed 0 is finished" in text.getvalue()
    assert "ran without saving its model" in text.getvalue()


@pytest.mark.slow
def test_in_a_file_progress_is_plain_lines(tmp_path):
    text = io.StringIO()
    console = Console(file=text, width=1000)
    _, complete = sweep(
        [replace(TINY, epochs=1)], [0], tmp_path, console=console
    )
    lines = text.getvalue().splitlines()
    # One epoch of a tiny network may well make it worse.
    lines = [line for line in lines if " warning: " not in line]
    assert complete
    assert [line.split("  ")[0] for line in lines] == [
        "tiny-12 seed 0 pretraining 51/102",
        "tiny-12 seed 0 pretraining 102/102",
        "tiny-12 seed 0 regularization 1/1",
    ]
    for term in ("loss", "affinity", "balance", "val_error", "test_error"):
        assert f"  {term} " in lines[-1]
    assert not {"\r", "\x1b"} & set(text.getvalue())


def test_in_a_terminal_progress_is_a_bar_with_the_time_that_remains():
    text = io.StringIO()
    console = Console(file=text, width=80, force_terminal=True)
    logs = {"loss": 0.51251, "affinity": 0.025125, "balance": 0.98765}
    with Reporter("svhn-extra-1000 seed 10", console) as reporter:
        reporter.step("regularization", 0.5, 3, logs)
    shown = Text.from_ansi(text.getvalue()).plain
    assert "regularization ━" in shown
    assert "loss 0.513  affinity 0.0251  balance 0.988 -:--:--" in shown


# What is refused.


def test_another_backend_than_the_one_in_use_is_refused(tmp_path):
    other = "jax" if BACKEND != "jax" else "tensorflow"
    with pytest.raises(ValueError, match=f"KERAS_BACKEND={other} before"):
        runner.run(replace(TINY, backend=other), 0, tmp_path)
    assert not list(tmp_path.iterdir())


def test_tensorboard_is_asked_for_before_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match="pip install tensorboard"):
        run_tiny(tmp_path, tensorboard=tmp_path / "logs")
    assert not list(tmp_path.iterdir())


def test_settings_that_the_data_do_not_allow_are_told_in_one_line(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(cli, "choose_backend", lambda name: None)
    options = command.RunOptions(
        results=tmp_path, seeds="0", backend=BACKEND, precision="float32",
        images_per_epoch=TRAIN + 1,
    )  # fmt: skip
    with pytest.raises(SystemExit, match="2"):
        command.run_table(options, [TINY], print)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: images_per_epoch must be an integer from 1")


def test_a_defect_is_not_told_in_one_line(tmp_path, monkeypatch):
    def show(records, results):
        raise ValueError("a defect")

    monkeypatch.setattr(cli, "choose_backend", lambda name: None)
    monkeypatch.setattr(
        "gar_keras.experiments.sweep.sweep", lambda *a, **k: (["a run"], True)
    )
    options = command.RunOptions(
        results=tmp_path, seeds="0", backend=BACKEND, precision="float32"
    )
    with pytest.raises(ValueError, match="a defect"):
        command.run_table(options, [TINY], show)


def test_a_file_in_the_place_of_the_record_is_refused(tmp_path):
    path = path_of(TINY, 0, tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    with pytest.raises(records.RecordError, match="not a record"):
        run_tiny(tmp_path)


def test_a_state_of_another_version_is_refused(tmp_path):
    state = new_run(tmp_path).state
    state.progress["pretraining"]["curve"] = {"epoch": [51]}
    state.checkpoint.save(state.progress, model=[np.zeros(3)], optimizer=[])
    with pytest.raises(records.RecordError, match="another version") as error:
        new_run(tmp_path).state.restore()
    assert str(state.checkpoint.path) in str(error.value)


# The networks.


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_weights_and_logits_are_float32(precision):
    experiment = replace(TABLE_1[100], precision=precision)
    model = build_real(experiment, (28, 28, 1), 10)
    convolutions = [
        layer
        for layer in model.layers
        if isinstance(layer, keras.layers.Conv2D)
    ]
    assert {layer.compute_dtype for layer in convolutions} == {precision}
    assert {v.dtype for v in model.trainable_variables} == {"float32"}
    assert model.output.dtype == "float32"
    assert model.input.dtype == "uint8"


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
    layer = build_real(experiment, (4, 4, 1), 10).layers[1]
    x = np.tile(ROW, 4).reshape(1, 4, 4, 1)
    got = keras.ops.convert_to_numpy(layer(x))[0, 0, :, 0]
    np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_a_record_is_small_enough_to_keep(finished):
    folder, _ = finished
    text = path_of(TINY, 0, folder).read_text()
    assert max(map(len, text.splitlines())) < 2000
    assert json.loads(text)["format"] == records.FORMAT
