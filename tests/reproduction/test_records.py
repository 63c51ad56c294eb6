"""Records: whole or absent, in their place, and refused if altered."""

import copy
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from made_records import make_record, write_record

from reproduction import paths, records
from reproduction.records import RecordError
from reproduction.settings import NORB, TABLE_1

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
MNIST_100 = TABLE_1[100]
SHORT = replace(MNIST_100, epochs=3)
# Hypothesis calls a test again with the same folder.
REUSED = settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def test_each_published_record_is_sound_and_in_its_place():
    # Their fingerprints are recomputed from the settings.
    assert len(records.read_all(RESULTS)) >= 326
    for path in RESULTS.glob("*_tensorflow.json"):
        assert records.read(path)["cases"]


def test_records_come_by_cell_and_seed(tmp_path):
    write_record(tmp_path, NORB[300])
    for seed in (10, 2):
        path = write_record(tmp_path, MNIST_100, seed)
    # Neither what else is there, nor a clone's own results.
    (tmp_path / "overhead.json").write_text("{}")
    path.with_name(".seed3.json.x1").write_text("{")
    write_record(tmp_path / "results", MNIST_100)
    found = [
        (r["cell"], r["seed"]) for r in records.read_all(tmp_path).values()
    ]
    assert found == [("mnist-100", 2), ("mnist-100", 10), ("norb-300", 0)]
    # A copy does not count twice.
    path.with_name("seed1.json").write_text(path.read_text())
    with pytest.raises(RecordError, match="renamed or copied"):
        records.read_all(tmp_path)


def test_the_folders_are_those_of_the_clone_from_anywhere(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    found = paths.own(), paths.reference()
    assert found == (ROOT / "runs", RESULTS)
    monkeypatch.chdir(ROOT)
    assert paths.own() == Path("runs")


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@REUSED
@given(value=json_values)
@example(value=["two  spaces", "a [bracket]", "\n\t"])
def test_the_form_of_the_file_changes_no_value(tmp_path, value):
    records.write(tmp_path / "value.json", {"value": value})
    text = (tmp_path / "value.json").read_text()
    assert json.loads(text) == {"value": value}


def test_no_nan_is_written(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        records.write(tmp_path / "a.json", {"curve": [0.1, float("nan")]})
    assert not list(tmp_path.iterdir())


def test_a_record_can_be_read_by_all_and_has_its_lists_in_a_line(tmp_path):
    path = write_record(tmp_path, MNIST_100)
    assert path.stat().st_mode & 0o777 == 0o644
    assert '"epoch": [0, 1, 2, 3' in path.read_text()


# Altered records.


def sound_run():
    """A record with what all kinds of runs have."""
    record = make_record(SHORT, v=[[1.0, 2.0], [3.0, 4.0]]) | {
        "class_prior": [0.1] * 10,
        "snapshot_epochs": [0, 1, 3],
        "split_fingerprint": "0a1b2c3d",
        "warnings": ["Stage 2 loses classes."],
    }
    return json.loads(json.dumps(record))


def sound_benchmark(kind):
    (path,) = RESULTS.glob(f"{kind}_*.json")
    content = json.loads(path.read_text())
    return {**content, "cases": content["cases"][:1]}


SOUND = {
    "run": sound_run(),
    "benchmark": sound_benchmark("benchmark"),
    "overhead": sound_benchmark("overhead"),
}


def places_in(value, way=()):
    """The ways to all values inside a value."""
    if isinstance(value, dict | list):
        keys = value if isinstance(value, dict) else range(len(value))
        for key in keys:
            yield (*way, key)
            yield from places_in(value[key], (*way, key))


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


@pytest.mark.parametrize("kind", SOUND)
@REUSED
@given(data=st.data())
def test_an_altered_record_is_refused_in_a_line_or_read_as_it_is(
    kind, tmp_path, data
):
    sound = SOUND[kind]
    keys = data.draw(st.sampled_from([*places_in(sound)]))
    value = data.draw(json_values) if data.draw(st.booleans()) else ABSENT
    changed = altered(sound, keys, value)
    path = write(tmp_path, json.dumps(changed), kind)
    try:
        found = records.read(path)
    except RecordError as e:
        assert str(e).startswith(str(path)) and "\n" not in str(e)
        return
    decisive = "experiment", "cell", "fingerprint", "seed", "result", "kind"
    for name in decisive:
        assert found.get(name) == sound.get(name)
    without = {k: v for k, v in changed.items() if k != "experiment"}
    assert {k: v for k, v in found.items() if k != "experiment"} == without


def write(folder, text, kind="run"):
    """Writes a text where the sound record of this kind belongs."""
    model = records.Run if kind == "run" else records.Benchmark
    (belongs,) = model.model_validate(SOUND[kind]).expected_paths
    path = folder / belongs
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="latin-1")
    return path


@pytest.mark.parametrize(
    "text",
    [
        "",
        json.dumps(SOUND["run"])[:-20],
        "\0\xff",
        "[" * 100_000,
        "[]",
        '{"format": 1}',
        '{"format": 1, "kind": "x"}',
        json.dumps(SOUND["run"] | {"format": 2}),
    ],
)
def test_what_is_no_record_is_refused(text, tmp_path):
    path = write(tmp_path, text)
    with pytest.raises(RecordError, match="not a whole record") as error:
        records.read(path)
    assert str(error.value).startswith(str(path))


CURVE = ("regularization", "curve")


RUNS = [
    (("result", "chosen_error"), "0.1"),
    (("result", "last_error"), 0.04),
    (("result", "baseline_error"), None),
    (("cell",), "mnist-600"),
    (("labeled",), [1, 1]),
    (("nosuch",), 1),
    (("experiment", "epochs"), 2),
    (("environment", "device"), "<script>"),
    (("pretraining", "seconds"), -1.0),
    ((*CURVE, "epoch"), [0, 1, 2]),
    ((*CURVE, "affinity"), [None, 0.1, None, 0.1]),
    ((*CURVE, "val_error"), [0.1, 0.0, 1.5, 0.03]),
    (CURVE, {}),
    (("lost_classes",), None),
    (("lost_classes",), [-1]),
]
CASE, OVERHEAD = (SOUND[kind]["cases"][0] for kind in ("benchmark", "overhead"))
TIMES = CASE["reference_ms"]["all"]
FIRST = ("cases", 0)
BENCHMARKS = [
    *(
        ((*FIRST, part, key), value)
        for part in ("ms", "ratio", "difference_ms", "speedup")
        for key, value in {
            "quartiles": CASE[part]["quartiles"][::-1],
            "median": 1e308,
            "all": CASE[part]["all"][1:],
        }.items()
    ),
    ((*FIRST, "speedup"), None),
    ((*FIRST, "speedup"), CASE["ratio"]),
    ((*FIRST, "images_per_second"), None),
    ((*FIRST, "images_per_second"), 1e308),
    ((*FIRST, "reference_ms", "all"), [-TIMES[0], *TIMES[1:]]),
    ((*FIRST, "case", "pairs"), 99),
    (("cases",), [CASE, CASE]),
]
OVERHEADS = [
    ((*FIRST, "ratio", "quartiles"), [1e308, -1e308]),
    ((*FIRST, "case"), CASE["case"]),
    (("cases",), [OVERHEAD, OVERHEAD]),
]
REFUSED = {"run": RUNS, "benchmark": BENCHMARKS, "overhead": OVERHEADS}


@pytest.mark.parametrize(
    ("kind", "keys", "value"),
    [(kind, *change) for kind, rows in REFUSED.items() for change in rows],
)
def test_each_refusal(kind, keys, value, tmp_path):
    record = altered(SOUND[kind], keys, value)
    path = write(tmp_path, json.dumps(record), kind)
    with pytest.raises(RecordError, match="not a whole record") as error:
        records.read(path)
    assert "\n" not in str(error.value)
    if kind == "run":
        named = {*re.findall(r"\w+", str(error.value))}
        assert named & {keys[0], keys[-1], "fingerprint"}


def test_what_was_added_later_has_its_default(tmp_path):
    record = sound_run()
    record["environment"]["cores"] = None
    expected = copy.deepcopy(record)
    del record["experiment"]["restart"]
    del record["experiment"]["extensions"]["vat"]
    assert records.read(write(tmp_path, json.dumps(record))) == expected


def test_seeds_of_one_row_have_the_same_hyper_parameters(tmp_path):
    experiment = replace(MNIST_100, method="entropy")
    for seed, weight in enumerate((1.0, 2.0)):
        also = {"method_settings": {"weight": weight}}
        path = write_record(tmp_path, experiment, seed, also=also)
    with pytest.raises(RecordError, match="other hyper-parameters") as e:
        records.read_all(tmp_path)
    assert str(e.value).startswith(str(path))


def test_a_record_made_from_something_else_is_not_this_run_s():
    record = sound_run() | {"method_settings": {"weight": 1.0}}
    made_from = {key: record[key] for key in records.MUST_AGREE}
    for name in records.MUST_AGREE:
        with pytest.raises(RecordError, match="a.json was made with other"):
            records.check_is_of("a.json", record, **made_from | {name: None})
    # What an earlier version did not note is not compared.
    del record["class_prior"]
    records.check_is_of("a.json", record, **made_from)


def test_one_draw_of_labels_is_of_one_seed(tmp_path):
    first = write_record(tmp_path, MNIST_100)
    # Seed 0 under another name, in a longer run as well.
    for e in (MNIST_100, replace(MNIST_100, epochs=300)):
        path = write_record(tmp_path, e, 1, also={"labeled": [*range(100)]})
        with pytest.raises(RecordError, match="the same draw under two seeds"):
            records.read_all(tmp_path)
        path.unlink()
    # Of other data they are other images.
    write_record(tmp_path, replace(MNIST_100, dataset="svhn"), 1)
    write_record(tmp_path, replace(MNIST_100, epochs=300))
    assert len(records.read_all(tmp_path)) == 3 and first.exists()


# Arrays.


KEPT = {"snapshot_epochs": [0, 1, 3]}


def write_arrays(folder, **changes):
    """Writes a record and the arrays beside it; returns both paths."""
    labels = np.array([0, 1, 2, 0])
    logits = np.eye(3, dtype="float32")[labels]
    arrays = {"labels": labels, **{f"epoch_{i}": logits for i in (0, 1, 3)}}
    path = write_record(folder, SHORT, also=KEPT)
    file = path.with_suffix(".npz")
    arrays |= changes
    np.savez(file, **{k: v for k, v in arrays.items() if v is not None})
    return path, file


def arrays_beside(path):
    return records.read_arrays(path, records.read(path))


def test_what_was_kept_is_read(tmp_path):
    path, file = write_arrays(tmp_path)
    kept = arrays_beside(path)
    assert [*kept.logits] == [0, 1, 3]
    assert kept.labels.tolist() == [0, 1, 2, 0]
    file.unlink()
    assert arrays_beside(path) is None


def kept(seed, num_images, wrong=0.1):
    """Arrays of test images that a seed kept in an earlier version."""
    indices = records.kept_images(seed, num_images)
    labels = indices % 3
    given = (labels + (np.arange(len(labels)) < wrong * len(labels))) % 3
    logits = np.eye(3, dtype="float32")[given]
    epochs = {f"epoch_{epoch}": logits for epoch in (0, 1, 3)}
    return {"indices": indices, "labels": labels, **epochs}


@pytest.mark.parametrize("num_images", [30, 2000, 2001, 10_000, 24_300])
def test_kept_arrays_are_those_of_their_run(num_images, tmp_path):
    def written(seed):
        write_arrays(tmp_path, **kept(seed, num_images))
        errors = {"chosen_error": 0.1, "last_error": 0.1}
        return write_record(tmp_path, SHORT, also=KEPT, **errors)

    found = arrays_beside(written(seed=0))
    assert len(found.labels) == min(num_images, 2000)
    with pytest.raises(RecordError, match="drawn by seed 0 is wanted"):
        arrays_beside(written(seed=1))


OWNER = [SHORT.fingerprint(), "0"]


@pytest.mark.parametrize(
    "changes",
    [
        {"owner": [SHORT.fingerprint(), "1"]},
        {"owner": [MNIST_100.fingerprint(), "0"]},
        {"owner": SHORT.fingerprint()},
        {"indices": np.array([1, 0, 2, 3])},
        {"indices": np.array(["a"])},
        # In 0.1, 0.02 and 0.03 of the images, by the record.
        kept(0, 500, wrong=0.5),
        {"labels": None},
        {"labels": np.array([0, 1, 2, 3])},
        {"labels": np.array(["a"], object)},
        {"epoch_3": None},
        {"epoch_1": np.zeros((4, 2), "float32")},
        {"epoch_1": np.full((4, 3), np.nan, "float32")},
        {"epoch_0": np.float32(3)},
    ],
)
def test_arrays_of_something_else_are_refused(changes, tmp_path):
    path, file = write_arrays(tmp_path, **changes)
    with pytest.raises(RecordError, match="is not what the run") as error:
        arrays_beside(path)
    assert str(error.value).startswith(str(file))


def test_arrays_that_lost_other_classes_are_refused(tmp_path):
    logits = np.eye(3, dtype="float32")[[0, 1, 1, 0]]
    path, _ = write_arrays(tmp_path, epoch_3=logits, owner=OWNER)
    write_record(tmp_path, SHORT, also={**KEPT, "lost_classes": [2]})
    assert arrays_beside(path) is not None
    write_record(tmp_path, SHORT, also={**KEPT, "lost_classes": [1]})
    with pytest.raises(RecordError, match="lost_classes: "):
        arrays_beside(path)


def test_damaged_arrays_are_refused(tmp_path):
    path, file = write_arrays(tmp_path)
    content = file.read_bytes()
    for damaged in (b"", content[:-30], content.replace(b"\x80?", b"\x81?")):
        file.write_bytes(damaged)
        with pytest.raises(RecordError, match="is not what the run"):
            arrays_beside(path)
