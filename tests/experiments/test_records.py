"""Records: whole or absent, under a name that tells experiments apart."""

import copy
import json
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from made_records import make_record, write_record

from gar_keras.experiments import checked, records
from gar_keras.experiments.placement import path_of
from gar_keras.experiments.records import RecordError
from gar_keras.experiments.settings import (
    FREE,
    PAPER,
    TABLE_1,
    DataConditions,
    Experiment,
    Extensions,
    stands_for_paper,
)

MNIST_100 = TABLE_1[100]


def test_a_record_comes_back(tmp_path):
    record = make_record(MNIST_100, seed=3)
    path = path_of(MNIST_100, 3, tmp_path / "deep")
    records.write(path, record)
    assert records.read(path) == record


def test_a_record_can_be_read_by_all(tmp_path):
    path = write_record(tmp_path, MNIST_100)
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_curve_is_one_line_of_the_file(tmp_path):
    path = write_record(tmp_path, MNIST_100)
    assert '"labeled": [0, 1, 2' in path.read_text()


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@settings(max_examples=30, deadline=None)
@given(json_values)
@example(["two  spaces", "a [bracket]", "\n\t"])
def test_the_form_of_the_file_changes_no_value(tmp_path_factory, value):
    path = tmp_path_factory.getbasetemp() / "value.json"
    records.write(path, {"value": value})
    assert json.loads(path.read_text()) == {"value": value}


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_no_nan_is_written(value, tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        records.write(tmp_path / "a.json", {"curve": [0.1, float(value)]})
    assert not list(tmp_path.iterdir())


def broken(**changes):
    """The text of a record with some values changed, or left out if None."""
    record = {**make_record(MNIST_100), **changes}
    return json.dumps({k: v for k, v in record.items() if v is not None})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not readable JSON"),
        ("{", "not readable JSON"),
        (broken()[:-20], "not readable JSON"),
        ("\0\xff", "not readable JSON"),
        ("[]", "not a record of format 1"),
        ("3", "not a record of format 1"),
        ("{}", "not a record of format 1"),
        (broken(format=2), "not a record of format 1"),
        (broken(result=None), "result missing"),
        (broken(labeled=None, seed=None), "seed, labeled missing"),
        (broken(seed=1), "694a14ec/seed1.json: it was renamed"),
        ("[" * 100_000, "not readable JSON"),
    ],
)
def test_what_is_no_record_is_refused(text, message, tmp_path):
    path = path_of(MNIST_100, 0, tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="latin-1")
    with pytest.raises(RecordError, match=message) as error:
        records.read(path)
    assert str(path) in str(error.value)


NAN = float("nan")
CURVE = ("regularization", "curve")


def altered(keys, value):
    """A record with one value replaced, or left out if it is `...`."""
    record = copy.deepcopy(make_record(replace(MNIST_100, epochs=3)))
    inner = record
    for key in keys[:-1]:
        inner = inner[key]
    if value is ...:
        del inner[keys[-1]]
    else:
        inner[keys[-1]] = value
    return record


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        *(((key,), None) for key in ("result", "experiment", "pretraining")),
        *(((key,), {}) for key in ("result", "regularization", "data")),
        *(((key,), []) for key in ("experiment", "environment", "data")),
        *(((key,), "text") for key in ("result", "regularization", "labeled")),
        *((("result", "chosen_error"), v) for v in (NAN, "0.1", None, 2.0)),
        (("result", "last_error"), float("inf")),
        (("result", "baseline_error"), None),
        (("result", "chosen_epoch"), 2),
        (("result", "last_error"), ...),
        (("seed",), "0"),
        (("seed",), True),
        (("seed",), -1),
        (("cell",), "mnist-600"),
        (("fingerprint",), "0"),
        (("nosuch",), 1),
        (("experiment", "nosuch"), 1),
        (("experiment", "world", "nosuch"), 1),
        (("experiment", "epochs"), 2),
        (("experiment", "affinity"), 2.0),
        (("experiment", "affinity"), NAN),
        (("experiment", "dataset"), ...),
        (("experiment", "network"), "cnn7"),
        (("environment", "device"), ...),
        (("environment", "device"), 3),
        (("pretraining", "seconds"), -1.0),
        (("method_settings",), None),
        ((*CURVE, "epoch"), [0, 1, 2]),
        ((*CURVE, "epoch"), [0, 1, 2, 4]),
        ((*CURVE, "epoch"), ...),
        ((*CURVE, "affinity"), ...),
        ((*CURVE, "affinity"), [None, 0.1, None, 0.1]),
        ((*CURVE, "val_error"), [0.1, 0.1, NAN, 0.1]),
        ((*CURVE, "test_error"), [0.1, 0.1, "0.1", 0.1]),
        ((*CURVE, "test_error"), 0.1),
        (CURVE, []),
    ],
)
def test_an_altered_record_is_refused_in_one_line(keys, value, tmp_path):
    path = path_of(replace(MNIST_100, epochs=3), 0, tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(altered(keys, value)))
    with pytest.raises(RecordError, match="delete it and make") as error:
        records.read(path)
    message = str(error.value)
    assert message.startswith(str(path)) and "\n" not in message
    # A sound value of another run is found by the fingerprint.
    assert keys[-1] in message or "fingerprint must be" in message


def test_the_altered_record_itself_is_sound(tmp_path):
    experiment = replace(MNIST_100, epochs=3)
    path = write_record(tmp_path, experiment)
    assert json.loads(json.dumps(altered(("seed",), 0))) == records.read(path)


def test_settings_added_later_have_their_defaults(tmp_path):
    record = make_record(MNIST_100)
    del record["experiment"]["restart"]
    del record["experiment"]["extensions"]["vat"]
    path = path_of(MNIST_100, 0, tmp_path)
    records.write(path, record)
    assert records.read(path) == json.loads(json.dumps(make_record(MNIST_100)))


def test_seeds_of_one_row_have_the_same_hyper_parameters(tmp_path):
    experiment = replace(MNIST_100, method="entropy")
    for seed, weight in enumerate((1.0, 1.0, 2.0)):
        record = make_record(experiment, seed)
        record["method_settings"] = {"weight": weight}
        path = path_of(experiment, seed, tmp_path)
        records.write(path, record)
    with pytest.raises(RecordError, match="hyper-parameters") as e:
        records.read_all(tmp_path)
    assert str(e.value).startswith(str(path))
    path.unlink()
    assert len(records.read_all(tmp_path)) == 2


RESULTS = Path(__file__).parents[2] / "results"


def test_the_published_records_keep_their_fingerprints():
    # Each is recomputed from the settings, and compared with the file's name.
    assert len(records.read_all(RESULTS)) >= 138


def test_a_folder_is_no_record(tmp_path):
    path_of(MNIST_100, 0, tmp_path).mkdir(parents=True)
    with pytest.raises(RecordError, match="not readable"):
        records.read_all(tmp_path)


def test_a_copy_does_not_count_twice(tmp_path):
    path = write_record(tmp_path, MNIST_100)
    copy = path.with_name(f"{path.stem} (copy).json")
    copy.write_text(path.read_text())
    with pytest.raises(RecordError, match="renamed or copied"):
        records.read_all(tmp_path)


def test_read_all_takes_the_records_alone(tmp_path):
    for seed in (2, 0, 1):
        write_record(tmp_path, MNIST_100, seed)
    (tmp_path / "overhead.json").write_text("{}")
    (tmp_path / "table1.md").write_text("")
    beside = path_of(MNIST_100, 3, tmp_path)
    beside.with_name(".seed3.json.x1").write_text("{")
    found = records.read_all(tmp_path)
    assert [record["seed"] for record in found] == [0, 1, 2]


def test_no_folder_holds_no_records(tmp_path):
    assert records.read_all(tmp_path / "none") == []


OTHER_VALUES = {
    "dataset": "norb",
    "num_labeled": 110,
    "preprocessing": "none",
    "labeled_per_batch": 15,
    "unlabeled_per_batch": 111,
    "unlabeled": "infimnist",
    "images_per_epoch": 1000,
    "num_validation": 999,
    "batch_size": 127,
    "pretrain_epochs": 1999,
    "epochs": 201,
    "affinity": 3.5,
    "balance": 0.0,
    "frobenius": 0.0,
    "frobenius_of": "Z",
    "balance_of": "column sums",
    "learning_rate": 0.02,
    "momentum": 0.9,
    "decay": 0.0,
    "precision": "bfloat16",
    "backend": "jax",
    "method": "vat",
    "class_prior": "labels",
    "world": DataConditions(wrong_labels=0.1),
    "extensions": Extensions(shift=1),
    "restart": 1,
    "pretrain_shift": 1,
    "pretrain_affine": 0.1,
    "stage_2_rate": 0.1,
    "ablation": "softmax",
}


def test_the_fingerprint_changes_with_every_setting():
    changed = [
        replace(MNIST_100, **{name: value})
        for name, value in OTHER_VALUES.items()
    ]
    cnn9 = replace(MNIST_100, network="cnn9", filters=32)
    wider = replace(cnn9, filters=64)
    infinite = replace(MNIST_100, unlabeled="infimnist")
    stronger = replace(infinite, field_strength=2.0)
    norb = replace(MNIST_100, dataset="norb")
    stretched = replace(norb, camera_stretch=True)
    elsewhere = {"network", "filters", "field_strength", "camera_stretch"}
    everything = [MNIST_100, *changed, cnn9, wider, stronger, stretched]
    assert {*OTHER_VALUES, *elsewhere} == {
        field.name for field in fields(Experiment)
    }
    assert len({e.fingerprint() for e in everything}) == len(everything)


def test_more_epochs_are_another_run():
    short = replace(MNIST_100, epochs=2)
    longer = replace(short, epochs=3)
    assert path_of(short, 0, "") != path_of(longer, 0, "")


def test_a_setting_added_later_orphans_no_record():
    @checked.settings
    class Later(Experiment):
        augmentation: str = "none"

    same = Later(**vars(MNIST_100))
    other = replace(same, augmentation="shifts")
    assert same.fingerprint() == MNIST_100.fingerprint()
    assert other.fingerprint() != MNIST_100.fingerprint()


def test_the_file_names_of_the_paper_s_cells_stay():
    # A change here would make all records that were published runs to repeat.
    path = path_of(TABLE_1[3000], 9, "").as_posix()
    assert path == "mnist-3000/2000+200_float32_67d9f51c/seed9.json"


def test_equal_numbers_are_equal_settings():
    one = replace(MNIST_100, affinity=2, num_labeled=np.int64(600))
    two = replace(MNIST_100, affinity=2.0, num_labeled=600)
    assert one == two
    assert one.fingerprint() == two.fingerprint()


@pytest.mark.parametrize(
    "change",
    [
        {"network": "cnn7"},
        {"network": "cnn9"},
        {"filters": 32},
        {"preprocessing": "center"},
        {"unlabeled": "extra"},
        {"frobenius_of": "b"},
        {"precision": "float16"},
        {"backend": "numpy"},
        {"method": "ladder"},
        {"num_labeled": 0},
        {"labeled_per_batch": 101},
        {"labeled_per_batch": -1},
        {"ablation": "affinity"},
        {"unlabeled_per_batch": 0},
        {"num_validation": 0},
        {"batch_size": 1.5},
        {"images_per_epoch": 0},
        {"pretrain_epochs": True},
        {"epochs": -1},
        {"affinity": -1.0},
        {"balance": float("nan")},
        {"frobenius": float("inf")},
        {"learning_rate": "0.1"},
        {"momentum": None},
        {"decay": -1e-6},
    ],
)
def test_an_impossible_setting_is_refused_at_once(change):
    with pytest.raises(ValueError, match="Received: .*="):
        replace(MNIST_100, **change)


def settings_of(**changes):
    return {**make_record(MNIST_100)["experiment"], **changes}


def test_the_paper_s_settings_stand_for_the_paper():
    assert stands_for_paper(settings_of(), "mnist-100")


@pytest.mark.parametrize("name", FREE)
def test_how_long_and_on_what_is_free(name):
    changed = settings_of(**{name: OTHER_VALUES[name]})
    assert stands_for_paper(changed, "mnist-100")


@pytest.mark.parametrize("name", sorted(OTHER_VALUES.keys() - set(FREE)))
def test_other_settings_do_not_stand_for_the_paper(name):
    changed = settings_of(**{name: OTHER_VALUES[name]})
    assert not stands_for_paper(changed, "mnist-100")


def test_a_cell_of_no_table_stands_for_none():
    assert not stands_for_paper(settings_of(), "mnist-200")


def test_an_old_record_ran_at_the_defaults_of_what_was_added_later():
    old = settings_of()
    del old["frobenius_of"], old["images_per_epoch"]
    assert stands_for_paper(old, "mnist-100")


def test_each_cell_has_a_name_of_its_own():
    assert all(e.cell == cell for cell, e in PAPER.items())
    assert len({e.fingerprint() for e in PAPER.values()}) == len(PAPER)
