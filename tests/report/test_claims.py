"""Verdicts on the paper's claims, from made-up records."""

from dataclasses import replace

from made_records import write_record
import pytest

from gar_keras import report
from gar_keras.experiments import records
from gar_keras.experiments.studies import ABLATION
from gar_keras.report.claims import verdict

BASE = {0: 0.04, 1: 0.05, 2: 0.06}


def moved(*points):
    return {seed: BASE[seed] + p / 100 for seed, p in enumerate(points)}


@pytest.mark.parametrize(
    ("errors", "expected", "found"),
    [
        (moved(1, 2, 1), "higher", "holds"),
        (moved(1, 2, 1), "lower", "contradicted"),
        (moved(-1, -2, -1), "lower", "holds"),
        (moved(-1, -2, -1), None, "lower"),
        # Not on each seed, however much on the others.
        (moved(50, 50, -0.1), "higher", "no difference"),
        # No more than the seeds of the paper's stage 2 differ.
        (moved(0.5, 0.5, 0.5), "higher", "no difference"),
        (moved(5, 5), "higher", "undecided (n = 2)"),
        ({3: 0.9}, "higher", "undecided (n = 0)"),
        ({}, "higher", "not run"),
    ],
)
def test_a_verdict_by_hand(errors, expected, found):
    assert verdict(expected, BASE, errors) == found


def test_no_verdict_without_the_papers_stage_2():
    assert verdict("higher", {}, BASE) == "not run"


def cells(folder):
    text = report.study_markdown(ABLATION, records.read_all(folder), folder)
    rows = [line[2:-2].split(" | ") for line in text.splitlines()]
    return {row[0]: row for row in rows if len(row) == 7}, text


def test_each_claim_has_its_row(tmp_path):
    paper, no_balance = (
        replace(ABLATION.arms[name], precision="bfloat16")
        for name in ("the paper's stage 2", "c_β = 0")
    )
    for seed, error in BASE.items():
        write_record(tmp_path, paper, seed, last_error=error)
        write_record(
            tmp_path,
            no_balance,
            seed,
            chosen_error=0.5,
            last_error=error + 0.4,
        )
    rows, text = cells(tmp_path)
    assert rows["c_β = 0"] == [
        "c_β = 0",
        "a balancing constraint is required to prevent collapsing (3.2)",
        "50.00 ± 0.00 (n = 3)",
        "45.00 ± 1.00 (n = 3)",
        "+40.00 ± 0.00 (n = 3)",
        "0 of 3",
        "holds",
    ]
    assert rows["the paper's stage 2"][3] == "5.00 ± 1.00 (n = 3)"
    others = ABLATION.claims.keys() - {"c_β = 0"}
    assert {rows[name][-1] for name in others} == {"not run"}
    assert "A verdict is on the error at the last epoch" in text


def test_nothing_is_shown_without_records(tmp_path):
    assert report.study_markdown(ABLATION, [], tmp_path) == ""


def test_more_labels_are_compared_with_the_same_number():
    few, many = (
        ABLATION.claims["c_F = 0"],
        ABLATION.claims["m_L = 1000, b_L = 96, b_U = 32"],
    )
    labels = [ABLATION.arms[c.against].num_labeled for c in (few, many)]
    assert labels == [100, 1000]
