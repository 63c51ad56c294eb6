"""Verdicts on the paper's claims, from made-up records."""

from dataclasses import replace

import pytest
from made_records import write_record

from gar_keras import report
from gar_keras.experiments import records
from gar_keras.experiments.studies import ABLATION
from gar_keras.report.claims import verdict
from gar_keras.report.overview import rows_of

PAPER, PAPER_1000 = dict.fromkeys(c.against for c in ABLATION.claims.values())
BASE = {0: 0.04, 1: 0.05, 2: 0.06}


def moved(*points):
    return {seed: BASE[seed] + p / 100 for seed, p in enumerate(points)}


@pytest.mark.parametrize(
    ("errors", "expected", "found"),
    [
        # 1.5 ± 4.303 * 0.5 / √3 is above 0,
        (moved(1, 2, 1.5), "higher", "holds"),
        (moved(1, 2, 1.5), "lower", "contradicted"),
        (moved(-1, -2, -1.5), "lower", "holds"),
        (moved(-1, -2, -1.5), None, "lower"),
        # and 1.5 ± 4.303 * 0.7 / √3 is not, though each seed is.
        (moved(0.8, 2.2, 1.5), "higher", "no difference shown"),
        (moved(50, 50, -0.1), None, "no difference shown"),
        (moved(5, 5), "higher", "undecided (n = 2)"),
        ({3: 0.9}, "higher", "undecided (n = 0)"),
    ],
)
def test_a_verdict_by_hand(errors, expected, found):
    assert verdict(expected, BASE, errors) == found


def table(folder):
    """The rows by what was changed, and the text below them."""
    part = report.study_part(ABLATION)
    text = part.markdown(records.read_all(folder), folder)
    rows = [[*row.row] for row in rows_of(text)]
    return {row[0]: row[1:] for row in rows if len(row) == 9}, text


def write(folder, name, errors, epochs=None, precision="bfloat16"):
    """Records of a row: errors at the last epoch by seed, 50 % before."""
    arm = replace(ABLATION.arms[name], precision=precision)
    arm = replace(arm, epochs=epochs or arm.epochs)
    return [
        write_record(folder, arm, seed, chosen_error=0.5, last_error=error)
        for seed, error in errors.items()
    ]


def test_each_claim_has_its_row(tmp_path):
    write(tmp_path, PAPER, BASE)
    write(tmp_path, "c_β = 0", moved(40, 40, 40))
    rows, text = table(tmp_path)
    assert rows["c_β = 0"] == [
        "a balancing constraint is required to prevent collapsing (3.2)",
        "10",
        "50.00 ± 0.00 (n = 3)",
        "45.00 ± 1.00 (n = 3)",
        "5.00 ± 1.00 (n = 3), epoch 10",
        "+40.00 ± 0.00 (n = 3), 40.00 to 40.00",
        "0 of 3",
        "holds",
    ]
    others = ABLATION.claims.keys() - {"c_β = 0"}
    assert {tuple(rows[name][1:]) for name in others} == {
        (*"------", "not run")
    }
    assert "seeds 0-2, 2000 + 10 epochs, bfloat16" in text


def test_the_papers_stage_2_is_taken_after_as_many_steps(tmp_path):
    # Its run is at 50 % until its last epoch.
    write(tmp_path, PAPER, {0: 0.02}, epochs=11)
    write(tmp_path, "b_L = 96, b_U = 32", {0: 0.04}, epochs=3)
    write(tmp_path, "b_L = 64, b_U = 64", {0: 0.04}, epochs=7)
    write(tmp_path, "batches of 32, b_L = 4", {0: 0.04}, epochs=11)
    rows, _ = table(tmp_path)
    last = slice(3, 6)
    assert rows["b_L = 96, b_U = 32"][last] == [
        "4.00 (n = 1)",
        "26.00 (n = 1), epoch 10.5",
        "-22.00 (n = 1)",
    ]
    # After 12.25 epochs there is none, and the size of a batch decides.
    assert rows["b_L = 64, b_U = 64"][last][1:] == ["-", "-"]
    assert rows["batches of 32, b_L = 4"][last][1] == "2.00 (n = 1), epoch 11"


def test_the_papers_stage_2_is_of_the_same_labels_and_precision(tmp_path):
    write(tmp_path, PAPER, BASE, precision="float32")
    write(tmp_path, PAPER_1000, {0: 0.02}, epochs=30)
    write(tmp_path, "c_F = 0", BASE)
    write(tmp_path, "m_L = 1000, b_L = 96, b_U = 32", {0: 0.01, 1: 0.01})
    rows, _ = table(tmp_path)
    assert rows["c_F = 0"][-1] == "undecided (n = 0)"
    assert rows["m_L = 1000, b_L = 96, b_U = 32"][-4:] == [
        "50.00 (n = 1), epoch 7",
        "-49.00 (n = 1)",
        "0 of 2",
        "undecided (n = 1)",
    ]


def test_the_papers_stage_2_is_from_the_same_start_if_there_is_one(tmp_path):
    def begun(name, seed, start, chosen_error, epochs=10):
        arm = replace(ABLATION.arms[name], precision="bfloat16", epochs=epochs)
        write_record(
            tmp_path,
            arm,
            seed,
            baseline_error=start,
            chosen_error=chosen_error,
            last_error=chosen_error,
        )

    begun(PAPER, 0, start=0.2, chosen_error=0.03)
    begun(PAPER, 0, start=0.3, chosen_error=0.04, epochs=11)
    begun(PAPER, 1, start=0.4, chosen_error=0.06)
    begun("c_F = 0", 0, start=0.3, chosen_error=0.07)
    begun("c_F = 0", 1, start=0.45, chosen_error=0.07)
    rows, text = table(tmp_path)
    assert rows["c_F = 0"][4].startswith("5.00 ± 1.41 (n = 2)")
    assert (
        "c_F = 0: stage 1 of seed 1 was trained apart, and ended at 45.00 % "
        "here and at 40.00 % before the paper's stage 2"
    ) in text
    assert "stage 1 of seed 0" not in text


def test_seeds_for_a_verdict_count_more_than_epochs(tmp_path):
    write(tmp_path, "c_α = 0", BASE, epochs=3)
    write(tmp_path, "c_α = 0", {0: 0.3, 1: 0.3}, epochs=20)
    rows, _ = table(tmp_path)
    assert rows["c_α = 0"][1] == "3"


def test_claims_are_printed_and_written(tmp_path, capsys):
    paths = write(tmp_path, "c_α = 0", BASE)
    part = report.study_part(ABLATION)
    part.show([records.read(path) for path in paths], tmp_path)
    assert "5.00 ± 1.00" in capsys.readouterr().out
    text = (tmp_path / "study_ablation.md").read_text("utf-8")
    assert text == table(tmp_path)[1]
    assert part.markdown([], tmp_path) == ""


def test_a_difference_without_the_seeds_that_lost_a_class(tmp_path):
    paths = write(tmp_path, PAPER, BASE)
    write(tmp_path, "c_F = 0", moved(1, 2, 40))
    _, text = table(tmp_path)
    assert "one of the two runs lost a class" not in text
    run = records.read(paths[2])
    run["regularization"]["curve"]["balance"][-1] = 0.5
    records.write(paths[2], run)
    rows, text = table(tmp_path)
    # All runs count in the row itself.
    assert rows["c_F = 0"][5].startswith("+14.33 ± 22.23 (n = 3)")
    assert (
        "without the seeds on which one of the two runs lost a class: "
        "c_F = 0 +1.50 ± 0.71 (n = 2), -4.85 to 7.85"
    ) in text
