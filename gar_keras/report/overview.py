"""The overview of a results folder: its README, its index, and a search."""

import csv
import io
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from gar_keras.experiments import records as record_files
from gar_keras.experiments.placement import path_of_record
from gar_keras.experiments.settings import Experiment
from gar_keras.methods import METHODS
from gar_keras.report.groups import Group
from gar_keras.report.layout import markdown_table
from gar_keras.report.lost import lost_class
from gar_keras.report.parts import PARTS
from gar_keras.utils import files

INDEX = "index.csv"
README = "README.md"

# What a record holds, by its keys.
RECORD = {
    "format": "version of this form",
    "experiment": "all settings; see `Experiment` in "
    "`gar_keras/experiments/settings.py`",
    "cell": "data, number of labels, and the method if it is not GAR",
    "fingerprint": "eight digits of the settings, which the file's name bears",
    "seed": "decides the labels, the initial weights, dropout and the batches",
    "labeled": "indices of the labelled images",
    "split_fingerprint": "digits of which images are labelled and which "
    "validate",
    "data": "title and source of the images",
    "class_prior": "shares of the classes that the balance term was given",
    "method_settings": "hyper-parameters of the method",
    "pretraining": "stage 1: seconds, and the curve of its epochs",
    "regularization": "stage 2: likewise; epoch 0 is the end of stage 1",
    "first_epoch": "the steps of that epoch, in runs of a single one",
    "result": "the test errors that the tables show, as shares of 1",
    "snapshot_epochs": "epochs of stage 2 of which the logits of 2,000 test "
    "images were kept, in an `.npz` of the same name",
    "environment": "versions, commit and hardware",
    "resumed_in": "those of the processes that took the run up again",
    "evaluation_seconds": "time that the errors of all epochs took",
    "warnings": "what the run warned of",
}

# The text of a link, and where it leads.
_LINK = re.compile(r"\[([^\]]*)\]\(([^)]*)\)")

# A row of a table that is neither its heading nor the rule below that.
_BODY = re.compile(r"^\|(?! ---).*\|$(?!\n\| ---)", re.M)

_INTRO = f"""\
# Results

Made by `python scripts/report.py` from the run records in this folder. Errors
are test errors in percent: mean ± standard deviation over *n* seeds. Each
figure of ours, or the name of its row, leads to the records of its runs.

- [`{INDEX}`]({INDEX}) has a line for each run, with its errors in
  percent. `differs` is what a run changes in the paper's setting, but for the
  epochs, the precision and the backend, which have columns of their own.
- `python scripts/report.py --find 4.98` prints the rows that show a figure, and
  the runs behind them.
- A record lies in three folders that say what it is, the study or table, the
  cell, and the epochs with what differs from the paper, as far as there is
  room: `options/mnist-100/2000+4_bfloat16_shift-2`. A run that is in several
  tables lies in the first of them. Its file is named by cell, seed and
  fingerprint.
- Records that lie flat, as earlier versions left them, are read all the same;
  `python scripts/report.py` moves them into their folders.
"""


@dataclass(frozen=True)
class Line:
    """A run in the index."""

    path: str
    cell: str
    method: str
    differs: str
    seed: int
    pretrain_epochs: int | None
    epochs: int | None
    precision: str
    backend: str
    after_stage_1: float | None
    chosen_epoch: int
    chosen: float
    last: float
    last_20: float | None
    lost_class: bool | None
    minutes: float
    device: str
    fingerprint: str


def index(records, results):
    """The lines of the index, in the order of their paths.

    Args:
        records: Run records.
        results: Folder of them.

    Returns:
        A list of `Line`.
    """
    lines = [_line(record, results) for record in records]
    return sorted(lines, key=lambda line: line.path)


def _line(record, results):
    e = Experiment(**record["experiment"])
    result, g = record["result"], Group((record,))
    baseline, late = result["baseline_error"], g.late_error()
    trained = METHODS[e.method].network
    return Line(
        path=path_of_record(record, results).relative_to(results).as_posix(),
        cell=e.cell,
        method=e.method,
        differs=g.changes_text().removeprefix(", "),
        seed=record["seed"],
        pretrain_epochs=e.pretrain_epochs if trained else None,
        epochs=e.epochs if trained else None,
        precision=e.precision,
        backend=e.backend,
        after_stage_1=None if baseline is None else _percent(baseline),
        chosen_epoch=result["chosen_epoch"],
        chosen=_percent(result["chosen_error"]),
        last=_percent(result["last_error"]),
        last_20=late and round(late.mean, 4),
        lost_class=lost_class(record, results),
        minutes=round(g.seconds("pretraining", "regularization") / 60, 1),
        device=g.device_text(),
        fingerprint=record["fingerprint"],
    )


def _percent(error):
    return round(100 * error, 4)


def index_csv(lines):
    """The index as CSV."""
    text = io.StringIO()
    names = list(Line.__dataclass_fields__)
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(map(asdict, lines))
    return text.getvalue()


def overview_markdown(records, results):
    """The README of a results folder: all parts of the report.

    Args:
        records: Run records.
        results: Folder of them.
    """
    held = [[f"`{key}`", text] for key, text in RECORD.items()]
    sections = [_INTRO]
    for part in PARTS:
        content = part.markdown(records, results) or part.absent
        sections.append(f"## {part.heading}\n\n{content}")
        picture = f"{part.name}.png"
        if (Path(results) / picture).exists():
            sections.append(f"![{part.heading}]({picture})\n")
    table = "\n".join(markdown_table(["key", "what it is"], held))
    sections.append(f"## What a record holds\n\n{table}\n")
    return "\n".join(sections)


def write_overview(results):
    """Writes the README and the index of a results folder.

    A README that was not made here is left as it is.

    Returns:
        The paths written.
    """
    records = record_files.read_all(results)
    contents = {
        README: overview_markdown(records, results),
        INDEX: index_csv(index(records, results)),
    }
    paths = []
    for name, content in contents.items():
        path = Path(results) / name
        if name == README and not _is_ours(path):
            continue
        files.write_atomically(path, lambda file, c=content: file.write(c))
        paths.append(path)
    return paths


def _is_ours(path):
    """Whether a README is the one made here, or is not there."""
    begin = _INTRO.partition("\n\n- ")[0]
    return not path.exists() or path.read_text("utf-8").startswith(begin)


@dataclass(frozen=True)
class Found:
    """A row of the report that shows a figure.

    Attributes:
        heading: Heading of the part that it is in.
        row: Its cells, as text.
        targets: The links of the row, or of the cells with the figure if
            these have links of their own.
    """

    heading: str
    row: tuple
    targets: tuple

    def lines(self, lines):
        """Those of the index that the links lead to."""
        return [line for line in lines if self.leads_to(line.path)]

    def leads_to(self, path):
        """Whether a path is that of a link, or below it."""
        return any(path == t or path.startswith(f"{t}/") for t in self.targets)


def rows_of(markdown, heading="", figure=None):
    """The rows of the tables of a Markdown text.

    Args:
        markdown: The text.
        heading: As in `Found`.
        figure: That of which the rows are wanted; those of any by default.

    Returns:
        A list of `Found`.
    """
    found = []
    for row in _BODY.findall(markdown):
        cells = row[2:-2].split(" | ")
        texts = tuple(map(_text_of, cells))
        showing = [
            cell
            for cell, text in zip(cells, texts, strict=True)
            if figure is None or shows(text, figure)
        ]
        if showing:
            targets = _targets(showing) or _targets(cells)
            found.append(Found(heading, texts, tuple(targets)))
    return found


def find(figure, records, results):
    """The rows of the report's tables, and the runs, that show a figure.

    Args:
        figure: The figure as it is shown, e.g. `"4.98"`.
        records: Run records.
        results: Folder of them.

    Returns:
        A list of `Found`.

    Raises:
        ValueError: if it has no digit.
    """
    if not re.search(r"\d", figure):
        raise ValueError(
            f"A figure must have a digit, e.g. 4.98. Received: {figure!r}"
        )
    found = []
    for part in PARTS:
        markdown = part.markdown(records, results)
        found += rows_of(markdown, part.heading, figure)
    for line in index(records, results):
        errors = (line.after_stage_1, line.chosen, line.last)
        if figure in [f"{error:.2f}" for error in errors if error is not None]:
            row = (
                line.cell,
                f"seed {line.seed}",
                line.differs or "the paper's",
            )
            found.append(Found("A run", row, (line.path,)))
    return found


def shows(text, figure):
    """Whether a text has a figure, and not as a part of another one.

    Example:

    >>> shows("4.98 ± 0.52 (n = 3)", "4.98"), shows("14.98", "4.98")
    (True, False)
    """
    return bool(re.search(rf"(?<![\d.]){re.escape(figure)}(?![\d])", text))


def _text_of(cell):
    """A cell without its links and its bold type.

    Example:

    >>> _text_of("**[GAR](a)**"), _text_of("vote ([1](a), [2](b))")
    ('GAR', 'vote')
    """
    cell = re.sub(rf" \((?:{_LINK.pattern}(?:, )?)+\)$", "", cell)
    return _LINK.sub(r"\1", cell).strip("*")


def _targets(cells):
    return [match[2] for match in _LINK.finditer(" ".join(cells))]
