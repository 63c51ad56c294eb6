"""The tables in the pages of docs, and the index of results."""

import os
import re
from pathlib import Path

from reproduction import files
from reproduction.report import (
    benchmark_tables,
    cells,
    compared_methods,
    confusions,
    lost_starts,
    pictures,
    run_frame,
    small_data_sets,
)
from reproduction.report.published import TABLES
from reproduction.report.study_tables import study_table
from reproduction.report.tables import (
    RUN_COLUMNS,
    markdown,
    paper_table,
    table_of_runs,
)
from reproduction.studies import STUDIES

# The page in a results folder with all columns of all studies.
PAGE = "studies.md"

# The first line of a page in the results that may be written anew.
_OURS = "<!-- Made by scripts/report.py. -->\n"

_INTRODUCTION = (
    "# Results\n\n"
    "Run records: a folder for each cell of the tables, in it one for each "
    "experiment, and in that a file for each seed. An experiment is named by "
    "the epochs of both stages, the precision and a fingerprint of its "
    "settings, which the records have in full. Below, test errors in percent: "
    "mean ± standard deviation over seeds. [`index.csv`](index.csv) has a row "
    "for each run, as `reproduction.report.read_runs` gives them. The tables "
    f"are in docs, those of studies with all columns in [`{PAGE}`]({PAGE}).\n\n"
)


def sections(frame, results):
    """The texts of the pages, of runs in a folder, by their markers' names."""
    # The small data sets have a page of their own.
    whole = frame[(frame.network != "mlp") & frame.images_per_epoch.isna()]
    small = small_data_sets.where(frame)
    found = {
        "cells": cells.all_cells(frame),
        "cells, last epochs": cells.all_cells(
            frame, "last_20", without=cells.DETAILS
        ),
        # The cells in the README, for a reader in a hurry.
        "results": cells.all_cells(frame, without=cells.DETAILS),
        "lost": lost_starts.lost_line(frame),
        "lost classes": lost_starts.lost_classes(frame),
        "confusions": confusions.confusions(frame, results),
        "rivals": "\n".join(
            markdown(*t) for t in compared_methods.baselines_tables(whole)
        ),
        "small errors": small_data_sets.errors(small),
        "small changes": small_data_sets.changes(small),
        "small ranks": small_data_sets.ranks(small),
        "rare errors": small_data_sets.rare_errors(frame),
        "rare changes": small_data_sets.rare_changes(frame),
    }
    for kind in benchmark_tables.KINDS:
        found[kind] = benchmark_tables.benchmark_markdown(kind, results)
    for name, paper in TABLES.items():
        found[name] = markdown(*paper_table(paper, frame))
    return found


def pages_of(readme):
    """A README, and the pages of the folder `docs` beside it."""
    readme = Path(readme)
    return [readme, *sorted((readme.parent / "docs").glob("*.md"))]


def updated(page, texts, results):
    """The text of a page, with the sections of the report in it.

    Each of the `texts` of `sections` goes between markers of its name, such as
    `<!-- table1 -->` and `<!-- end table1 -->`; one without is left out.
    """

    def section(found):
        content = texts[found[2]] or "Not run yet.\n"
        return found[1] + with_links_from(content, results, Path(page).parent)

    names = "|".join(map(re.escape, texts))
    return re.sub(
        rf"(<!-- ({names}) -->\n).*?(?=<!-- end \2 -->)",
        section,
        Path(page).read_text(encoding="utf-8"),
        flags=re.DOTALL,
    )


def with_links_from(text, results, seen_from):
    """Markdown whose links begin in a results folder, for another place.

    Example:

    >>> with_links_from("[a](b), [c](https://d.org)", "results", "docs")
    '[a](../results/b), [c](https://d.org)'
    """
    way = Path(os.path.relpath(results, seen_from)).as_posix()
    # Links to other sites stay as they are.
    return re.sub(r"\]\((?!\w+:)", f"]({way}/", text)


def write(frame, results, readme=None):
    """Writes the index of a folder of runs, its pages and its pictures.

    With a `readme` this and the pages of docs beside it are brought up to date.
    A page in the results that was not made here is left as it is. Returns the
    paths written.
    """
    results = Path(results)
    order = ["cell", "pretrain_epochs", "epochs"]
    runs = run_frame.by_folder(frame.sort_values(order, kind="stable"))
    index = table_of_runs(runs, RUN_COLUMNS)
    studies = "# Studies, with all columns\n"
    for name, study in STUDIES.items():
        text = markdown(*study_table(study, frame))
        if text:
            studies += f"\n## {name}\n\n{text}"
    found = {
        results / "README.md": _OURS + _INTRODUCTION + markdown(index),
        results / PAGE: _OURS + studies,
    }
    for path in [*found]:
        if path.exists() and not path.read_text("utf-8").startswith(_OURS):
            del found[path]
    rows = frame.drop(columns=["experiment", "curve"])
    found[results / "index.csv"] = rows.to_csv(
        index=False, float_format="%.6g", lineterminator="\n"
    )
    if readme is not None:
        texts = sections(frame, results)
        found |= {p: updated(p, texts, results) for p in pages_of(readme)}
    for path, text in found.items():
        with files.writing(path) as file:
            file.write(text)
    return [*found, *pictures.draw(frame, results)]
