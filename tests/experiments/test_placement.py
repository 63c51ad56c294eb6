"""A record lies where its folders say what it is."""

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
from gar_keras.report.published import TABLES

MNIST_100 = TABLE_1[100]
RESULTS = Path(__file__).parents[2] / "results"


@pytest.mark.parametrize(("epochs", "study"), [(1, FIRST_EPOCH), (4, FASTER)])
def test_a_single_epoch_is_a_study_of_its_own(epochs, study):
    cured = FASTER.arms["clip of 1 and warm-up"]
    assert placement.shown_in(replace(cured, epochs=epochs)) == study.name


def test_a_single_epoch_that_no_study_has_is_beside_longer_ones():
    arm = replace(ABLATION.arms["b_L = 96, b_U = 32"], epochs=1)
    assert placement.shown_in(arm) == ABLATION.name


def test_the_tables_have_the_cells_of_the_paper_s():
    for table in TABLES.values():
        for column in table.columns:
            for cell in filter(None, (column.cell, column.stand_in)):
                assert placement.shown_in(PAPER[cell]) == table.name


@pytest.mark.parametrize("study", STUDIES.values(), ids=lambda s: s.name)
def test_each_study_has_its_runs(study):
    for e in study.experiments:
        shown_in = placement.shown_in(replace(e, precision="bfloat16"))
        if stands_for_paper(vars(e), e.cell) and e.epochs > 1:
            assert shown_in.startswith("table")
        else:
            assert shown_in in STUDIES


def test_of_studies_that_differ_in_epochs_the_run_s_own_counts():
    *_, arm, _, _ = BEST.experiments
    assert placement.shown_in(arm) == "best"
    assert placement.shown_in(replace(arm, epochs=4)) == "options"
    assert placement.shown_in(replace(arm, epochs=7)) == "options"


@pytest.mark.parametrize(
    ("changes", "folder"),
    [
        ({}, "mnist-100/2000+200_float32_694a14ec"),
        ({"precision": "bfloat16", "backend": "jax", "epochs": 60},
         "mnist-100/2000+60_bfloat16_jax_d260eb56"),
        ({"method": "hagr"}, "mnist-100-hagr/no-network_adf68fce"),
    ],
)  # fmt: skip
def test_folders_say_what_a_run_is(changes, folder):
    path = placement.path_of(replace(MNIST_100, **changes), 3, "r")
    assert path.as_posix() == f"r/{folder}/seed3.json"


def test_other_folders_are_not_searched(tmp_path):
    """Such as a whole clone, which has a results folder itself."""
    write_record(tmp_path / "results", MNIST_100)
    write_record(tmp_path / "runs", MNIST_100)
    assert records.read_all(tmp_path) == []


def test_records_come_by_cell_and_seed(tmp_path):
    write_record(tmp_path, NORB[300])
    for seed in (10, 2):
        write_record(tmp_path, MNIST_100, seed)
    found = [(r["cell"], r["seed"]) for r in records.read_all(tmp_path)]
    assert found == [("mnist-100", 2), ("mnist-100", 10), ("norb-300", 0)]


def test_the_reference_lies_in_its_folders():
    paths = placement.all_paths(RESULTS)
    assert paths == [
        placement.path_of_record(r, RESULTS) for r in records.read_all(RESULTS)
    ]
