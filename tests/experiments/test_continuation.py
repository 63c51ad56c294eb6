"""A run that goes on beyond its last epoch ends as one made at once."""

import shutil
import sys
from dataclasses import replace

import pytest
import tiny_runs
from tiny_runs import TINY

from gar_keras.experiments import command, continuation, runner
from gar_keras.experiments.options import RunnerOptions
from gar_keras.experiments.records import RecordError
from gar_keras.experiments.settings import Extensions
from gar_keras.utils import cli

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def tiny():
    with pytest.MonkeyPatch.context() as patch:
        tiny_runs.install(patch)
        yield


SHORT = replace(TINY, epochs=2)


@pytest.fixture(scope="module")
def made_once(tiny, tmp_path_factory):
    """Folder of a run of two epochs whose end is kept, to be copied."""
    folder = tmp_path_factory.mktemp("short")
    run(folder, SHORT, keep_state=True)
    return folder


@pytest.fixture
def short(made_once, tmp_path):
    """Folder of a run of two epochs whose end is kept."""
    return shutil.copytree(made_once, tmp_path, dirs_exist_ok=True)


def run(folder, experiment=TINY, reporter=None, **options):
    return runner.run(
        experiment, 0, folder, RunnerOptions(**options), reporter=reporter
    )


def ends(folder):
    """The epochs of the ends that are kept."""
    files = (folder / ".checkpoints").glob("end_*.npz")
    return sorted(int(file.stem.rpartition("_")[2]) for file in files)


def test_a_longer_run_goes_on_from_a_shorter_one(tmp_path):
    apart = tmp_path / "apart"
    at_once = run(apart)
    # Its last epoch, 2, is none that a run of 3 epochs shows.
    run(tmp_path, SHORT, keep_state=True)
    assert ends(tmp_path) == [2]
    witness = tiny_runs.Witness()
    record = run(tmp_path, keep_state=True, reporter=witness)
    assert witness.lines[0] == "goes on after epoch 2 of regularization"
    tiny_runs.assert_same_run(tmp_path, record, (apart, at_once))
    assert ends(tmp_path) == [3]
    left = {file.suffix for file in (tmp_path / ".checkpoints").iterdir()}
    assert left == {".npz", ".lock"}


def test_a_shorter_run_leaves_the_longer_ones_end(tmp_path):
    run(tmp_path, keep_state=True)
    record = run(tmp_path, SHORT, keep_state=True)
    assert record["result"]["last_epoch"] == 2
    assert ends(tmp_path) == [2, 3]


@pytest.mark.parametrize(
    "change",
    [{"affinity": 2.0}, {"pretrain_epochs": 51}, {"frobenius_of": "Z"}],
    ids=lambda change: next(iter(change)),
)
def test_another_experiments_end_is_not_taken(change, short):
    assert continuation.shorter_run(TINY, 0, short) is not None
    assert continuation.shorter_run(TINY, 1, short) is None
    changed = replace(TINY, **change)
    assert continuation.shorter_run(changed, 0, short) is None


def test_a_damaged_end_counts_as_none(short):
    (end,) = (short / ".checkpoints").glob("end_*.npz")
    end.write_bytes(end.read_bytes()[:1000])
    witness = tiny_runs.Witness()
    record = run(short, keep_state=True, reporter=witness)
    assert not any("goes on" in line for line in witness.lines)
    assert record["result"]["last_epoch"] == 3


def test_an_end_that_vanishes_counts_as_none(short, monkeypatch):
    shorter = continuation.shorter_run(TINY, 0, short)
    # Another process keeps its own end in between.
    shorter.path.unlink()
    monkeypatch.setattr(continuation, "shorter_run", lambda *_: shorter)
    checkpoint = runner.Checkpoint.of_run(TINY, 0, short)
    continuation.take_up(checkpoint, TINY, 0, short)
    assert not checkpoint.path.exists()


def test_another_run_s_end_is_refused(short):
    end = continuation.shorter_run(TINY, 0, short).path
    renamed = continuation._path(replace(SHORT, affinity=2.0), 0, short)
    end.rename(renamed)
    with pytest.raises(RecordError, match="another run") as error:
        run(short, replace(TINY, affinity=2.0), keep_state=True)
    assert str(renamed) in str(error.value)


def test_the_end_of_a_single_epoch_is_not_taken(short):
    (end,) = (short / ".checkpoints").glob("end_*.npz")
    end.rename(end.with_stem(end.stem.removesuffix("2") + "1"))
    assert ends(short) == [1]
    assert continuation.shorter_run(TINY, 0, short) is None


def test_an_end_of_another_version_is_named_with_its_copy(short):
    shorter = continuation.shorter_run(TINY, 0, short)
    progress, variables = shorter.load()
    shorter.save(progress, **{**variables, "optimizer": []})
    # The second time the copy is there.
    for _ in range(2):
        with pytest.raises(RecordError, match="Delete it and") as error:
            run(short, keep_state=True)
        assert f"and {shorter.path} to start afresh" in str(error.value)


def test_without_being_asked_no_end_is_kept_or_taken(short):
    witness = tiny_runs.Witness()
    run(short, reporter=witness)
    assert not any("goes on" in line for line in witness.lines)
    assert ends(short) == [2]


@pytest.mark.parametrize(
    "change",
    [
        {"method": "pi"},
        {"extensions": Extensions(rate="cosine")},
        {"extensions": Extensions(warmup_steps=None)},
    ],
    ids=["method", "rate", "warm-up"],
)
def test_a_run_that_cannot_be_extended_is_refused(change, tmp_path):
    experiment = replace(TINY, **change)
    assert not experiment.can_be_extended
    with pytest.raises(ValueError, match="Leave keep_state out"):
        run(tmp_path, experiment, keep_state=True)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    "words, method", [([], "vat"), (["--epochs", "1"], "gar")]
)
def test_the_command_line_refuses_it_before_any_run(
    words, method, tmp_path, monkeypatch, capsys
):
    results = str(tmp_path / "results")
    arguments = ["--keep-state", "--results", results, *words]
    monkeypatch.setattr(sys, "argv", ["some.py", *arguments])
    options = cli.parse(command.RunOptions, "Some runs.")
    with pytest.raises(SystemExit) as ended:
        command.run_table(options, [TINY, replace(TINY, method=method)], print)
    assert ended.value.code == 2
    assert "--keep-state is for GAR" in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]
