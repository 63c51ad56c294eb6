"""GAR and other methods on features: rows, records, what is skipped."""

from dataclasses import replace

import keras
import numpy as np
import pytest

from gar_keras.experiments import other_data
from gar_keras.experiments.other_data import Settings
from gar_keras.report import other_data as shown

QUICK = Settings(
    "wine",
    methods=("gar", "entropy", "label-spreading"),
    seeds=(0,),
    pretrain_epochs=1,
    epochs=1,
)


def test_rows_are_scaled_by_what_is_trained_on_and_labelled_evenly():
    x = np.arange(60.0).reshape(30, 2) ** 2
    x[:, 1] = 7.0
    y = np.arange(30) % 3
    settings = replace(QUICK, labels_per_class=2)
    rows = other_data.split(settings, x, y, seed=1)
    assert rows.x.shape == (20, 2) and rows.x_test.shape == (10, 2)
    np.testing.assert_allclose(rows.x.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(rows.x.std(axis=0), [1, 0], atol=1e-6)
    assert np.bincount(rows.y_labeled).tolist() == [2, 2, 2]
    # The first feature tells which row it is: its order is theirs.
    both = np.concatenate([rows.x, rows.x_test])[:, 0]
    of_row = dict(zip(np.sort(both), y, strict=True))
    assert len(of_row) == 30
    assert [of_row[v] for v in rows.x_test[:, 0]] == rows.y_test.tolist()
    assert [of_row[v] for v in rows.x[rows.chosen, 0]] == (
        rows.y_labeled.tolist()
    )
    again = other_data.split(settings, x, y, seed=2)
    assert not np.array_equal(again.x_test, rows.x_test)


@pytest.mark.slow
def test_a_run_is_recorded_shown_and_skipped(tmp_path):
    told = []
    record = other_data.run(QUICK, tmp_path, told.append)
    names = ["stage 1", "gar", "entropy", "label-spreading"]
    assert [run["method"] for run in record["runs"]] == names
    assert all(0 <= run["test_error"] <= 1 for run in record["runs"])
    assert record["settings"]["learning_rate"] == 0.01
    assert record["environment"]["keras"]
    table = shown.on_page((), tmp_path)
    assert "| labelled rows | [15](other_data/wine.json) |" in table
    assert table.count("](other_data/wine.json)") == 3 + len(names)
    path = other_data.path_of("wine", tmp_path)
    assert other_data.run(QUICK, tmp_path, told.append) == record
    assert told[-1] == f"wine is finished: {path}"
    with pytest.raises(ValueError, match="made with other settings"):
        other_data.run(replace(QUICK, epochs=2), tmp_path)


@pytest.mark.slow
def test_a_run_that_diverges_does_not_lose_those_before_it(
    tmp_path, monkeypatch
):
    def diverge(*_):
        raise FloatingPointError

    told = []
    settings = replace(QUICK, methods=("label-spreading",))
    with monkeypatch.context() as patch:
        patch.setattr(other_data, "_inferred", diverge)
        with pytest.raises(FloatingPointError):
            other_data.run(settings, tmp_path, told.append)
    record = other_data.run(settings, tmp_path, told.append)
    names = ["stage 1", "label-spreading"]
    # Each is told of once, when it is made.
    assert [text.split(": ")[0] for text in told] == [
        f"wine, seed 0, {name}" for name in names
    ]
    assert [run["method"] for run in record["runs"]] == names
    assert not [*(tmp_path / ".checkpoints").iterdir()]


def test_at_equal_time_a_slow_method_has_fewer_epochs(monkeypatch):
    taken = {"gar": 0.02, "entropy": 0.01, "vat": 0.05}
    monkeypatch.setattr(
        other_data,
        "_seconds_per_epoch",
        lambda settings, method, *_: taken[method],
    )
    settings = replace(QUICK, methods=(*taken, "label-spreading"), epochs=100)
    network = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3)])

    def epochs(settings):
        return other_data._epochs(settings, network, None, 0)

    assert epochs(replace(settings, equal="time")) == {
        "gar": 100,
        "entropy": 200,
        "vat": 40,
    }
    assert epochs(settings) == dict.fromkeys(taken, 100)


@pytest.mark.slow
def test_at_equal_time_each_run_tells_its_epochs(tmp_path):
    settings = replace(QUICK, methods=("gar", "supervised"), equal="time")
    record = other_data.run(settings, tmp_path, str)
    assert (tmp_path / "other_data" / "wine_equal-time.json").exists()
    _, first, other = record["runs"]
    assert first["epochs"] == 1
    assert other["epochs"] >= 1
    assert "at equal time" in shown.on_page((), tmp_path)
