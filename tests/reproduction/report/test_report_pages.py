"""The pages, and the index of a results folder."""

import re
from dataclasses import replace

import pandas as pd
import pytest
from made_records import write_record

from reproduction import report
from reproduction.report import small_data_sets, write_pages
from reproduction.settings import RARE, SMALL, TABLE_1

MNIST = replace(TABLE_1[100], epochs=20)


@pytest.fixture
def results(tmp_path):
    folder = tmp_path / "results"
    for seed, error in enumerate((0.0186, 0.0388)):
        write_record(folder, MNIST, seed, chosen_error=error)
    write_record(folder, MNIST, 2, chosen_error=0.13, lost=True)
    other = replace(MNIST, stage_2_rate=0.1)
    write_record(folder, other, chosen_error=0.0498)
    write_record(folder, MNIST.with_method("vat"))
    return folder


def page(folder, text):
    path = folder / "README.md"
    path.write_text(text, "utf-8")
    return path


def test_parts_go_between_their_markers(tmp_path):
    texts = {"table1": "[a](b)\n", "summary": ""}
    text = "A.\n<!-- {0} -->\nold\n<!-- end {0} -->\nB.\n"
    path = page(tmp_path, text.format("table1") + text.format("summary"))
    found = write_pages.updated(path, texts, tmp_path / "results")
    assert found == (
        "A.\n<!-- table1 -->\n[a](results/b)\n<!-- end table1 -->\nB.\n"
        "A.\n<!-- summary -->\nNot run yet.\n<!-- end summary -->\nB.\n"
    )


def test_all_is_written_and_every_link_leads_somewhere(tmp_path, results):
    (tmp_path / "docs").mkdir()
    frame = report.read_runs(results)
    sections = write_pages.sections(frame, results)
    markers = "".join(f"<!-- {n} -->\n<!-- end {n} -->\n" for n in sections)
    readme = page(tmp_path, markers)
    written = report.write(frame, results, readme)
    assert {path.name for path in written if path.suffix == ".png"} == {
        "table1.png", "summary.png"
    }  # fmt: skip
    text = readme.read_text("utf-8")
    assert "2.00 (n = 1)" not in text and "1 of 3; without" in text
    for path in written:
        if path.suffix == ".md":
            links = re.findall(r"\]\(([^)]+)\)", path.read_text("utf-8"))
            assert all((path.parent / link).exists() for link in links)
    # All again, the same; a README of somebody else stays.
    (results / "README.md").write_text("Mine.")
    report.write(frame, results, readme)
    assert readme.read_text("utf-8") == text
    assert (results / "README.md").read_text() == "Mine."


def test_the_index_and_its_page(results):
    report.write(report.read_runs(results), results)
    index = pd.read_csv(results / "index.csv")
    assert len(index) == 5 and "curve" not in index
    assert (results / index.path[0]).exists()
    first = index[index.differs.isna() & (index.seed == 0)]
    assert first.chosen.item() == pytest.approx(1.86)
    first = (results / "README.md").read_text("utf-8")
    assert "| MNIST, 100 labels | gar | stage 2 rate 0.1 | 0 |" in first
    assert "| gar | - | 0-2 | 10.00 ± 0.00 | 6.25 ± 5.94 |" in first
    assert not [*results.glob("*/README.md"), *results.glob("*/*/README.md")]


# Small data sets.

WINE = SMALL["wine"]
SPREADING = {"method": "label-spreading", "baseline": None}
TRIED = {"epochs": 3, "pretrain_epochs": 5, "baseline": 0.5}


@pytest.mark.parametrize(
    ("runs", "errors", "harm"),
    [
        # A method without a network, alone: no start, and no harm known.
        (
            [SPREADING | {"seed": s, "error": s / 10} for s in (1, 2, 3)],
            ["20.00 ± 10.00 (n = 3)"],
            [],
        ),
        # Its start is known for one of its seeds.
        (
            [{"error": 0.3}, SPREADING, SPREADING | {"seed": 1}],
            ["10.00", "30.00 (n = 1)", "20.00 ± 0.00 (n = 2)"],
            ["1 of 1", "1 of 1"],
        ),
        # A quick try is not of the same row, nor is its start.
        (
            [TRIED, {"error": 0.11}, {"seed": 1}],
            ["10.00 ± 0.00", "15.50 ± 6.36 (n = 2)"],
            ["1 of 2"],
        ),
        ([{"stage_2_rate": 0.1}, {"num_labeled": 18}], [], []),
    ],
)
def test_small_data_sets_of_few_runs(runs, errors, harm, tmp_path):
    for run in runs:
        run = {"seed": 0, "error": 0.2, "baseline": 0.1} | run
        seed, error, start = map(run.pop, ("seed", "error", "baseline"))
        found = {"chosen_error": error, "last_error": error}
        e = replace(WINE.with_method(run.pop("method", "gar")), **run)
        write_record(tmp_path, e, seed, baseline_error=start, **found)
    frame = report.read_runs(tmp_path)
    found = small_data_sets.where(frame)
    form = r"\d+\.\d\d(?: ± \d+\.\d\d)?(?: \(n = \d\))?"
    assert re.findall(form, small_data_sets.errors(found)) == errors
    assert re.findall(r"\d of \d", small_data_sets.ranks(found)) == harm
    report.write(frame, tmp_path, page(tmp_path, ""))


# With a rare class.

YEAST = replace(RARE["yeast4"], epochs=2)
# Five of 20 rows are of the rare class; these many of both are not told right.
WRONG = {
    "gar": [((1, 1), (6, 0))],
    "safe-gar": [((1, 1), (1, 0)), ((1, 1), (2, 1))],
}


def test_a_rare_class_has_both_errors(tmp_path):
    for method, runs in WRONG.items():
        for seed, (before, after) in enumerate(runs):
            balanced = {
                name: (wrong[0] / 15 + wrong[1] / 5) / 2
                for name, wrong in (("stage_1", before), ("last", after))
            }
            write_record(
                tmp_path, YEAST.with_method(method), seed,
                baseline_error=sum(before) / 20, last_error=sum(after) / 20,
                also={"balanced_errors": balanced},
            )  # fmt: skip
    frame = report.read_runs(tmp_path)
    # Balanced: the mean of 1/15 and 1/5, of 6/15 and 0, and so on.
    form = r"\d+\.\d\d / \d+\.\d\d"
    assert re.findall(form, small_data_sets.rare_errors(frame)) == [
        "10.00 / 13.33", "30.00 / 20.00", "10.00 / 10.00"
    ]  # fmt: skip
    rows = small_data_sets.rare_changes(frame).splitlines()[2:]
    cells = [[cell.strip() for cell in row.split("|")[2:-1]] for row in rows]
    assert cells == [
        ["1", "+20.00", "+6.67", "1", "0"],
        ["2", "+0.00", "-3.33", "1", "1"],
    ]
