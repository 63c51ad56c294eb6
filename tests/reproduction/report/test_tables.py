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
from reproduction.report import (
    cells,
    confusions,
    lost_starts,
    study_tables,
    tables,
)
from reproduction.report.estimates import MISSING
from reproduction.report.published import TABLES
from reproduction.settings import SVHN, TABLE_1
from reproduction.studies import ABLATION, FIRST_EPOCH, SKEW

MNIST = replace(TABLE_1[100], epochs=20)
COLUMN = TABLES["table1"].columns[0]


def write(folder, experiment, *errors, **results):
    """Records of seeds 0, 1, ... with these errors at the chosen epoch."""
    for seed, error in enumerate(errors):
        write_record(folder, experiment, seed, chosen_error=error, **results)


def test_the_paper_s_length_comes_first_then_most_runs(tmp_path):
    write(tmp_path, MNIST.with_term(balance=0.5), 0.01)
    gpu = {"device": "GPU", "device_kind": "gpu", "cores": 16}
    for epochs, seeds, environment, expected in (
        (19, range(10), None, [(10, 19, "CPU")]),
        # Long enough for the mean of the last epochs.
        (20, range(1), None, [(1, 20, "CPU")]),
        (30, range(3), None, [(3, 30, "CPU")]),
        (200, range(2), None, [(2, 200, "CPU")]),
        # Each device has a row, of one experiment too; most runs come first.
        (200, [7], gpu, [(2, 200, "CPU"), (1, 200, "GPU")]),
        (200, [8, 9], gpu, [(3, 200, "GPU"), (2, 200, "CPU")]),
    ):
        for seed in seeds:
            also = {"environment": environment} if environment else {}
            e = replace(MNIST, epochs=epochs)
            write_record(tmp_path, e, seed, also=also)
        groups = tables.runs_of_cell(report.read_runs(tmp_path), COLUMN)
        found = [(len(g), g.epochs.iloc[0], g.device.iloc[0]) for g in groups]
        assert found == expected


def test_the_paper_s_length_is_that_of_its_settings(tmp_path):
    for epochs in (200, 100):
        write(tmp_path, replace(SVHN, epochs=epochs), 0.09)
    column = TABLES["table3"].columns[0]
    [g] = tables.runs_of_cell(report.read_runs(tmp_path), column)
    assert g.epochs.tolist() == [100]


def rows_of(text):
    """The cells of a table in Markdown, by heading, a dict for each row."""
    lines = [line[2:-2].split(" | ") for line in text.splitlines()]
    names, _, *rows = lines
    return [dict(zip(names, row, strict=True)) for row in rows]


@pytest.mark.parametrize(
    ("errors", "difference", "answers"),
    [
        # 1.4, 1.5, 1.6: the paper's 1.56 ± 0.09 of 10. Variances of the means
        # of 0.01 / 3 and 0.0081 / 10: an error of 0.0644, 3.0 degrees of
        # freedom, t of 2.35 for 5 %.
        ((1.4, 1.5, 1.6), "-0.06 (-0.21 to 0.09)", "yes / yes"),
        ((2.4, 2.5, 2.6), "+0.94 (0.79 to 1.09)", "no / no"),
        ((1.1, 1.5, 1.9), "-0.06 (-0.73 to 0.61)", "not told / not told"),
        # As a standard error 0.09 is a deviation of 0.285: an error of 0.107.
        ((1.2, 1.2, 1.2), "-0.36 (-0.41 to -0.31)", "yes / not told"),
        ((1.6,), "+0.04", "not told / not told"),
        # Two runs would be a yes.
        ((1.5, 1.5), "-0.06 (-0.11 to -0.01)", "not told / not told"),
    ],
)
def test_a_cell_beside_the_paper_by_hand(errors, difference, answers, tmp_path):
    write(tmp_path, MNIST, *(error / 100 for error in errors))
    (row,) = rows_of(cells.all_cells(report.read_runs(tmp_path)))
    assert row["difference, 90 % interval"] == difference
    assert row[cells.WITHIN] == answers
    assert (row["n"], row["margin"]) == (str(len(errors)), "0.5")
    assert row["epochs"] == "2000 + 20" and row["device"] == "CPU, float32"


def test_the_frobenius_term_of_their_code_has_a_row_of_its_own(tmp_path):
    write(tmp_path, replace(MNIST, epochs=200), 0.01)
    of_z = MNIST.with_term(frobenius_of="Z")
    write(tmp_path, replace(of_z, epochs=1), 0.08, 0.08)
    write(tmp_path, replace(of_z, epochs=30), 0.02)
    frame = report.read_runs(tmp_path)
    found, *_ = tables.paper_table(TABLES["table1"], frame)
    alone = frame[frame.differs == "frobenius of Z"]
    without, *_ = tables.paper_table(TABLES["table1"], alone)
    assert any("of Z" in name for name in without.index)
    (row,) = [found.loc[name] for name in found.index if "of Z" in name]
    (cell,) = [text for text in row if text != MISSING]
    last = frame.set_index("epochs")["last"][30]
    assert cell == f"{last:.2f} (n = 1), 2000 + 30 epochs"


def test_a_cell_without_the_runs_that_lost_a_class(tmp_path):
    # Mean 1.17, squares of the distances 0.57² + 0.23² + 0.34² over 2.
    for seed, error, in_use, lost in (
        (0, 0.0060, None, False),
        (1, 0.0140, None, False),
        # What is noted of the classes in use comes first.
        (2, 0.0151, 10.0, True),
        (3, 0.1000, 9.0, False),
    ):
        curve = {"classes_in_use": [None, *[in_use] * 20]} if in_use else {}
        given = {"chosen_error": error, "lost": lost, "curve": curve}
        write_record(tmp_path, MNIST, seed, **given)
    (row,) = rows_of(cells.all_cells(report.read_runs(tmp_path)))
    assert (row["n"], row["ours"]) == ("4", "3.38 ± 4.43")
    sound = "without runs that lost a class"
    assert row[sound].startswith("without seed 3: 1.17 ± 0.50 (n = 3), -0.39 (")
    write(tmp_path, MNIST, 0.1, 0.1, 0.1, 0.1, lost=True)
    (row,) = rows_of(cells.all_cells(report.read_runs(tmp_path)))
    assert row[sound] == "without seeds 0-3: none is left"
    # Short runs have no mean of the last 20 epochs.
    short = replace(MNIST, epochs=3)
    write(tmp_path / "short", short, 0.01, 0.01)
    write_record(tmp_path / "short", short, 2, chosen_error=0.1, lost=True)
    frame = report.read_runs(tmp_path / "short")
    (row,) = rows_of(cells.all_cells(frame, "last_20"))
    assert row["n"] == "3" and row[sound] == "without seed 2: -, -, -"


def test_how_many_starts_lose_a_class(tmp_path):
    usual, of_z, *_ = lost_starts.LOSSES.values()
    for e, seed, start, in_use in (
        # One start, by its longest run: a class is lost after epoch 1.
        (usual, 0, 0.1, [10]),
        (usual, 0, 0.1, [10, 9]),
        # Another end of stage 1 of this seed, and other seeds.
        (usual, 0, 0.12, [10]),
        (usual, 1, 0.1, [9]),
        *((usual, seed, 0.1, [10]) for seed in range(2, 9)),
        # From two of these starts, and from one of its own.
        (of_z, 0, 0.1, [10]),
        (of_z, 2, 0.1, [8]),
        (of_z, 3, 0.1, [10]),
        (of_z, 99, 0.1, [10]),
        # Not after all of stage 1.
        (replace(of_z, pretrain_epochs=200), 3, 0.1, [8]),
    ):
        # Another start has a folder of its own.
        e = replace(e, epochs=len(in_use), restart=int(100 * start) - 10)
        curve = {"classes_in_use": [None, *in_use]}
        write_record(
            tmp_path, e, seed, baseline_error=start, curve=curve,
            chosen_error=0.02 if e.with_term(frobenius_of="Z") != e else 0.015,
        )  # fmt: skip
    frame = report.read_runs(tmp_path)
    papers, other = rows_of(lost_starts.lost_classes(frame))
    # 1 - (1 - p)^10 - 10 p (1 - p)^9 is 0.025 at p = 0.0252, and so on.
    assert papers["lost a class"] == "2 of 10"
    assert papers["95 % interval"] == "2.5 to 55.6 %"
    assert papers["of those of two epochs or more"] == "1 of 1"
    assert papers["lost by the end of epoch 1"] == "1 of 10"
    assert papers["epochs of stage 2"] == "1 to 2"
    assert other["lost a class"] == "1 of 4"
    assert other["lost it where the paper's does"] == "0 of 1"
    assert other["lost one where the paper's keeps all"] == "1 of 2"
    beside = other[
        "its error beside the paper's after epoch 1, where both keep all"
    ]
    assert beside == "-0.50 (n = 1, lower in 1)"
    assert "1 of 1 starts" in lost_starts.lost_line(frame)
    assert lost_starts.lost_line(frame[:0]) == ""


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
    g = study_tables.runs_of_row(study, name, report.read_runs(tmp_path))
    assert study_tables.verdict(g) == found


def test_a_study_keeps_its_own_epochs(tmp_path):
    name = "c_β = 0"
    arm = ABLATION.arms[name]
    for epochs, runs in ((arm.epochs + 20, 3), (arm.epochs, 1)):
        write(tmp_path, replace(arm, epochs=epochs), *[0.05] * runs)
        frame = report.read_runs(tmp_path)
        g = study_tables.runs_of_row(ABLATION, name, frame)
        assert (g.epochs.iloc[0], len(g)) == (epochs, runs)


def test_a_run_is_beside_the_paper_s_after_as_many_steps(tmp_path):
    name = "b_L = 96, b_U = 32"
    paper = ABLATION.arms[ABLATION.claims[name].against]
    arm = replace(ABLATION.arms[name], epochs=1)
    # The arm's epoch ends half an epoch beyond the paper's epoch 3. Of two runs
    # that one is taken which has the same stage 1.
    for *errors, start in ((*[0.09] * 5, 0.2), (0.09, 0.08, 0.06, 0.05, 0.1)):
        e = replace(paper, epochs=len(errors))
        curve = {"test_error": [start, *errors]}
        write_record(tmp_path, e, curve=curve)
    write_record(tmp_path, arm)
    g = study_tables.runs_of_row(ABLATION, name, report.read_runs(tmp_path))
    assert (g.epoch.item(), g.last_other.item()) == pytest.approx((3, 6.0))


@pytest.mark.parametrize(
    ("start", "validation", "noted"),
    [(0.1, 0.1, False), (0.2, 0.1, True), (0.1, 0.2, True)],
)
def test_another_end_of_stage_1_is_noted(tmp_path, start, validation, noted):
    # The test error may be the same by chance.
    name = "c_β = 0"
    paper = ABLATION.arms[ABLATION.claims[name].against]
    write_record(tmp_path, ABLATION.arms[name], baseline_error=0.1)
    later = [0.03] * paper.epochs
    curve = {"val_error": [validation, *later], "test_error": [start, *later]}
    write_record(tmp_path, paper, curve=curve)
    frame = report.read_runs(tmp_path)
    _, notes, _ = study_tables.study_table(ABLATION, frame)
    note = "From another end of stage 1 than beside it: c_β = 0 (seed 0)."
    assert (note in notes) == noted


def test_starts_are_compared_where_neither_loses_a_class(tmp_path):
    paper, cured, *_ = FIRST_EPOCH.arms.values()
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
    shown, *_ = study_tables.study_table(FIRST_EPOCH, frame)
    papers, cure = shown.to_dict("records")
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
        (
            partial(report.show_table, TABLES["table2"]),
            [],
            "docs/reproduction.md",
        ),
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
    assert "4.56" in short and "0.5" not in short
    assert "balance 0.5" in changed and "7.89" in changed
    assert [table.splitlines()[0] for table in tables] == titles
    assert link == f"The project's own: {paths.of_clone(page)}\n"
    for table in tables:
        # Below the numbers of labels.
        first = table.splitlines()[2]
        assert first.startswith("Pretraining (baseline), yours")
        assert "1.60" not in table


def test_starts_that_get_stuck_by_the_loss(tmp_path):
    """Of the images kept, 12 sevens are taken for twos after 10 epochs."""
    labels = np.full(10_000, 7)
    for loss, epochs, wrong in (
        (confusions.PAPER, 10, {10: 12}),
        (confusions.PAPER, 20, {20: 11}),
        ("Frobenius term of Z", 20, {20: 3}),
    ):
        # The last is another end of stage 1 of the first.
        for seed, factor, start in ((0, 1, 0.1), (1, 0, 0.1), (0, 1, 0.2)):
            experiment = replace(
                confusions.LOSSES[loss],
                epochs=epochs,
                restart=round(10 * start) - 1,
            )
            kept = records.kept_images(seed, len(labels))
            predicted = {}
            for epoch, count in wrong.items():
                predicted[epoch] = labels.copy()
                # Others than those kept do not count.
                predicted[epoch][np.setdiff1d(np.arange(10_000), kept)] = 3
                predicted[epoch][kept[: count * factor]] = 2
            also = {"snapshot_epochs": [*wrong]}
            path = write_record(
                tmp_path, experiment, seed, also=also, baseline_error=start
            )
            arrays = records.Arrays(
                np.arange(10_000), labels, predicted, kept[:0], {}
            )
            owner = experiment.fingerprint(), seed
            records.write_arrays(path.with_suffix(".npz"), owner, arrays)
    table = confusions.confusions(report.read_runs(tmp_path), tmp_path)
    *_, first, second = table.splitlines()
    states = "3.00, 12 (7 → 2) | 3.00, 11 (7 → 2) | 3.00, 3 (7 → 2) |"
    assert first == f"| seed 0 | 10.00 | {states}"
    assert second == f"| seed 0 | 20.00 | {states}"
