"""Records: whole or absent, in their place, and refused if altered."""

import copy
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_records import make_record, write_record

from reproduction import paths, records
from reproduction.records import RecordError
from reproduction.settings import NORB, TABLE_1

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
MNIST_100 = TABLE_1[100]
SHORT = replace(MNIST_100, epochs=3)


def test_each_published_record_is_sound_and_in_its_place():
    # Their fingerprints are recomputed from the settings.
    found = records.read_all(RESULTS)
    assert len(found) >= 896
    kept = [records.read_arrays(path, record) for path, record in found.items()]
    assert sum(arrays is not None for arrays in kept) >= 240
    assert sum(bool(arrays and arrays.logits) for arrays in kept) >= 3


@pytest.mark.parametrize(
    ("val_error", "chosen"),
    [
        ([0.0, 0.3, 0.2, 0.3], 2),
        # Of equals the last.
        ([0.0, 0.2, 0.3, 0.2], 3),
        ([0.5, 0.2, 0.2, 0.3], 2),
        ([None, 0.2, 0.3, 0.3], 1),
    ],
)
def test_the_chosen_epoch(val_error, chosen):
    assert records.chosen_epoch({"val_error": val_error}) == chosen


def test_records_come_by_cell_and_seed(tmp_path):
    write_record(tmp_path, NORB[300])
    for seed in (10, 2):
        path = write_record(tmp_path, MNIST_100, seed)
    # Neither what else is there, nor a clone's own results.
    (tmp_path / "overhead.json").write_text("{}")
    path.with_name(".seed3.json.x1").write_text("{")
    write_record(tmp_path / "results", MNIST_100)
    found = [
        (path.parts[-3], record["seed"])
        for path, record in records.read_all(tmp_path).items()
    ]
    assert found == [("mnist-100", 2), ("mnist-100", 10), ("norb-300", 0)]
    # A copy does not count twice.
    path.with_name("seed1.json").write_text(path.read_text())
    copied = path.with_name("seed1.json")
    copied.write_text(path.read_text())
    with pytest.raises(RecordError, match="seed2.json is expected"):
        records.read_all(tmp_path)
    copied.unlink()
    path.parent.rename(path.parent.with_name("2000+200_float32_0123abcd"))
    with pytest.raises(RecordError, match="place: mnist-100/2000.*0123abcd"):
        records.read_all(tmp_path)


def test_the_folders_are_those_of_the_clone_from_anywhere(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    found = paths.own(), paths.reference()
    assert found == (ROOT / "runs", RESULTS)
    monkeypatch.chdir(ROOT)
    assert paths.own() == Path("runs")


def test_no_nan_is_written(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        records.write(tmp_path / "a.json", {"curve": [0.1, float("nan")]})
    assert not list(tmp_path.iterdir())


def test_the_form_of_the_file_changes_no_value(tmp_path):
    path = write_record(tmp_path, MNIST_100)
    assert path.stat().st_mode & 0o777 == 0o644
    assert '"epoch": [0, 1, 2, 3' in path.read_text()
    value = {"a": ["two  spaces", "a [bracket]", "\n\t"], "b": [[0.5], {}]}
    records.write(tmp_path / "value.json", value)
    assert json.loads((tmp_path / "value.json").read_text()) == value


# Altered records.


SOUND = json.loads(json.dumps(make_record(SHORT)))


ABSENT = object()


def altered(record, keys, value):
    """The record with another value, or none, behind the keys."""
    record = copy.deepcopy(record)
    *way, last = keys
    inner = record
    for key in way:
        inner = inner[key]
    if value is ABSENT:
        del inner[last]
    else:
        inner[last] = value
    return record


def write(folder, text):
    """Writes a text where the sound record belongs."""
    path = folder / SOUND["path"]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="latin-1")
    return path


CURVE_OF = ("regularization", "curve")


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (("format",), 1),
        (("path",), "mnist-600/a/seed0.json"),
        (("seed",), 1),
        (("experiment", "epochs"), 2),
        (("experiment", "method", 0, "balance"), 0.5),
        (("experiment", "method", 0, "term"), "HAGR"),
        ((*CURVE_OF, "epoch"), [0, 1, 2]),
        ((*CURVE_OF, "val_error"), [0.1, 0.1]),
        ((*CURVE_OF, "test_error"), ABSENT),
        (CURVE_OF, {}),
    ],
)
def test_each_refusal(keys, value, tmp_path):
    assert_refused(tmp_path, json.dumps(altered(SOUND, keys, value)))


def test_what_is_no_record_is_refused(tmp_path):
    half = json.dumps(SOUND)[:-20]
    for text in ("", half, "\0\xff", "[" * 100_000, "[]", '{"format": 2}'):
        assert_refused(tmp_path, text)


def assert_refused(folder, text):
    path = write(folder, text)
    with pytest.raises(RecordError, match="not a whole record") as error:
        records.read(path)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


def test_a_pause_of_the_machine_is_not_counted():
    stage = {"seconds": 905.0, "curve": {"seconds": [None, 2.0, 900.0, 3.0]}}
    assert records.typical_seconds(stage) == 3 * 3.0
    assert records.typical_seconds({"seconds": 905.0, "curve": {}}) == 905.0


# Arrays.

LABELS = np.array([0, 1, 2, 0])
OWNER = SHORT.fingerprint(), 0


def write_arrays(folder, owner=OWNER, **changes):
    """Writes a record and the arrays beside it; returns the first's path."""
    logits = {i: np.eye(3, dtype="float32")[LABELS[:2]] for i in (0, 1, 3)}
    arrays = records.Arrays(
        np.array([5, 3, 8, 1]),
        LABELS,
        {0: LABELS, 1: LABELS, 3: np.array([0, 1, 1, 0])},
        np.array([8, 3]),
        logits,
    )
    also = {"snapshot_epochs": [0, 1, 3]}
    path = write_record(folder, SHORT, also=also)
    file = path.with_suffix(".npz")
    records.write_arrays(file, owner, arrays._replace(**changes))
    return path


def arrays_beside(path):
    return records.read_arrays(path, records.read(path))


def test_what_was_kept_is_read(tmp_path):
    path = write_arrays(tmp_path)
    kept = arrays_beside(path)
    assert [*kept.logits] == [*kept.predicted] == [0, 1, 3]
    assert kept.labels.tolist() == [0, 1, 2, 0]
    assert kept.predicted[3].tolist() == [0, 1, 1, 0]
    assert kept.logit_labels.tolist() == [2, 1]
    assert records.balanced_errors_of(kept) == {"stage_1": 0, "last": 1 / 3}
    assert arrays_beside(write_arrays(tmp_path, logits={})).logits == {}
    path.with_suffix(".npz").unlink()
    assert arrays_beside(path) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"owner": (SHORT.fingerprint(), 1)},
        {"owner": (MNIST_100.fingerprint(), 0)},
        {"predicted": {0: LABELS, 3: LABELS}},
        {"damaged": 0},
        {"damaged": -30},
    ],
)
def test_arrays_of_something_else_are_refused(changes, tmp_path):
    changes = dict(changes)
    damaged = changes.pop("damaged", None)
    path = write_arrays(tmp_path, **changes)
    file = path.with_suffix(".npz")
    if damaged is not None:
        file.write_bytes(file.read_bytes()[:damaged])
    with pytest.raises(RecordError, match="is not a whole record") as error:
        arrays_beside(path)
    assert str(error.value).startswith(str(file))
