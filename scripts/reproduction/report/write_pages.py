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
    """Writes the index of a results folder, its READMEs and its pictures.

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
    for cell, in_cell in frame.groupby("cell"):
        found[results / cell / "README.md"] = cell_page(in_cell)
        for g in run_frame.groups(in_cell):
            folder = Path(g.path.iloc[0]).parent
            found[results / folder / "README.md"] = experiment_page(g, folder)
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
    "experiments": lambda g: str(g.fingerprint.nunique()),
    "runs": lambda g: str(len(g)),
}


def index_page(frame):
    """The README of a results folder: its cells."""
    pages = frame.assign(path=frame.cell + "/README.md")
    rows = dict([*pages.groupby("cell")])
    return (
        "# Results\n\n"
        "Run records: a folder a cell, in it a folder an experiment, in it a "
        "file a seed. Each cell's README says what its experiments are. "
        "[`index.csv`](index.csv) has a row a run, with errors in percent and "
        "all settings, as `reproduction.report.read_runs` gives them. The "
        "tables are in docs, those of studies with all columns in "
        f"[`{PAGE}`]({PAGE}).\n\n"
    ) + markdown(table(rows, INDEX_COLUMNS))


SEED_COLUMNS = {
    "after stage 1": figure("stage_1"),
    "chosen epoch": figure("chosen"),
    "last epoch": figure("last"),
    "lost a class": run_frame.lost,
    "hardware": run_frame.hardware,
}
EXPERIMENT_COLUMNS = {
    "differs, but for epochs, in": lambda g: g.differs.iloc[0] or MISSING,
    "seeds": run_frame.seeds,
} | SEED_COLUMNS


def experiments(frame):
    """The experiments of some runs as a table, by their folders."""
    frame = frame.sort_values(["pretrain_epochs", "epochs"], kind="stable")
    rows = {
        Path(g.path.iloc[0]).parent.name: g for g in run_frame.groups(frame)
    }
    return table(rows, EXPERIMENT_COLUMNS)


def cell_page(frame):
    """The README of a cell: its experiments."""
    cell, method = frame[["cell", "method"]].iloc[0]
    text = markdown(experiments(frame)).replace(f"]({cell}/", "](")
    return (
        f"# {run_frame.task(frame)}: `{cell}`\n\n"
        f"Test errors in percent, method `{method}`: mean ± standard deviation "
        "over seeds. A folder is named by the epochs of both stages, the "
        "precision and a fingerprint of the settings, which the records have "
        f"in full.\n\n{text}"
    )


def experiment_page(g, folder):
    """The README of an experiment's folder: its seeds, and their means."""
    rows = {f"seed {seed}": g[g.seed == seed] for seed in g.seed}
    rows |= {"mean": g} if len(g) > 1 else {}
    text = markdown(table(rows, SEED_COLUMNS)).replace(f"]({folder}", "](.")
    return (
        f"# {run_frame.task(g)}: `{folder.name}`\n\nTest errors in percent, "
        f"method `{g.method.iloc[0]}`. Settings other than the paper's, but "
        f"for data and epochs: {g.differs.iloc[0] or 'none'}.\n\n{text}"
    )
