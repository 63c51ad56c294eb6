"""Each figure of the report can be followed to its runs."""

import csv
import io
import re
import statistics
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_records import write_record

from gar_keras import report
from gar_keras.experiments import placement, records
from gar_keras.experiments.settings import NORB_JPEG, TABLE_1
from gar_keras.report import layout
from gar_keras.report.cells import cells_markdown
from gar_keras.report.groups import Group
from gar_keras.report.overview import INDEX, README, RECORD, index_csv, rows_of
from gar_keras.report.parts import PARTS
from gar_keras.report.published import TABLES
from gar_keras.report.sources import links, with_links_from

MNIST_100 = replace(TABLE_1[100], epochs=20)
FOLDER = placement.path_of(MNIST_100, 0, "").parent.as_posix()
RESULTS = Path(__file__).parents[2] / "results"


def write(folder, experiment=MNIST_100, seed=0, **results):
    """Writes a record to where its run would."""
    return write_record(folder, experiment, seed, **results)


@pytest.fixture
def results(tmp_path):
    for seed, error in enumerate((0.02, 0.04)):
        write(tmp_path, seed=seed, chosen_error=error)
    other = replace(MNIST_100, stage_2_rate=0.1)
    write(tmp_path, other, chosen_error=0.0498)
    return tmp_path


@pytest.fixture
def found(results):
    return records.read_all(results)


# Links.


def test_runs_that_are_alone_in_their_folder_are_linked_by_it(results, found):
    two = [r for r in found if r["fingerprint"] == MNIST_100.fingerprint()]
    assert links(two, results) == [FOLDER]
    assert links(two, results, results.parent) == [f"{results.name}/{FOLDER}"]
    one = f"{FOLDER}/seed1.json"
    assert links(two[1:], results) == [one]


def test_a_cell_with_several_links_has_them_behind_it():
    cell = layout.Linked("4.56", ["a", "b"])
    assert layout.in_markdown(cell) == "4.56 ([1](a), [2](b))"
    assert layout.in_markdown(layout.Linked("4.56")) == "4.56"


def test_links_are_seen_from_the_readme(tmp_path):
    text = "[a](b/c.json), [d](https://e.org), ![f](g.png)"
    seen = with_links_from(text, tmp_path / "results", tmp_path)
    assert seen == (
        "[a](results/b/c.json), [d](https://e.org), ![f](results/g.png)"
    )
    assert with_links_from(text, tmp_path, tmp_path) == text


# The index, and the search.


def test_the_index_has_a_line_for_each_run(results, found):
    lines = [
        *csv.DictReader(io.StringIO(index_csv(report.index(found, results))))
    ]
    assert len(lines) == 3
    first, _, other = lines
    assert first["path"] == f"{FOLDER}/seed0.json"
    assert (first["chosen"], first["last"], first["last_20"]) == (
        "2.0", "3.0", "2.05"
    )  # fmt: skip
    assert first["minutes"] == "12.0"
    assert (first["differs"], other["differs"]) == ("", "stage 2 rate 0.1")


def test_a_run_without_a_network_has_no_epochs(tmp_path):
    write(tmp_path, replace(MNIST_100, method="hagr"), baseline_error=None)
    (line,) = report.index(records.read_all(tmp_path), tmp_path)
    assert (line.epochs, line.after_stage_1, line.last_20) == (None,) * 3


def test_a_figure_is_found_with_its_runs(results, found):
    rows = report.find("3.00 ± 1.41", found, results)
    assert {row.heading for row in rows} >= {
        "Table 1", "The cells of the tables at full length"
    }  # fmt: skip
    lines = report.index(found, results)
    for row in rows:
        assert [line.seed for line in row.lines(lines)] == [0, 1]


def test_the_figure_of_a_single_run_is_found(results, found):
    (run,) = report.find("4.98", found, results)
    assert run.heading == "A run" and run.row[-1] == "stage 2 rate 0.1"
    assert report.find("4.9", found, results) == []
    with pytest.raises(ValueError, match="must have a digit"):
        report.find(" ", found, results)


def test_a_cell_s_own_links_come_before_those_of_its_row():
    (row,) = rows_of("| a | [1.5](b) | [2.5](c/d) |", "T", "2.5")
    assert row.row == ("a", "1.5", "2.5")
    assert row.targets == ("c/d",)
    assert row.leads_to("c/d/e.json") and not row.leads_to("c/de.json")


def test_headings_are_no_rows():
    text = "| 1.5 |\n| --- |\n| 2.5 |\n"
    assert [row.row for row in rows_of(text)] == [("2.5",)]


def test_another_readme_is_left_as_it_is(results):
    (results / README).write_text("# Mine\n")
    assert report.write_overview(results) == [results / INDEX]
    assert (results / README).read_text() == "# Mine\n"
    (results / README).unlink()
    for _ in range(2):
        assert results / README in report.write_overview(results)


# What a cell shows.


def test_the_last_epochs_by_hand():
    def run(errors):
        curve = {"test_error": [0.9, *errors]}
        result = {"last_epoch": len(errors)}
        return {"result": result, "regularization": {"curve": curve}}

    runs = (run([0.5, *[0.1] * 10, *[0.2] * 10]), run([0.5, *[0.3] * 20]))
    estimate = Group(runs).late_error()
    assert str(estimate) == "22.50 ± 10.61 (n = 2)"
    assert Group((run([0.1] * 19),)).late_error() is None


@pytest.fixture
def one_lost(tmp_path):
    """Three seeds, of which one loses a class by its predictions."""
    for seed, error in enumerate((0.01, 0.02, 0.6)):
        path = write(tmp_path, seed=seed, chosen_error=error, last_error=error)
        ends = {"epoch_0": [0, 1, 2], "epoch_20": [0, 1, 1 + (seed < 2)]}
        arrays = {key: np.eye(3)[classes] for key, classes in ends.items()}
        np.savez(path.with_suffix(".npz"), labels=[0, 1, 2], **arrays)
    return tmp_path


def test_the_mean_is_given_with_a_lost_class_and_without(one_lost):
    found = records.read_all(one_lost)
    rows = {row.row[2]: row for row in rows_of(cells_markdown(found, one_lost))}
    row = rows["last epoch"]
    assert row.row[3:] == (
        "21.00 ± 33.78 (n = 3)",
        "-62.92 to 104.92",
        "1.56 ± 0.09",
        "-64.48 to 103.36",
        "1 of 3 (seed 2)",
        "1.50 ± 0.71 (n = 2)",
    )
    assert row.targets == (FOLDER,)
    table = report.table_markdown(TABLES["table1"], found, one_lost)
    assert (
        "1 of 3 (seed 2); without them 1.50 ± 0.71 (n = 2) at the chosen "
        "epoch, 1.50 ± 0.71 (n = 2) in the last"
    ) in table


def test_each_cell_of_the_paper_has_a_row(tmp_path):
    write(tmp_path, NORB_JPEG[300])
    text = cells_markdown(records.read_all(tmp_path), tmp_path)
    runs = [row.row[0] for row in rows_of(text)]
    assert sum(run.endswith(": not run") for run in runs) == 10 - 1
    assert "table3, SVHN m_L = 1000, with extra: not run" in runs
    assert cells_markdown([], tmp_path) == ""


def test_the_keys_of_a_record_are_told():
    assert RECORD.keys() == records.Run.model_fields.keys()


# The reference.


@pytest.fixture(scope="module")
def reference():
    found = records.read_all(RESULTS)
    return found, report.index(found, RESULTS)


@pytest.mark.slow
def test_the_reference_is_told_as_it_is(reference):
    # If not: python scripts/report.py
    found, index = reference
    text = (RESULTS / README).read_text(encoding="utf-8")
    assert report.overview_markdown(found, RESULTS) == text
    # By its lines: the CSV may come with other line ends.
    lines = (RESULTS / INDEX).read_text(encoding="utf-8").splitlines()
    assert index_csv(index).splitlines() == lines


PUBLISHED = {name for table in TABLES.values() for name in table.rows}
PUBLISHED |= {f"{name}, paper" for name in PUBLISHED}


def is_ours(row):
    """Whether a row has a figure that is not the paper's."""
    texts = " ".join(row.row[1:])
    absent = layout.MISSING if row.heading == "summary" else "not run"
    not_run = row.row[-1] == absent
    published = row.row[0] in PUBLISHED or not_run
    return not published and re.search(r"\d", texts)


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_each_figure_of_the_reference_has_its_runs(part, reference):
    found, index = reference
    markdown = part.markdown(found, RESULTS)
    for row in filter(is_ours, rows_of(markdown, part.name)):
        assert row.targets, row
        benchmark = [t for t in row.targets if t.startswith(part.name)]
        runs = row.lines(index)
        assert runs or all((RESULTS / t).exists() for t in benchmark)
        for cell in row.row[1:]:
            seeds = re.search(r"\(n = (\d+)\)", cell)
            assert not (runs and seeds) or len(runs) >= int(seeds[1])


COLUMNS = {
    "end of stage 1": "after_stage_1",
    "epoch chosen by validation": "chosen",
    "last epoch": "last",
    "mean of the last 20 epochs": "last_20",
}


@pytest.mark.slow
def test_the_figures_of_the_cells_are_the_means_of_the_index(reference):
    found, index = reference
    rows = [
        row for row in rows_of(cells_markdown(found, RESULTS)) if row.targets
    ]
    assert len(rows) > 30
    for row in rows:
        column = COLUMNS[row.row[2]]
        mean = statistics.mean(getattr(r, column) for r in row.lines(index))
        assert float(row.row[3].split()[0]) == pytest.approx(mean, abs=0.0051)
