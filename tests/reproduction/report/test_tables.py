"""Tables: which runs stand for a cell, claims, and a user's own runs.

Whole tables are those of the pages: see `tests/test_readme.py`.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from made_records import write_record

from reproduction import paths, records, report
from reproduction.report import long_runs, study_tables, tables
from reproduction.report.published import TABLES
from reproduction.settings import TABLE_1
from reproduction.studies import ABLATION, FIRST_EPOCH, SKEW

MNIST = replace(TABLE_1[100], epochs=20)
COLUMN = TABLES["table1"].columns[0]


def write(folder, experiment, *errors, **results):
    """Records of seeds 0, 1, ... with these errors at the chosen epoch."""
    for seed, error in enumerate(errors):
        write_record(folder, experiment, seed, chosen_error=error, **results)


def shown(folder):
    g = tables.representative(report.read_runs(folder), COLUMN)
    return (len(g), g.epochs.iloc[0]) if len(g) else None


def test_most_runs_that_are_long_enough_stand_for_a_cell(tmp_path):
    write(tmp_path, MNIST.with_term(balance=0.5), 0.01)
    assert shown(tmp_path) is None
    write(tmp_path, replace(MNIST, epochs=19), *[0.02] * 10)
    assert shown(tmp_path) == (10, 19)
    for epochs, runs, expected in (
        (20, 1, (1, 20)),
        (30, 3, (3, 30)),
        (200, 2, (3, 30)),
        (60, 3, (3, 60)),
    ):
        write(tmp_path, replace(MNIST, epochs=epochs), *[0.01] * runs)
        assert shown(tmp_path) == expected
    # What is longer is told below.
    longer = longer_in_table_1(tmp_path)
    assert longer.startswith("[1.00 ± 0.00, ")
    assert "(n = 2), 2000 + 200, seeds 0-1]" in longer
    longest = replace(MNIST, epochs=200)
    write_record(tmp_path, longest, 1, chosen_error=0.01, lost=True)
    assert "seeds 0-1, 1 of 2 lost a class]" in longer_in_table_1(tmp_path)
    # All of it, and those of the first seeds first.
    for seed in (3, 5):
        write_record(tmp_path, replace(longest, backend="jax"), seed)
    first, second = longer_in_table_1(tmp_path).split("; ")
    assert "seeds 0-1," in first
    assert "seeds 3,5]" in second


def longer_in_table_1(folder):
    frame = report.read_runs(folder)
    cells, _, _ = tables.paper_table(TABLES["table1"], frame)
    return cells.loc["more epochs: chosen and last epoch"].iloc[0]


def test_200_epochs_are_beside_shorter_runs(tmp_path):
    # A run that lost a class says nothing of others.
    write_record(tmp_path, MNIST, 1, chosen_error=0.9, lost=True)
    assert long_runs.long_runs(report.read_runs(tmp_path)) == ""
    write(tmp_path, MNIST, 0.04, last_error=0.04)
    whole = replace(MNIST, epochs=200)
    write(tmp_path, whole, 0.02, last_error=0.01)
    (row,) = rows_of_long_runs(tmp_path)
    # An epoch takes 36 seconds.
    assert row.split(" | ") == [
        f"| [100 labels]({paths.path_of(whole, 0, '')})",
        f"[2000 + 20]({paths.path_of(MNIST, 0, '')})",
        "4.00 (4.00 to 4.00)", "2.00", "2.00", "1.95", "1.00", "2.00",
        "0 of 1", "0", "2.0", "Some CPU (2 cores)", "1.56 ± 0.09 |",
    ]  # fmt: skip
    # One of two loses a class; those of another backend have their row.
    lost = {"chosen_error": 0.9, "last_error": 0.8, "lost": True}
    write_record(tmp_path, whole, 1, **lost)
    write(tmp_path, replace(whole, backend="jax"), 0.03)
    row, other = rows_of_long_runs(tmp_path)
    assert "| 2.00 | 2.00 | 1.95 | 40.50 ± 55.86 |" in row
    assert "| 1 of 2; without 2.00 | 0-1 |" in row
    assert "| 0 of 1 | 0 |" in other
    # Then both do.
    write_record(tmp_path, whole, 0, **lost)
    row, _ = rows_of_long_runs(tmp_path)
    assert "| 4.00 (4.00 to 4.00) | - | - | - | 80.00 ± 0.00 |" in row


def rows_of_long_runs(folder):
    return long_runs.long_runs(report.read_runs(folder)).splitlines()[2:]


def test_the_line_of_runs_is_through_what_falls_as_a_power():
    epochs = np.arange(1, 41)
    # Early epochs are no part of it.
    falling = [0.5] * 10 + [*0.1 * epochs[9:] ** -0.5]
    g = pd.DataFrame({"curve": [{"test_error": falling}]})
    assert long_runs.line(g) == pytest.approx(10 * 200**-0.5)


def test_differences_are_of_the_seeds_that_both_have():
    found = pd.Series([5.0, 6.0, None]) - pd.Series([4.0, 4.5, 1.0])
    assert tables.change(found) == "+1.25 ± 0.35 (n = 2)"
    assert tables.change(found[2:]) == "-"


@pytest.mark.parametrize(
    ("errors", "expected", "found"),
    [
        # 1.5 ± 4.303 * 0.5 / √3 is above 0,
        ((1, 2, 1.5), "higher", "holds"),
        ((1, 2, 1.5), "lower", "contradicted"),
        ((-1, -2, -1.5), None, "lower"),
        # and 1.5 ± 4.303 * 0.7 / √3 is not, though each seed is.
        ((0.8, 2.2, 1.5), "higher", "no difference shown"),
        ((5, 5), "higher", "undecided (n = 2)"),
    ],
)
def test_a_verdict_by_hand(tmp_path, errors, expected, found):
    # Errors in the last epoch, in percent above 4, 5 and 6 of the paper's.
    name = "c_β = 0"
    claims = {name: replace(ABLATION.claims[name], expected=expected)}
    study = replace(ABLATION, claims=claims)
    paper = ABLATION.arms[claims[name].against]
    for seed, more in enumerate(errors):
        base = 0.04 + seed / 100
        write_record(tmp_path, paper, seed, last_error=base)
        error = base + more / 100
        write_record(tmp_path, ABLATION.arms[name], seed, last_error=error)
    g = study_tables.claim_runs(study, name, report.read_runs(tmp_path))
    assert study_tables.verdict(g) == found


@pytest.mark.parametrize(
    ("own_seeds", "longer_seeds", "expected"),
    [(3, 4, "own"), (2, 3, "longer"), (1, 1, "own"), (0, 1, "longer")],
)
def test_a_study_keeps_its_own_epochs(
    tmp_path, own_seeds, longer_seeds, expected
):
    # Unless others are nearer to the seeds that a verdict needs.
    name = "c_β = 0"
    arm = ABLATION.arms[name]
    longer = replace(arm, epochs=arm.epochs + 20)
    write(tmp_path, arm, *[0.05] * own_seeds)
    write(tmp_path, longer, *[0.05] * longer_seeds)
    g = study_tables.claim_runs(ABLATION, name, report.read_runs(tmp_path))
    epochs = {"own": arm.epochs, "longer": longer.epochs}
    assert set(g.epochs) == {epochs[expected]}


def test_a_run_is_beside_the_paper_s_after_as_many_steps(tmp_path):
    name = "b_L = 96, b_U = 32"
    paper = ABLATION.arms[ABLATION.claims[name].against]
    arm = replace(ABLATION.arms[name], epochs=1)
    # Half way between epochs 3 and 4, of the run from the same stage 1.
    for epochs, start in ((5, 0.2), (8, 0.1)):
        write_record(
            tmp_path, replace(paper, epochs=epochs), baseline_error=start
        )
    path = next(tmp_path.glob("*/*+8_*/seed0.json"))
    record = records.read(path)
    record["regularization"]["curve"]["test_error"][3:5] = [0.06, 0.08]
    records.write(path, record)
    write_record(tmp_path, arm)
    g = study_tables.claim_runs(ABLATION, name, report.read_runs(tmp_path))
    assert (g.epoch.item(), g.by_then.item()) == pytest.approx((3.5, 7.0))


@pytest.mark.parametrize(
    ("start", "validation", "noted"),
    [(0.1, 0.1, False), (0.2, 0.1, True), (0.1, 0.2, True)],
)
def test_another_end_of_stage_1_is_noted(tmp_path, start, validation, noted):
    # The test error may be the same by chance.
    name = "c_β = 0"
    paper = ABLATION.arms[ABLATION.claims[name].against]
    write_record(tmp_path, ABLATION.arms[name], baseline_error=0.1)
    path = write_record(tmp_path, paper, baseline_error=start)
    record = records.read(path)
    record["regularization"]["curve"]["val_error"][0] = validation
    records.write(path, record)
    frame = report.read_runs(tmp_path)
    _, notes, _ = study_tables.study_table(ABLATION, frame)
    note = "From another end of stage 1 than beside it: c_β = 0 (seed 0)."
    assert (note in notes) == noted


def test_starts_are_compared_where_neither_loses_a_class(tmp_path):
    paper, cured = [*FIRST_EPOCH.arms.values()][:2]
    for arm, restart, lost, error in (
        (paper, 0, [1], 0.3),
        (paper, 1, [], 0.1),
        # One that noted neither.
        (paper, 2, None, 0.1),
        (cured, 0, [], 0.1),
        (cured, 1, [], 0.12),
    ):
        also = {"lost_classes": lost, "dead_outputs": lost}
        write(
            tmp_path,
            replace(arm, restart=restart),
            error,
            last_error=error,
            also=also,
        )
    frame = report.read_runs(tmp_path)
    cells, *_ = study_tables.study_table(FIRST_EPOCH, frame, whole=True)
    papers, cure = cells.to_dict("records")
    assert papers["initializations"] == "3"
    assert papers["lost a class"] == papers["had a dead output"] == "1 of 2"
    assert papers["where no class is lost"] == "10.00 (n = 1)"
    assert cure["lost a class"] == "0 of 2"
    assert cure["against the paper's, where neither loses one"] == (
        "+2.00 (n = 1)"
    )


@pytest.mark.parametrize(
    ("show", "titles", "page"),
    [
        (
            partial(report.show_table, TABLES["table1"]),
            [TABLES["table1"].title],
            "docs/reproduction.md",
        ),
        # None of these runs is in it, and one method is no comparison.
        (partial(report.show_study, SKEW), [], "results/studies.md"),
        (report.show_baselines, [], "docs/methods.md"),
    ],
)
def test_a_user_s_runs_come_first(
    show, titles, page, tmp_path, monkeypatch, capsys
):
    mine, reference = tmp_path / "mine", tmp_path / "reference"
    monkeypatch.setattr(paths, "reference", lambda: reference)
    monkeypatch.setattr(report.pictures, "draw", lambda *args: [])
    write(reference, MNIST, 0.015, 0.017)
    write(mine, replace(MNIST, epochs=3), 0.0456)
    write(mine, MNIST.with_term(balance=0.5), 0.0789)
    show(records.read_all(mine).values(), mine)
    ours, *tables, link = capsys.readouterr().out.split("\n\n")
    title, _, changed, short = ours.splitlines()
    assert title == "Your runs: test error in percent"
    assert "4.56" in short and "1.56 ± 0.09" in short
    assert "balance 0.5" in changed and "7.89" in changed
    assert [table.splitlines()[0] for table in tables] == titles
    assert link == f"The project's own: {paths.of_clone(page)}\n"
    for table in tables:
        # Below the numbers of labels.
        first = table.splitlines()[2]
        assert first.startswith("Pretraining (baseline), yours")
        assert "1.60" not in table
