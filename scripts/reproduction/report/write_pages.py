"""The tables in the pages of docs, and the index of results."""

import os
import re
from pathlib import Path

from gar_keras.utils import files
from reproduction.report import (
    benchmark_tables,
    long_runs,
    pictures,
    run_frame,
    small_data_sets,
    summary,
)
from reproduction.report.estimates import MISSING
from reproduction.report.published import TABLES
from reproduction.report.study_tables import (
    PAGE,
    studies_page,
    study_section,
)
from reproduction.report.tables import figure, markdown, paper_table, table
from reproduction.studies import STUDIES

# The first line of a README that may be written anew.
_OURS = "<!-- Made by scripts/report.py. -->\n"


def sections(frame, results):
    """The texts of the pages, by the name of their markers.

    Args:
        frame: Runs.
        results: Folder of them.
    """
    # The small data sets have a page of their own.
    whole = frame[(frame.network != "mlp") & frame.images_per_epoch.isna()]
    small = small_data_sets.where(frame)
    found = {
        "summary": summary.summary(frame),
        "results": summary.results(frame),
        "rivals": "\n".join(
            markdown(*summary.baselines_table(methods))
            for methods in summary.compare(whole)
        ),
        "small errors": small_data_sets.errors(small),
        "small changes": small_data_sets.changes(small),
        "small ranks": small_data_sets.ranks(small),
        "rare errors": small_data_sets.rare_errors(frame),
        "rare changes": small_data_sets.rare_changes(frame),
        "long runs": long_runs.long_runs(frame),
    }
    for kind in benchmark_tables.KINDS:
        found[kind] = benchmark_tables.benchmark_markdown(kind, results)
    for paper in TABLES.values():
        found[paper.name] = markdown(*paper_table(paper, frame))
    for study in STUDIES.values():
        found[f"study {study.name}"] = study_section(study, frame)
    return found


def pages_of(readme):
    """A README, and the pages of the folder `docs` beside it."""
    readme = Path(readme)
    return [readme, *sorted((readme.parent / "docs").glob("*.md"))]


def updated(page, texts, results):
    """The text of a page, with the sections of the report in it.

    Each section goes between markers of its name, such as `<!-- table1 -->` and
    `<!-- end table1 -->`; one without markers is left out.

    Args:
        page: Path of the page.
        texts: What `sections` returns.
        results: Folder of the runs.
    """
    text = Path(page).read_text(encoding="utf-8")
    for name, content in texts.items():
        content = content or "Not run yet.\n"
        content = with_links_from(content, results, Path(page).parent)
        text = re.sub(
            f"(<!-- {name} -->\n).*?(?=<!-- end {name} -->)",
            lambda found, content=content: found[1] + content,
            text,
            flags=re.DOTALL,
        )
    return text


def with_links_from(text, results, seen_from):
    """Markdown whose links begin in a results folder, for another place.

    Example:

    >>> with_links_from("[a](b), [c](https://d.org)", "results", "docs")
    '[a](../results/b), [c](https://d.org)'
    """
    way = Path(os.path.relpath(results, seen_from)).as_posix()
    # But for links to other sites.
    return re.sub(r"\]\((?!\w+:)", f"]({way}/", text)


def write(frame, results, readme=None):
    """Writes the index of a results folder, its README and its pictures.

    Args:
        frame: Runs.
        results: Folder of them.
        readme: README to bring up to date, with the pages of docs beside it.

    Returns:
        The paths written. A README in the results that was not made here is
        left as it is.
    """
    results = Path(results)
    found = {
        results / "README.md": index_page(frame),
        results / PAGE: studies_page(STUDIES.values(), frame),
    }
    found = {p: _OURS + text for p, text in found.items() if _is_ours(p)}
    index = frame.drop(columns=run_frame.OBJECTS)
    found[results / "index.csv"] = index.to_csv(
        index=False, float_format="%.6g", lineterminator="\n"
    )
    if readme is not None:
        texts = sections(frame, results)
        found |= {p: updated(p, texts, results) for p in pages_of(readme)}
    for path, text in found.items():
        files.write_atomically(path, lambda file, text=text: file.write(text))
    return [*found, *pictures.draw(frame, results)]


def _is_ours(path):
    return not path.exists() or path.read_text("utf-8").startswith(_OURS)


INDEX_COLUMNS = {
    "data": run_frame.task,
    "method": lambda g: g.method.iloc[0],
    "differs, but for epochs, in": lambda g: g.differs.iloc[0] or MISSING,
    "seeds": run_frame.seeds,
    "after stage 1": figure("stage_1"),
    "chosen epoch": figure("chosen"),
    "last epoch": figure("last"),
    "lost a class": run_frame.lost,
    "hardware": run_frame.hardware,
}


def index_page(frame):
    """The README of a results folder: its experiments."""
    frame = frame.sort_values(
        ["cell", "pretrain_epochs", "epochs"], kind="stable"
    )
    rows = {
        Path(g.path.iloc[0]).parent.as_posix(): g
        for g in run_frame.groups(frame)
    }
    return (
        "# Results\n\n"
        "Run records: a folder a cell of the tables, in it a folder an "
        "experiment, in it a file a seed. An experiment is named by the epochs "
        "of both stages, the precision and a fingerprint of its settings, "
        "which the records have in full. Below, test errors in percent: mean ± "
        "standard deviation over seeds. [`index.csv`](index.csv) has a row a "
        "run, as `reproduction.report.read_runs` gives them. The tables are in "
        f"docs, those of studies with all columns in [`{PAGE}`]({PAGE}).\n\n"
    ) + markdown(table(rows, INDEX_COLUMNS))
