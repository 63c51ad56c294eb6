"""A record lies where its folders say what it is, and is found elsewhere."""

from dataclasses import replace
from pathlib import Path

import pytest
from made_records import write_record

from gar_keras.experiments import placement, records
from gar_keras.experiments.settings import (
    NORB,
    PAPER,
    TABLE_1,
    stands_for_paper,
)
from gar_keras.experiments.studies import (
    ABLATION,
    BEST,
    FASTER,
    FIRST_EPOCH,
    STUDIES,
)
from gar_keras.experiments.variations import DataConditions
from gar_keras.report.published import TABLES

MNIST_100 = TABLE_1[100]
RESULTS = Path(__file__).parents[2] / "results"
EVERYTHING = {"supervised": 1.0, "shift": 2, "affine": 0.25, "vat": 1.0}


@pytest.mark.parametrize(
    ("changes", "folder"),
    [
        ({}, "table1/mnist-100/2000+200"),
        ({"precision": "bfloat16", "backend": "jax", "epochs": 60},
         "table1/mnist-100/2000+60_bfloat16_jax"),
        ({"num_labeled": 200}, "table1/mnist-200/2000+200"),
        ({"method": "vat", "stage_2_rate": 0.001},
         "rivals/mnist-100-vat/2000+200_stage-2-rate-0.001"),
        ({"method": "hagr"}, "rivals/mnist-100-hagr/no-network"),
        ({"balance": 0.0, "world": DataConditions(labels_drawn="random")},
         "table1/mnist-100/2000+200_balance-0_labels-drawn-random"),
        ({"class_prior": (0.1,) * 10},
         "table1/mnist-100/2000+200_class-prior"),
        ({"affinity": 0.0, "balance": 0.0, "frobenius": 0.0},
         "table1/mnist-100/2000+200_without-gar"),
        ({"dataset": "digits", "num_validation": 200},
         "digits/digits-100/2000+200"),
        ({"dataset": "new"}, "new/new-100/2000+200"),
    ],
)  # fmt: skip
def test_folders_say_what_a_run_is(changes, folder):
    found = placement.folder_of(replace(MNIST_100, **changes))
    assert found.as_posix() == folder


@pytest.mark.parametrize(("epochs", "study"), [(1, FIRST_EPOCH), (4, FASTER)])
def test_a_single_epoch_is_a_study_of_its_own(epochs, study):
    cured = FASTER.arms["clip of 1 and warm-up"]
    assert placement.shown_in(replace(cured, epochs=epochs)) == study.name


def test_a_single_epoch_that_no_study_has_is_beside_longer_ones():
    arm = replace(ABLATION.arms["b_L = 96, b_U = 32"], epochs=1)
    assert placement.shown_in(arm) == ABLATION.name


def test_values_give_way_where_there_is_no_room():
    rates = {"learning_rate": 0.002, "momentum": 0.9, "decay": 0.0}
    few = placement.folder_of(replace(MNIST_100, **rates)).name
    assert few == "2000+200_decay-0_learning-rate-0.002_momentum-0.9"
    more = {**rates, "batch_size": 64, "images_per_epoch": 1000}
    names = placement.folder_of(replace(MNIST_100, **more)).name
    assert names == (
        "2000+200_batch-size_decay_images-per-epoch_learning-rate_momentum"
    )
    most = {**more, "num_validation": 500, "pretrain_shift": 2}
    cut = placement.folder_of(replace(MNIST_100, **most)).name
    assert cut == ("2000+200_batch-size_decay_images-per-epoch_and-4-more")


def test_the_tables_have_the_cells_of_the_paper_s():
    for table in TABLES.values():
        for column in table.columns:
            for cell in filter(None, (column.cell, column.stand_in)):
                assert placement.shown_in(PAPER[cell]) == table.name


@pytest.mark.parametrize("study", STUDIES.values(), ids=lambda s: s.name)
def test_each_study_has_its_runs(study):
    for e in study.experiments:
        shown_in = placement.shown_in(replace(e, precision="bfloat16"))
        if stands_for_paper(vars(e), e.cell) and not e.is_traced:
            assert shown_in.startswith("table")
        else:
            assert shown_in in STUDIES
        path = Path("results", placement.folder_of(e), e.file_name(0))
        assert len(str(path)) <= 120


def test_of_studies_that_differ_in_epochs_the_run_s_own_counts():
    *_, arm, _, _ = BEST.experiments
    assert placement.shown_in(arm) == "best"
    assert placement.shown_in(replace(arm, epochs=4)) == "options"
    assert placement.shown_in(replace(arm, epochs=7)) == "options"


@pytest.mark.parametrize("folder", ["", "some/mnist-100/other"])
def test_a_record_is_found_where_it_lies(folder, tmp_path):
    expected = tmp_path / placement.folder_of(MNIST_100)
    path = placement.path_of(MNIST_100, 3, tmp_path)
    assert path == expected / MNIST_100.file_name(3)
    lies = write_record(tmp_path / folder, MNIST_100, 3)
    assert placement.path_of(MNIST_100, 3, tmp_path) == lies
    (record,) = records.read_all(tmp_path)
    assert placement.path_of_record(record, tmp_path) == lies


def test_other_folders_are_not_searched(tmp_path):
    """Such as a whole clone, which has a results folder itself."""
    deeper = tmp_path / "results" / placement.folder_of(MNIST_100)
    write_record(deeper, MNIST_100)
    write_record(tmp_path / "runs", MNIST_100)
    assert records.read_all(tmp_path) == []
    assert not placement.path_of(MNIST_100, 0, tmp_path).exists()


def test_records_come_in_the_order_of_their_names(tmp_path):
    write_record(tmp_path / "a/a/a", TABLE_1[600])
    write_record(tmp_path / "b/b/b", MNIST_100)
    write_record(tmp_path, NORB[300])
    found = records.read_all(tmp_path)
    assert [r["cell"] for r in found] == ["mnist-100", "mnist-600", "norb-300"]


def test_a_run_in_two_folders_does_not_count_twice(tmp_path):
    first = write_record(tmp_path, MNIST_100)
    second = write_record(tmp_path / "a/b/c", MNIST_100)
    with pytest.raises(records.RecordError, match="holds the run that") as e:
        records.read_all(tmp_path)
    assert str(first) in str(e.value) and str(second) in str(e.value)


def test_records_are_sorted_in(tmp_path):
    vat = replace(MNIST_100, method="vat")
    flat = write_record(tmp_path, MNIST_100)
    for suffix in (".npz", ".keras"):
        flat.with_suffix(suffix).write_text(suffix)
    (tmp_path / "table1.md").write_text("")
    elsewhere = write_record(tmp_path / "a/b/c", vat)
    right = write_record(tmp_path / placement.folder_of(NORB[300]), NORB[300])
    moved = dict(records.sort_in(tmp_path))
    assert moved == {
        flat: tmp_path / placement.folder_of(MNIST_100) / flat.name,
        elsewhere: tmp_path / placement.folder_of(vat) / elsewhere.name,
    }
    assert right.exists() and len(records.read_all(tmp_path)) == 3
    for suffix in (".npz", ".keras"):
        assert moved[flat].with_suffix(suffix).read_text() == suffix
    assert {p.name for p in tmp_path.iterdir()} == {
        "rivals", "table1", "table1.md", "table3"
    }  # fmt: skip
    assert records.sort_in(tmp_path) == []


def test_the_reference_lies_in_its_folders():
    # If not: python scripts/report.py
    for record in records.read_all(RESULTS):
        path = placement.path_of_record(record, RESULTS)
        experiment = records.Experiment(**record["experiment"])
        assert path.parent == RESULTS / placement.folder_of(experiment)
