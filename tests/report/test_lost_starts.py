"""How often the first epoch loses a class, from made-up records."""

from dataclasses import replace

import pytest
from made_records import make_record

from gar_keras import report
from gar_keras.experiments import folders, records
from gar_keras.experiments.placement import path_of
from gar_keras.experiments.studies import FIRST_EPOCH
from gar_keras.report.first_epoch import (
    HEADING,
    first_epoch_markdown,
    first_epoch_rows,
    wilson_interval,
)
from gar_keras.report.lost import has_emptied, lost_class, lost_classes

PAPERS, _, _, CURED = [*FIRST_EPOCH.arms.values()][:4]
KEPT = [[5.0, 4.0, 6.0], [5.0, 4.0, 6.0]]
LOST = [[5.0, 4.0, 6.0], [5.0, 1e-5, 6.0]]
CAME_BACK = [[5.0, 0.0, 6.0], [5.0, 4.0, 6.0]]


def start(arm, seed, v, error=0.1, restart=0):
    record = make_record(
        replace(arm, restart=restart), seed, error, error, baseline_error=0.2
    )
    record["first_epoch"] = {
        "step": [0, 5],
        "v": v,
        "affinity": [0.2, 0.1],
        "balance": [0.8, 0.9],
        "top_logit": [20.0, 5.0],
        "gradient_norm": [2.0, 4.0],
        "error_step": [0, 6],
        "test_error": [0.2, error],
    }
    return record


def test_a_class_without_energy_at_the_end_is_lost():
    assert lost_classes(start(PAPERS, 0, KEPT)) == []
    assert lost_classes(start(PAPERS, 0, LOST)) == [1]
    assert lost_class(start(PAPERS, 0, LOST))
    came_back = start(PAPERS, 0, CAME_BACK)
    assert lost_classes(came_back) == []
    assert has_emptied(came_back)
    assert not has_emptied(start(PAPERS, 0, KEPT))


@pytest.mark.parametrize(
    ("successes", "n", "expected"),
    # Newcombe (1998), table I, for 81 of 263, 15 of 148, 0 of 20, 1 of 29.
    [
        (81, 263, (0.2553, 0.3662)),
        (15, 148, (0.0624, 0.1605)),
        (0, 20, (0.0, 0.1611)),
        (1, 29, (0.0061, 0.1718)),
    ],
)
def test_wilsons_interval_as_published(successes, n, expected):
    assert wilson_interval(successes, n) == pytest.approx(expected, abs=5e-5)


def test_the_row_of_an_arm_by_hand():
    found = [
        start(PAPERS, 0, LOST, error=0.3),
        start(PAPERS, 0, KEPT, error=0.1, restart=1),
        start(PAPERS, 1, CAME_BACK, error=0.2),
        start(CURED, 0, KEPT, error=0.1),
        start(CURED, 0, KEPT, error=0.12, restart=1),
    ]
    rows = [
        dict(zip(HEADING, row, strict=True))
        for row in first_epoch_rows(FIRST_EPOCH, found)
    ]
    papers, cured = rows
    assert papers["starts"] == "3"
    assert papers["emptied a class"] == "2 of 3"
    assert papers["lost a class"] == "1 of 3"
    assert papers["classes lost"] == "1"
    assert papers["after the epoch"] == "20.00 ± 10.00 (n = 3)"
    assert papers["where no class is lost"] == "15.00 ± 7.07 (n = 2)"
    assert cured["lost a class"] == "0 of 2"
    # Start (0, 0) is left out: the paper's loses a class there.
    assert cured[HEADING[-1]] == "+2.00 (n = 1)"


def test_starts_of_two_backends_are_not_mixed():
    jax = replace(PAPERS, backend="jax")
    found = [
        start(jax, 0, LOST),
        start(PAPERS, 1, KEPT),
        start(PAPERS, 2, LOST),
    ]
    (row,) = first_epoch_rows(FIRST_EPOCH, found)
    assert row[1] == "2"
    text = first_epoch_markdown(FIRST_EPOCH, found)
    assert "precision or backend: float32, jax, runs: 1" in text


def test_nothing_run_is_no_table():
    assert first_epoch_markdown(FIRST_EPOCH, []) == ""


def test_the_study_is_printed_with_that_of_the_reference(
    tmp_path, monkeypatch, capsys
):
    mine, reference = tmp_path / "mine", tmp_path / "reference"
    monkeypatch.setattr(folders, "reference", lambda: reference)
    theirs = start(PAPERS, 0, KEPT, error=0.0123)
    records.write(path_of(PAPERS, 0, reference), theirs)
    report.show_study(FIRST_EPOCH, [start(PAPERS, 0, KEPT, error=0.0456)], mine)
    above, _, below = capsys.readouterr().out.partition("Reference: ")
    assert "4.56" in above and "1.23" not in above
    assert "1.23" in below
