"""Tables and curves: the paper's figures, ours, and how many seeds they are."""

import math
from dataclasses import replace

import pytest
from made_records import make_record, write_record

from gar_keras import report
from gar_keras.experiments import folders, records
from gar_keras.experiments.settings import (
    NORB,
    NORB_JPEG,
    SVHN_GREY,
    Extensions,
)
from gar_keras.experiments.settings import TABLE_1 as SETTINGS
from gar_keras.experiments.studies import STUDIES
from gar_keras.report import Estimate
from gar_keras.report import benchmarks as benchmarks
from gar_keras.report.parts import study_part
from gar_keras.report.published import (
    BASELINE,
    GAR,
    TABLE_1,
    TABLE_2,
    TABLE_3,
    TABLES,
)
from gar_keras.report.studies import made_alike

MNIST_100 = replace(SETTINGS[100], epochs=4)
COLUMN = TABLE_1.columns[0]
CHOSEN = f"{GAR}, ours, epoch chosen by validation"


@pytest.fixture(autouse=True)
def reference(tmp_path_factory, monkeypatch):
    """A folder in place of the project's own records."""
    folder = tmp_path_factory.mktemp("reference")
    monkeypatch.setattr(folders, "reference", lambda: folder)
    return folder


def made(experiment=MNIST_100, seeds=(0,), **results):
    return [make_record(experiment, seed, **results) for seed in seeds]


def row(table, found, name):
    rows = {cells[0]: cells[1:] for cells in report.table_rows(table, found)}
    return rows[name]


def chosen(found):
    """Our cell of Table 1 for 100 labels."""
    return row(TABLE_1, found, CHOSEN)[0]


# Estimates.


def test_an_estimate_by_hand():
    # Mean 3; squares of the distances 4 + 1 + 0 + 1 + 4 = 10, over 4.
    estimate = Estimate.of([0.01, 0.02, 0.03, 0.04, 0.05])
    assert estimate.mean == pytest.approx(3)
    assert estimate.deviation == pytest.approx(math.sqrt(2.5))
    assert str(estimate) == "3.00 ± 1.58 (n = 5)"


def test_one_seed_has_no_deviation():
    estimate = Estimate.of([0.0156])
    assert estimate == Estimate(pytest.approx(1.56), None, 1)
    assert str(estimate) == "1.56 (n = 1)"


def test_equal_errors_deviate_by_nothing():
    assert str(Estimate.of([0.02] * 10)) == "2.00 ± 0.00 (n = 10)"


# The paper's figures, typed by hand from its tables.


@pytest.mark.parametrize(
    ("table", "method", "figures"),
    [
        (
            TABLE_1,
            "M1+M2",
            ["3.33 ± 0.14", "2.59 ± 0.05", "2.40 ± 0.02", "2.18 ± 0.04"],
        ),
        (TABLE_1, "Ladder Network", ["1.06 ± 0.37", "-", "0.84 ± 0.08", "-"]),
        (TABLE_1, "AGDM", ["0.96 ± 0.02", "-", "-", "-"]),
        (TABLE_1, "VAT", ["2.12", "1.39", "1.36", "1.25"]),
        (TABLE_1, "Extended VAT", ["1.36", "-", "1.27", "-"]),
        (TABLE_1, "Improved GAN", ["0.93 ± 0.07", "-", "-", "-"]),
        (TABLE_1, "EmbedCNN", ["7.75", "3.82", "2.73", "2.07"]),
        (TABLE_1, "HAGR", ["11.34 ± 1.23", "-", "-", "-"]),
        (
            TABLE_1,
            f"{BASELINE}, paper",
            ["14.82 ± 1.03", "4.16 ± 0.26", "3.25 ± 0.11", "1.73 ± 0.08"],
        ),
        (
            TABLE_1,
            f"{GAR}, paper",
            ["1.56 ± 0.09", "1.15 ± 0.07", "1.10 ± 0.07", "0.93 ± 0.05"],
        ),
        (TABLE_2, "HAGR", ["8.64 ± 0.70"]),
        (TABLE_2, f"{GAR}, paper", ["1.00 ± 0.09"]),
        (TABLE_3, "M1+TSVM", ["55.33 ± 0.11", "-", "-", "18.79 ± 0.05"]),
        (TABLE_3, "M1+M2", ["36.02 ± 0.10", "-", "-", "-"]),
        (TABLE_3, "SGDM", ["29.82", "16.61 ± 0.24", "-", "9.40 ± 0.04"]),
        (TABLE_3, "VAT", ["24.63", "-", "-", "9.88"]),
        (TABLE_3, "Extended VAT", ["5.77", "-", "-", "-"]),
        (TABLE_3, "Extended VAT+EntMin", ["4.28", "-", "-", "-"]),
        (TABLE_3, "Improved GAN", ["8.11 ± 1.30", "-", "-", "-"]),
        (TABLE_3, "ALI", ["-", "7.42 ± 0.65", "-", "-"]),
        (TABLE_3, "Π Model", ["5.43 ± 0.25", "-", "-", "-"]),
        (
            TABLE_3,
            f"{BASELINE}, paper",
            ["19.11 ± 1.09", "19.11 ± 1.09", "17.93 ± 1.07", "10.22 ± 1.00"],
        ),
        (
            TABLE_3,
            f"{GAR}, paper",
            ["8.67 ± 0.65", "6.98 ± 0.82", "12.19 ± 1.46", "7.10 ± 0.57"],
        ),
    ],
)
def test_the_paper_s_figures(table, method, figures):
    assert row(table, [], method) == figures


def test_the_paper_s_columns():
    headings = {
        name: [column.heading for column in table.columns]
        for name, table in TABLES.items()
        if name.startswith("table")
    }
    assert headings == {
        "table1": ["m_L = 100", "m_L = 600", "m_L = 1000", "m_L = 3000"],
        "table2": ["m_L = 100"],
        "table3": [
            "SVHN m_L = 1000, without extra",
            "SVHN m_L = 1000, with extra",
            "NORB m_L = 300",
            "NORB m_L = 1000",
        ],
    }


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_every_method_has_a_cell_in_every_column(table):
    rows = report.table_rows(table, [])
    assert {len(cells) for cells in rows} == {1 + len(table.columns)}


# Ours.


def test_our_rows_show_the_mean_over_seeds():
    found = [
        make_record(MNIST_100, seed, chosen_error=c, last_error=z)
        for seed, c, z in [(0, 0.01, 0.02), (1, 0.03, 0.02)]
    ]
    # Deviation of 1 and 3: the root of 2.
    assert chosen(found) == "2.00 ± 1.41 (n = 2)"
    last = row(TABLE_1, found, f"{GAR}, ours, last epoch")
    assert last == ["2.00 ± 0.00 (n = 2)", "-", "-", "-"]
    base = row(TABLE_1, found, f"{BASELINE}, ours")
    assert base == ["10.00 ± 0.00 (n = 2)", "-", "-", "-"]


def test_what_was_not_run_is_no_figure():
    for name in report.OUR_ROWS:
        assert row(TABLE_1, [], name) == ["-"] * 4
    assert report.table_notes(TABLE_1, []) == [
        "m_L = 100: not run",
        "m_L = 600: not run",
        "m_L = 1000: not run",
        "m_L = 3000: not run",
    ]


def test_each_column_has_its_own_cell():
    found = made(replace(SETTINGS[3000], epochs=2), chosen_error=0.009)
    assert row(TABLE_1, found, CHOSEN) == ["-", "-", "-", "0.90 (n = 1)"]


def test_most_epochs_of_all_runs_together_stand_for_the_cell():
    four = made(MNIST_100, range(10), chosen_error=0.02)
    more = made(replace(MNIST_100, epochs=41), chosen_error=0.01)
    fewer = made(replace(MNIST_100, epochs=39), chosen_error=0.01)
    assert chosen(four + more) == chosen(more + four) == "1.00 (n = 1)"
    assert chosen(four + fewer) == "2.00 ± 0.00 (n = 10)"
    first, longer, *_ = report.table_notes(TABLE_1, four + fewer)
    assert first.startswith("MNIST, m_L = 100: n = 10 (seeds 0-9), 2000 + 4 ")
    assert longer.startswith(
        "for longer: MNIST, m_L = 100: n = 1 (seed 0), 2000 + 39 "
    )
    assert "epoch 1.00 (n = 1), in the last 3.00 (n = 1)" in longer


@pytest.mark.parametrize("epochs, error", [(8, "2.00"), (9, "1.00")])
def test_more_seeds_stand_for_the_cell_if_nearly_as_long(epochs, error):
    three = made(MNIST_100, range(3), chosen_error=0.02)
    longer = replace(MNIST_100, epochs=epochs)
    two = made(longer, range(2), chosen_error=0.01)
    assert chosen(three + two).startswith(f"{error} ± 0.00")


def test_shorter_runs_with_more_seeds_are_told_below():
    found = [
        *made(replace(MNIST_100, epochs=2), range(5), chosen_error=0.03),
        *made(replace(MNIST_100, epochs=5), range(3), chosen_error=0.02),
        # Of another stage 1, and with fewer seeds.
        *made(replace(MNIST_100, pretrain_epochs=10, epochs=5), range(4)),
        *made(replace(MNIST_100, epochs=3), range(1)),
        *made(replace(MNIST_100, epochs=11), range(2), chosen_error=0.01),
    ]
    first, surer, *_ = report.table_notes(TABLE_1, found)
    assert first.startswith("MNIST, m_L = 100: n = 2 (seeds 0-1), 2000 + 11 ")
    assert surer.startswith(
        "with more seeds: MNIST, m_L = 100: n = 3 (seeds 0-2), 2000 + 5 "
    )
    assert "epoch 2.00 ± 0.00 (n = 3), in the last 3.00 ± 0.00" in surer
    assert surer.endswith(" by Welch's test: 0.38 to 0.50")
    assert len(report.table_notes(TABLE_1, found[:-2])) == 4


def test_longer_runs_of_another_backend_are_told_below():
    longer = replace(MNIST_100, epochs=8, backend="jax")
    found = made(MNIST_100, range(4)) + made(longer, range(2))
    first, other, *_ = report.table_notes(TABLE_1, found)
    assert first.startswith("MNIST, m_L = 100: n = 4 ")
    assert other.startswith("for longer: MNIST, m_L = 100: n = 2 ")
    assert ", 2000 + 8 epochs, float32, jax, " in other


def test_of_as_many_epochs_most_seeds_stand_for_the_cell():
    other = replace(MNIST_100, precision="bfloat16")
    found = [
        *made(MNIST_100, [0], chosen_error=0.02),
        *made(other, [0, 1], chosen_error=0.01),
    ]
    assert chosen(found) == chosen(found[::-1]) == "1.00 ± 0.00 (n = 2)"


def test_of_as_many_seeds_most_pretraining_stands_for_the_cell():
    short = replace(MNIST_100, pretrain_epochs=10)
    found = [
        *made(short, chosen_error=0.01),
        *made(MNIST_100, chosen_error=0.02),
    ]
    assert chosen(found) == chosen(found[::-1]) == "2.00 (n = 1)"


def test_settings_are_never_mixed():
    other = replace(MNIST_100, precision="bfloat16")
    found = [*made(MNIST_100, [0, 1]), *made(other, [2])]
    assert [g.seeds for g in report.group(found)] == [[0, 1], [2]]
    assert chosen(found).endswith("(n = 2)")


@pytest.mark.parametrize(
    "change",
    [
        {"frobenius_of": "Z"},
        {"affinity": 2.0},
        {"balance": 0.0},
        {"frobenius": 1e-5},
        {"learning_rate": 0.02},
        {"labeled_per_batch": 15},
        {"unlabeled_per_batch": 100},
        {"num_validation": 500},
        {"batch_size": 64},
        {"preprocessing": "standardize"},
        {"images_per_epoch": 30000},
    ],
)
def test_other_settings_never_stand_for_the_cell(change):
    other = replace(MNIST_100, **{"epochs": 999, **change})
    assert report.representative(made(other, range(20)), COLUMN) is None
    found = [*made(other, range(20)), *made(MNIST_100, chosen_error=0.04)]
    assert chosen(found) == "4.00 (n = 1)"


def test_a_stand_in_is_named_in_its_cell():
    copy = replace(NORB_JPEG[1000], epochs=4)
    title = "small NORB (JPEG copy)"
    found = made(copy, [0, 1], title=title)
    assert row(TABLE_3, found, CHOSEN) == [
        *["-"] * 3,
        f"2.00 ± 0.00 (n = 2) on {title}",
    ]
    assert report.table_notes(TABLE_3, found)[3].startswith(
        f"{title}, m_L = 1000: "
    )
    assert report.table_markdown(TABLE_3, found).count(title) == 4


def test_the_data_themselves_come_before_their_stand_in():
    found = [
        *made(replace(NORB_JPEG[1000], epochs=9), range(9), title="copy"),
        *made(replace(NORB[1000], epochs=1), [0], title="NORB"),
    ]
    assert row(TABLE_3, found, CHOSEN)[3] == "2.00 (n = 1)"


def test_svhn_grey_is_in_none_of_the_paper_s_tables():
    found = made(replace(SVHN_GREY, epochs=4), title="SVHN-grey")
    for table in (TABLE_1, TABLE_2, TABLE_3):
        assert row(table, found, CHOSEN) == ["-"] * len(table.columns)
    own = row(TABLES["svhn_grey"], found, CHOSEN)
    assert own == ["2.00 (n = 1)"]


def test_a_note_tells_how_the_figure_was_made():
    text = report.table_notes(TABLE_1, made(seeds=[0, 1]))[0]
    assert text == (
        "MNIST, m_L = 100: n = 2 (seeds 0-1), 2000 + 4 epochs, float32, "
        "tensorflow, Some CPU (2 cores), 12 min a run; runs that lost a class: "
        "0 of 2; 95 % interval of the mean at the chosen epoch: 2.00 to 2.00, "
        "of its difference from the paper's 1.56 ± 0.09 by Welch's "
        "test: 0.38 to 0.50"
    )


def test_threads_are_told_where_they_are_fewer_than_the_cores():
    (record,) = made(MNIST_100)
    here = record["environment"]
    here |= {"device_kind": "cpu", "threads": 1}
    (g,) = report.group([record])
    assert g.device_text() == "Some CPU (1 of 2 cores)"
    here["threads"] = 2
    assert g.device_text() == "Some CPU (2 cores)"
    here |= {"device_kind": "gpu", "threads": 1}
    assert g.device_text() == "Some CPU (2 cores)"


def test_minutes_on_several_devices_are_a_range():
    found = made(seeds=[0, 1])
    found[1]["environment"] |= {"device": "Other CPU"}
    found[1]["pretraining"]["seconds"] += 120
    (g,) = report.group(found)
    assert g.device_text() == "Other CPU/Some CPU (2 cores)"
    assert g.minutes_text() == "12 to 14"


def test_a_run_that_was_resumed_with_other_threads_tells_both():
    (record,) = made(MNIST_100)
    here = record["environment"] | {"device_kind": "cpu", "threads": 1}
    record |= {"environment": here, "resumed_in": [here | {"threads": 2}]}
    (g,) = report.group([record])
    assert g.device_text() == "Some CPU (1 of 2 or 2 cores)"
    assert g.minutes_text() == "12"


@pytest.mark.parametrize(
    ("errors", "interval", "difference"),
    [
        # 1.6 ± 4.303 * 0.1 / √3; 0.04 ± 3.182 * √(0.1² / 3 + 0.09² / 10).
        ((0.015, 0.016, 0.017), "1.35 to 1.85", "-0.16 to 0.24"),
        ((0.025, 0.026, 0.027), "2.35 to 2.85", "0.84 to 1.24"),
        # 1.55 ± 12.706 * 0.0707 / √2.
        ((0.015, 0.016), "0.91 to 2.19", "-0.74 to 0.72"),
    ],
)
def test_from_two_seeds_on_there_is_an_interval(errors, interval, difference):
    found = [
        record
        for seed, error in enumerate(errors)
        for record in made(seeds=[seed], chosen_error=error)
    ]
    note = report.table_notes(TABLE_1, found)[0]
    assert note.endswith(
        f"; 95 % interval of the mean at the chosen epoch: {interval}, of its "
        "difference from the paper's 1.56 ± 0.09 by Welch's test: "
        f"{difference}"
    )
    assert "interval" not in report.table_notes(TABLE_1, found[:1])[0]


@pytest.mark.parametrize(
    ("seeds", "text"),
    [
        ([4], "seed 4"),
        ([1, 0], "seeds 0-1"),
        ([*range(10)], "seeds 0-9"),
        ([0, 2, 3], "seeds 0,2,3"),
    ],
)
def test_seeds_in_words(seeds, text):
    (group,) = report.group(made(seeds=seeds))
    assert group.seed_text() == text


def test_z_says_so_in_its_note():
    (group,) = report.group(made(replace(MNIST_100, frobenius_of="Z")))
    assert "Frobenius term of Z" in group.describe()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"precision": "bfloat16", "pretrain_epochs": 9, "backend": "jax"}, {}),
        ({"stage_2_rate": 0.001}, {"stage_2_rate": 0.001}),
        ({"method": "vat"}, {"method": "vat"}),
        # Of no cell of the paper's.
        ({"num_labeled": 50}, {}),
        (
            {
                "num_labeled": 10,
                "labeled_per_batch": 10,
                "unlabeled_per_batch": 118,
            },
            {},
        ),
        ({"dataset": "mnist-pairs", "batch_size": 64}, {"batch_size": 64}),
        (
            {
                "dataset": "mnist-pairs",
                "num_labeled": 1000,
                "labeled_per_batch": 128,
                "unlabeled_per_batch": 896,
            },
            {"labeled_per_batch": 128, "unlabeled_per_batch": 896},
        ),
    ],
)
def test_what_a_group_changes(change, expected):
    (group,) = report.group(made(replace(MNIST_100, **change)))
    assert group.changes == expected


def test_other_labels_of_norb_are_set_against_norb():
    (group,) = report.group(made(replace(NORB[300], num_labeled=500)))
    assert group.changes == {}


def test_what_a_group_changes_is_told_on_any_data():
    other = replace(MNIST_100, dataset="mnist-pairs", labeled_per_batch=9)
    (group,) = report.group(made(other))
    assert ", tensorflow, labeled per batch 9, " in group.describe()


# Studies.


@pytest.mark.parametrize("name", ["options", "skew"])
def test_all_rows_of_a_study_have_one_precision_and_backend(name, tmp_path):
    study = STUDIES[name]
    first, second, *_ = study.arms.values()
    for seeds, arm, backend in (
        (3, first, "tensorflow"),
        (1, second, "tensorflow"),
        (2, first, "jax"),
        (2, second, "jax"),
    ):
        for seed in range(seeds):
            write_record(tmp_path, replace(arm, backend=backend), seed)
    found = records.read_all(tmp_path)
    alike, notes = made_alike(study, found)
    assert {r["experiment"]["backend"] for r in alike} == {"tensorflow"}
    assert notes == [
        "not in the table, with another precision or backend: float32, jax, "
        "runs: 4"
    ]
    text = study_part(study).markdown(found, tmp_path)
    assert f"- {notes[0]}" in text
    assert text.count("_jax/") == 0
    # Both arms in one backend count for more than one in most runs.
    kept = [r for r in found if r["experiment"]["backend"] == "jax"]
    lone = [r for r in alike if r["fingerprint"] == first.fingerprint()]
    assert made_alike(study, kept + lone)[0] == kept


def test_only_errors_of_the_first_row_s_task_are_compared_with_it(tmp_path):
    study = STUDIES["limits"]
    for error, name in (
        (0.05, "m_L = 100"),
        (0.06, "m_L = 50"),
        (0.07, "label noise of 20 %"),
        (0.02, "digits 0 to 4"),
        (0.40, "100 classes: pairs of digits, m_L = 1000"),
    ):
        write_record(tmp_path, study.arms[name], chosen_error=error)
    rows = report.study_rows(study, records.read_all(tmp_path), tmp_path)
    assert {cells[0]: cells[3] for cells in rows if cells[1] != "not run"} == {
        "m_L = 100": "-",
        "m_L = 50": "+1.00 (n = 1)",
        "label noise of 20 %": "+2.00 (n = 1)",
        "digits 0 to 4": "-",
        "100 classes: pairs of digits, m_L = 1000": "-",
    }


# Markdown.


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_markdown_has_the_same_columns_in_every_row(table):
    found = [
        *made(seeds=range(3)),
        *made(replace(NORB_JPEG[1000], epochs=4), title="NORB (JPEG copy)"),
        *made(replace(SVHN_GREY, epochs=4), title="SVHN-grey"),
    ]
    title, gap, *lines = report.table_markdown(table, found).splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert title == f"**{table.title}**" and not gap
    assert rows == lines[: len(rows)]
    assert {line.count("|") for line in rows} == {2 + len(table.columns)}
    assert set(rows[1]) <= set("|-: ")
    assert len(rows) == 2 + len(table.rows) + 3


def test_every_figure_of_ours_shows_n():
    found = made(seeds=range(3))
    ours = [
        line
        for line in report.table_markdown(TABLE_1, found).splitlines()
        if "ours" in line
    ]
    assert len(ours) == 3
    assert all("(n = 3)" in line for line in ours)


def test_a_table_can_be_cut_to_some_columns():
    cut = TABLE_1.only(lambda column: column.cell == "mnist-600")
    assert [column.cell for column in cut.columns] == ["mnist-600"]
    assert "AGDM" not in cut.rows and "VAT" in cut.rows
    assert report.table_rows(cut, [])[1:3] == [
        ["M1+M2", "2.59 ± 0.05"],
        ["VAT", "1.39"],
    ]


# Files.


@pytest.fixture
def results(tmp_path):
    for seed in range(10):
        error = 0.02 + seed / 1000
        write_record(tmp_path, MNIST_100, seed, chosen_error=error)
    write_record(tmp_path, replace(SETTINGS[600], epochs=1))
    return tmp_path


def test_the_files_of_a_table(results):
    paths = report.write_table(TABLE_1, results)
    assert paths == [results / "table1.md", results / "table1.png"]
    text = paths[0].read_text(encoding="utf-8")
    found = records.read_all(results)
    assert text == report.table_markdown(TABLE_1, found, results)


def test_a_table_without_a_figure_of_ours_has_no_files(results):
    assert report.write_table(TABLE_2, results) == []
    assert not list(results.glob("table2*"))


# What is printed.


def test_the_printed_table_has_the_columns_that_were_run(results, capsys):
    report.show_table(TABLE_1, records.read_all(results), results)
    text = capsys.readouterr().out
    assert "m_L = 100" in text and "m_L = 600" in text
    assert "m_L = 1000" not in text
    assert text.count("(n = 10)") == 3
    assert f"Written: {results / 'table1.png'}" in text


@pytest.mark.parametrize("columns", [1, 2, 3, 4])
def test_the_printed_table_fits_a_terminal(
    columns, capsys, tmp_path, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "80")
    run = [*SETTINGS.values()][:columns]
    found = [r for e in run for r in made(e, range(10))]
    report.show_table(TABLE_1, found, tmp_path)
    table = capsys.readouterr().out.partition("\n- ")[0]
    assert max(map(len, table.splitlines())) <= 80
    # No figure is cut, nor broken in two.
    assert "…" not in table
    assert table.count(" 2.00 ± 0.00") == columns
    assert table.count("(n = 10)") == 4 * columns


def test_other_settings_are_printed_beside_the_table(tmp_path, capsys):
    other = replace(MNIST_100, frobenius_of="Z")
    report.show_table(TABLE_1, made(other, chosen_error=0.017), tmp_path)
    text = capsys.readouterr().out
    assert "beside the table: MNIST, m_L = 100: n = 1" in text
    assert "Frobenius term of Z" in text
    assert "epoch chosen by validation: 1.70 (n = 1)" in text
    # The paper's own figures stand beside the paper's settings alone.
    assert "1.56" not in text


# Beside the reference.

SHORT = replace(MNIST_100, pretrain_epochs=300, epochs=2)


def cells(table, found, reference):
    """The first column of a table, by the names of the rows."""
    rows = report.table_rows(table, found, reference)
    return {name: cell for name, cell, *_ in rows}


def test_the_reference_stands_between_the_paper_and_yours():
    reference = made(MNIST_100, range(3), chosen_error=0.02)
    rows = cells(TABLE_1, made(SHORT, chosen_error=0.05), reference)
    ours = [name for name in rows if name.startswith((BASELINE, GAR))]
    assert [name.split(", ")[1] for name in ours] == [
        *["paper"] * 2, *["reference"] * 3, *["yours"] * 3
    ]  # fmt: skip
    chosen = ", epoch chosen by validation"
    assert rows[f"{GAR}, paper"] == "1.56 ± 0.09"
    assert rows[f"{GAR}, reference{chosen}"] == "2.00 ± 0.00 (n = 3)"
    assert rows[f"{GAR}, yours{chosen}"] == "5.00 (n = 1)"
    assert rows["Epochs of both stages, reference"] == "2000 + 4"
    assert rows["Epochs of both stages, yours"] == "300 + 2"


@pytest.mark.parametrize(
    ("precision", "expected"), [("float32", "6.00"), ("bfloat16", "7.00")]
)
def test_a_reference_of_as_many_epochs_has_rows_too(precision, expected):
    as_yours = [
        *made(SHORT, chosen_error=0.06),
        *made(replace(SHORT, precision="bfloat16"), chosen_error=0.07),
    ]
    rows = cells(
        TABLE_1,
        made(replace(SHORT, precision=precision), seeds=[5]),
        [*made(MNIST_100), *as_yours],
    )
    name = "reference with your epochs"
    assert rows[f"Epochs of both stages, {name}"] == "300 + 2"
    assert rows["Epochs of both stages, reference"] == "2000 + 4"
    chosen = rows[f"{GAR}, {name}, epoch chosen by validation"]
    assert chosen == f"{expected} (n = 1)"


def test_a_cell_that_the_reference_lacks_is_empty():
    reference = made(SETTINGS[600])
    rows = cells(TABLE_1, made(), reference)
    assert rows["Epochs of both stages, reference"] == "-"
    assert rows["Epochs of both stages, yours"] == "2000 + 4"


def test_the_files_of_your_folder_show_the_reference(results, reference):
    write_record(reference, SHORT, chosen_error=0.033)
    text = report.write_table(TABLE_1, results)[0].read_text(encoding="utf-8")
    assert "| **Pretraining + GAR, reference, last epoch** |" in text
    assert "| **Pretraining + GAR, yours, last epoch** |" in text
    assert "\n- reference: MNIST, m_L = 100: n = 1 (seed 0), 300 + 2" in text
    assert "\n- yours: MNIST, m_L = 100: n = 10 (seeds 0-9), 2000 + 4" in text


def test_the_reference_itself_has_no_other_beside(reference, capsys):
    write_record(reference, SHORT)
    found = records.read_all(reference)
    report.show_table(TABLE_1, found, reference)
    said = capsys.readouterr().out
    assert "ours" in said and "yours" not in said
    text = (reference / "table1.md").read_text(encoding="utf-8")
    assert text == report.table_markdown(TABLE_1, found, reference)


def test_the_reference_is_printed_beside_yours(results, reference, capsys):
    write_record(reference, MNIST_100, chosen_error=0.0123)
    report.show_table(TABLE_1, records.read_all(results), results)
    text = capsys.readouterr().out
    assert "1.23" in text
    assert "- yours: MNIST, m_L = 100: n = 10" in text


def test_rivals_are_printed_with_those_of_the_reference(
    tmp_path, reference, capsys
):
    vat = replace(SHORT, method="vat")
    found = made(vat, chosen_error=0.0456)
    write_record(reference, vat, chosen_error=0.0123)
    # Of another task: nothing to compare with.
    write_record(reference, replace(vat, num_labeled=600), chosen_error=0.0333)
    report.show_rivals(found, tmp_path)
    yours, _, theirs = capsys.readouterr().out.partition("Reference: GAR and")
    assert "4.56" in yours and "1.23" not in yours
    assert "1.23" in theirs and "3.33" not in theirs


def test_a_study_is_printed_with_that_of_the_reference(
    tmp_path, reference, capsys
):
    study = STUDIES["skew"]
    arm = study.experiments[0]
    write_record(reference, arm, chosen_error=0.0123)
    report.show_study(study, made(arm, chosen_error=0.0456), tmp_path)
    yours, _, theirs = capsys.readouterr().out.partition("Reference: ")
    assert "4.56" in yours and "1.23" not in yours
    assert "1.23" in theirs
    # Nothing of the reference has these epochs.
    other = study.with_settings(epochs=7)
    report.show_study(other, made(other.experiments[0]), tmp_path)
    assert "Reference" not in capsys.readouterr().out


# The README.

README = """# Title
<!-- table1 -->
old
<!-- end table1 -->
between
<!-- table3 -->
<!-- end table3 -->
after
"""


def readme(folder, text):
    path = folder / "README.md"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_readme_gets_the_tables_between_its_markers(results):
    found = records.read_all(results)
    text = report.update_readme(readme(results, README), results)
    assert text == (
        "# Title\n"
        f"<!-- table1 -->\n{report.table_markdown(TABLE_1, found, results)}"
        "<!-- end table1 -->\n"
        "between\n"
        f"<!-- table3 -->\n{report.table_markdown(TABLE_3, found)}"
        "<!-- end table3 -->\n"
        "after\n"
    )


def test_the_readme_gets_the_benchmarks_between_their_markers(results):
    markers = "<!-- {0} -->\n<!-- end {0} -->\n"
    kinds = ("benchmark", "overhead")
    path = readme(results, "".join(map(markers.format, kinds)))
    text = report.update_readme(path, results)
    shown = [
        benchmarks.speed_markdown([], results),
        benchmarks.overhead_markdown([], results),
    ]
    assert text == (
        f"<!-- benchmark -->\n{shown[0]}<!-- end benchmark -->\n"
        f"<!-- overhead -->\n{shown[1]}<!-- end overhead -->\n"
    )
    assert text.count("not measured: no such device at hand") == 2


def test_a_broken_benchmark_record_is_not_passed_over(results):
    (results / "benchmark_cpu_jax.json").write_text("{")
    markers = "<!-- benchmark -->\n<!-- end benchmark -->\n"
    path = readme(results, markers)
    with pytest.raises(records.RecordError, match="benchmark_cpu_jax.json"):
        report.update_readme(path, results)


def test_an_updated_readme_stays_as_it_is(results):
    text = report.update_readme(readme(results, README), results)
    assert report.update_readme(readme(results, text), results) == text


def test_a_readme_without_markers_stays_as_it_is(results):
    path = readme(results, "no tables\n")
    assert report.update_readme(path, results) == "no tables\n"


@pytest.mark.parametrize(
    "text",
    [
        "<!-- table1 -->\nThe rest of the text.\n",
        "Some text.\n<!-- end table1 -->\n",
        "<!-- end table1 -->\n<!-- table1 -->\n",
        "<!-- table1 -->\n<!-- table1 -->\n<!-- end table1 -->\n",
        "<!-- table1 -->\n<!-- end table1 -->\n<!-- end table1 -->\n",
    ],
)
def test_markers_that_are_no_pair_are_refused(text, results):
    path = readme(results, text)
    with pytest.raises(ValueError, match="once each"):
        report.update_readme(path, results)


def test_report_shows_the_tables_asked_for_and_what_has_records(
    results, capsys
):
    found = records.read_all(results)
    report.show_report(found, results, ["table2"])
    assert "table1.md" not in capsys.readouterr().out
    report.show_report(found, results)
    shown = capsys.readouterr().out
    assert f"Written: {results / 'table1.md'}" in shown
    assert "rivals.md" not in shown and "study_skew.md" not in shown


@pytest.mark.parametrize("name", ["markdown", "notes", "show", "write"])
def test_former_names_of_the_tables_functions_warn(name):
    with pytest.warns(DeprecationWarning, match=f"report.{name} has become"):
        former = getattr(report, name)
    assert former is getattr(report, f"table_{name}", None) or (
        former is getattr(report, f"{name}_table")
    )


def test_pairs_differ_in_the_one_setting_alone():
    half = replace(MNIST_100, precision="bfloat16")
    longer = replace(half, epochs=5)
    found = [
        *made(MNIST_100, (0, 1), last_error=0.04),
        *made(half, (0, 1, 2), last_error=0.05),
        *made(longer, (0, 1), last_error=0.01),
    ]
    rows = report.paired(found, setting="precision").strip().splitlines()[2:]
    assert len(rows) == 1
    assert "0, 1 (n = 2)" in rows[0]
    assert "bfloat16 / float32: 5.00 / 4.00, 5.00 / 4.00" in rows[0]
    assert rows[0].endswith("| 0 of 2 / 0 of 2 | +1.00 |")


def test_pairs_of_unlike_length_meet_at_the_last_epoch_of_both():
    # `chosen_error` in all epochs but the last.
    short = replace(MNIST_100, frobenius_of="Z", epochs=2)
    found = [
        *made(MNIST_100, (0, 1), chosen_error=0.02, last_error=0.09),
        *made(short, (0, 1), chosen_error=0.05, last_error=0.03),
    ]
    rows = report.paired(found, setting="frobenius_of").strip().splitlines()[2:]
    assert len(rows) == 1
    assert "2000 + 2 epochs" in rows[0]
    assert "B / Z: 2.00 / 3.00, 2.00 / 3.00" in rows[0]


def test_pairs_are_of_runs_from_the_same_end_of_stage_1():
    found = [
        *made(replace(MNIST_100, epochs=5), (0, 1, 2), baseline_error=0.2),
        *made(MNIST_100, (0, 1), chosen_error=0.04),
        *made(replace(MNIST_100, frobenius_of="Z", epochs=2), (0, 1, 2)),
    ]
    (found,) = report.paired(found, setting="frobenius_of").splitlines()[2:]
    assert "B / Z: 4.00 / 3.00, 4.00 / 3.00 |" in found


def test_with_a_rate_over_all_epochs_lengths_must_be_alike():
    cosine = {"extensions": Extensions(rate="cosine")}
    long = replace(MNIST_100, **cosine)
    short = replace(long, frobenius_of="Z", epochs=2)
    found = [*made(long), *made(short)]
    assert report.paired(found, setting="frobenius_of") == ""


def test_without_pairs_there_is_nothing_to_compare():
    assert report.paired(made(), setting="precision") == ""
