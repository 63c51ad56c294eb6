"""Tables and learning curves from run records, beside the paper's figures."""

from dataclasses import dataclass
from dataclasses import replace
import json
import math
from pathlib import Path
import statistics
import textwrap

import numpy as np
from rich.console import Console
from rich.table import Table as TerminalTable

from gar_keras.benchmarks import tables as benchmarks
from gar_keras.experiments import records as record_files
from gar_keras.experiments.paper import BASELINE
from gar_keras.experiments.paper import GAR
from gar_keras.experiments.paper import TABLES
from gar_keras.experiments.settings import FREE
from gar_keras.experiments.settings import GRAPH_RIVALS
from gar_keras.experiments.settings import PAPER
from gar_keras.experiments.settings import differences
from gar_keras.experiments.settings import stands_for_paper
from gar_keras.experiments.settings import with_defaults
from gar_keras.experiments.studies import STUDIES

MISSING = "-"

# 97.5 % quantiles of Student's t, for 1 to 30 degrees of freedom.
T_QUANTILES = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


@dataclass(frozen=True)
class Estimate:
    """Mean and standard deviation of an error over seeds, in percent.

    Attributes:
        mean: Mean.
        deviation: Sample standard deviation, or `None` for one seed.
        n: Number of seeds.
        signed: Whether it is a difference, which shows its sign.
    """

    mean: float
    deviation: float | None
    n: int
    signed: bool = False

    @classmethod
    def of(cls, errors):
        """From errors as shares from 0 to 1, one for each seed.

        Example:

        >>> str(Estimate.of([0.01, 0.02, 0.03]))
        '2.00 ± 1.00 (n = 3)'
        """
        percent = [100 * error for error in errors]
        deviation = statistics.stdev(percent) if len(percent) > 1 else None
        return cls(statistics.mean(percent), deviation, len(percent))

    def interval(self):
        """The 95 % interval of the mean by Student's t, or `None` if n < 3.

        Example:

        >>> low, high = Estimate.of([0.01, 0.02, 0.03]).interval()
        >>> round(low, 2), round(high, 2)           # 2 ± 4.303 * 1 / √3
        (-0.48, 4.48)
        """
        if self.n < 3:
            return None
        # The table ends at 31 seeds; more would only make it narrower.
        t = T_QUANTILES[min(self.n - 1, len(T_QUANTILES)) - 1]
        half = t * self.deviation / math.sqrt(self.n)
        return self.mean - half, self.mean + half

    def __str__(self):
        spread = "" if self.deviation is None else f" ± {self.deviation:.2f}"
        mean = f"{self.mean:{'+' if self.signed else ''}.2f}"
        return f"{mean}{spread} (n = {self.n})"


@dataclass(frozen=True)
class Group:
    """The records of one experiment, over its seeds."""

    records: tuple

    @property
    def settings(self):
        return self.records[0]["experiment"]

    @property
    def method(self):
        return with_defaults(self.settings)["method"]

    @property
    def data(self):
        title = self.records[0]["data"]["title"]
        unlabeled = with_defaults(self.settings)["unlabeled"]
        return f"{title}{UNLABELED_TEXT[unlabeled]}"

    @property
    def seeds(self):
        return sorted(record["seed"] for record in self.records)

    def error(self, key):
        """Estimate of one of the results, e.g. `"chosen_error"`."""
        return Estimate.of([r["result"][key] for r in self.records])

    def by_seed(self, key):
        """One of the results of each seed, as a dict."""
        return {r["seed"]: r["result"][key] for r in self.records}

    def validation_error(self):
        """Estimate of the validation error in the last epoch."""
        curves = [r["regularization"]["curve"] for r in self.records]
        return Estimate.of([curve["val_error"][-1] for curve in curves])

    def last(self, term):
        """Mean of a term of the loss in the last epoch, as text."""
        curves = [r["regularization"]["curve"] for r in self.records]
        if any(term not in curve for curve in curves):
            return MISSING
        return f"{statistics.mean(curve[term][-1] for curve in curves):.3f}"

    def warned(self):
        """Number of the runs in which a warning came."""
        return sum(bool(r.get("warnings")) for r in self.records)

    def seconds(self, *stages):
        """Mean seconds of training in some stages."""
        return statistics.mean(
            sum(r[stage]["seconds"] for stage in stages) for r in self.records
        )

    def seed_text(self):
        """The seeds in words, e.g. `seed 0`, `seeds 0-9` or `seeds 0,2,7`."""
        first, last = self.seeds[0], self.seeds[-1]
        if first == last:
            return f"seed {first}"
        if self.seeds == [*range(first, last + 1)]:
            return f"seeds {first}-{last}"
        return f"seeds {','.join(map(str, self.seeds))}"

    def changes_text(self):
        """What differs from the paper's settings, in words."""
        standard = PAPER.get(self.records[0]["cell"])
        if standard is None:
            return ""
        changes = differences(self.settings, standard)
        for name in FREE:
            changes.pop(name, None)
        words = {"frobenius_of": "Frobenius term of {}"}
        return "".join(
            ", "
            + words.get(name, f"{name.replace('_', ' ')} {{}}").format(
                _short(value)
            )
            for name, value in changes.items()
        )

    def device_text(self):
        """What the runs were made on, in words."""
        where = [r["environment"] for r in self.records]
        devices = sorted({e["device"] for e in where})
        cores = sorted({str(e["cores"]) for e in where})
        return f"{'/'.join(devices)} ({'/'.join(cores)} cores)"

    def describe(self):
        """One line: what was run, on what, how often and for how long."""
        s = self.settings
        minutes = [
            (r["pretraining"]["seconds"] + r["regularization"]["seconds"]) / 60
            for r in self.records
        ]
        return (
            f"{self.data}, m_L = {s['num_labeled']}: n = {len(self.records)} "
            f"({self.seed_text()}), "
            f"{s['pretrain_epochs']} + {s['epochs']} epochs, "
            f"{s['precision']}, {s['backend']}{self.changes_text()}, "
            f"{self.device_text()}, "
            f"{statistics.mean(minutes):.{0 if min(minutes) >= 10 else 1}f} "
            "min a run"
        )


# Behind the name of the data, where X_U is not of the training images.
UNLABELED_TEXT = {
    "train": "",
    "infimnist": ", X_U from InfiMNIST",
    "svhn-extra": " with the extra set",
}

# The methods of the comparison, in the order of its rows.
METHODS = {
    "gar": "GAR",
    "supervised": "Supervised only",
    "entropy": "Entropy minimization",
    "pseudo-label": "Pseudo-Label",
    "pi": "Π model",
    "vat": "VAT",
    "vat-entropy": "VAT + entropy minimization",
    "mean-teacher": "Mean Teacher",
    "embed-cnn": "EmbedCNN",
    "label-spreading": "Label spreading",
    "hagr": "HAGR",
}

# The settings that may be left out, at their defaults.
_STANDARD = with_defaults({})

STUDY_HEADING = (
    "",
    "after stage 1",
    "epoch chosen by validation",
    "against the first row",
    "last epoch",
    "validation, last epoch",
    "affinity",
    "balance",
    "runs warned of",
    "minutes a run",
)
# What of it fits into a terminal.
STUDY_SHORT = (
    "",
    "after stage 1",
    "epoch chosen by validation",
    "against the first row",
    "last epoch",
    "runs warned of",
)

# Our rows, below the paper's: what they show and the key in the records.
OUR_ROWS = {
    f"{BASELINE}, ours": "baseline_error",
    f"{GAR}, ours, epoch chosen by validation": "chosen_error",
    f"{GAR}, ours, last epoch": "last_error",
}


def _short(value):
    """A setting as text; of a list its ends."""
    if isinstance(value, list):
        return f"{value[0]:.3g} to {value[-1]:.3g}"
    return str(value)


def group(records):
    """Groups records by experiment, in the order of their first appearance."""
    found = {}
    for record in records:
        found.setdefault(record["fingerprint"], []).append(record)
    return [Group(tuple(members)) for members in found.values()]


def representative(records, column):
    """The group that stands for a column of a table, or `None`.

    Of the experiments with the paper's settings: the one with the most epochs
    of stage 2, then the one with the most seeds, then the one with the most
    epochs of stage 1.
    """
    for cell in (column.cell, column.stand_in):
        groups = [
            g
            for g in group(records)
            if g.records[0]["cell"] == cell
            and stands_for_paper(g.settings, cell)
        ]
        if groups:
            return max(groups, key=_size)
    return None


def _size(g):
    s = g.settings
    return s["epochs"], len(g.records), s["pretrain_epochs"]


def table_rows(table, records):
    """The cells of a table as text: a heading row, then a row a method.

    Args:
        table: A `Table` of the paper.
        records: Run records.

    Returns:
        A list of lists of strings. The paper's rows come first.
    """
    groups = [representative(records, c) for c in table.columns]
    rows = [["", *(column.heading for column in table.columns)]]
    for method, figures in table.rows.items():
        name = f"{method}, paper" if method in (BASELINE, GAR) else method
        rows.append([name, *(str(f) if f else MISSING for f in figures)])
    for name, key in OUR_ROWS.items():
        cells = [
            _our_cell(g, key, column)
            for g, column in zip(groups, table.columns, strict=True)
        ]
        rows.append([name, *cells])
    return rows


def markdown(table, records):
    """A table as Markdown, with a line below for each of our cells."""
    heading, *rows = table_rows(table, records)
    lines = [f"**{table.title}**", "", _row(heading)]
    lines.append(_row(["---", *("---:" for _ in heading[1:])]))
    for row in rows:
        ours = row[0] in OUR_ROWS
        lines.append(_row([f"**{row[0]}**", *row[1:]] if ours else row))
    lines.append("")
    lines += [f"- {line}" for line in notes(table, records)]
    return "\n".join(lines) + "\n"


def notes(table, records):
    """A line for each column: what our figure was made with, if any."""
    lines = []
    for column in table.columns:
        found = representative(records, column)
        if found is None:
            lines.append(f"{column.heading}: not run")
        else:
            lines.append(found.describe() + _interval_text(found, column.cell))
    return lines


def _interval_text(found, cell):
    """Whether the paper's error lies in the interval of ours, in words."""
    interval = found.error("chosen_error").interval()
    published = paper_error(cell)
    if interval is None or published is None:
        return ""
    low, high = interval
    where = "inside" if low <= published.error <= high else "outside"
    return (
        f"; 95 % interval of the mean at the chosen epoch: {low:.2f} to "
        f"{high:.2f}, the paper's {published.error:.2f} is {where}"
    )


def show(table, records, results):
    """Prints a table and writes the Markdown and the curves of the folder.

    The table in the terminal is made from `records` and has the columns that
    they fill; the files cover all columns and all records in the folder.

    Runs with other settings than the paper's are listed below the table.

    Args:
        table: A `Table` of the paper.
        records: The records to print.
        results: Folder of the records, where the files go.
    """
    console = Console(highlight=False, soft_wrap=True)
    filled = table.only(lambda column: representative(records, column))
    if filled.columns:
        _print_table(console, filled, records)
    for g in _others(table, records):
        console.print(f"- beside the table: {g.describe()}")
        for name, key in OUR_ROWS.items():
            console.print(f"    {name}: {g.error(key)}")
    for path in write(table, results):
        console.print(f"Written: {path}")


def _print_table(console, table, records):
    heading, *rows = table_rows(table, records)
    terminal = TerminalTable(title=table.title)
    for name in heading:
        terminal.add_column(name, justify="right" if name else "left")
    for name, *cells in rows:
        # n below its figure keeps four columns within 80 characters.
        cells = [cell.replace(" (n =", "\n(n =") for cell in cells]
        ours = name in OUR_ROWS
        terminal.add_row(name, *cells, style="bold" if ours else None)
    console.print(terminal)
    for line in notes(table, records):
        console.print(f"- {line}")


def _others(table, records):
    """The groups in a table's cells that do not stand for their column."""
    shown = [representative(records, column) for column in table.columns]
    cells = {
        cell for c in table.columns for cell in (c.cell, c.stand_in) if cell
    }
    return [
        g
        for g in group(records)
        if g.records[0]["cell"] in cells and g not in shown
    ]


def write(table, results):
    """Writes a table's Markdown and PNG from all records of a folder.

    Returns:
        The paths written; none if no column has a figure of ours.
    """
    everything = record_files.read_all(results)
    groups = [representative(everything, c) for c in table.columns]
    groups = [g for g in groups if g is not None]
    if not groups:
        return []
    text = Path(results) / f"{table.name}.md"
    content = markdown(table, everything)
    record_files.write_atomically(text, lambda file: file.write(content))
    picture = Path(results) / f"{table.name}.png"
    plot_curves(groups, table.title, picture)
    return [text, picture]


def plot_curves(groups, title, path):
    """Draws error, affinity and balance over the epochs, all seeds.

    Each seed is a thin line, their mean a thick one. Dots are the seeds' test
    errors at the epoch chosen by validation, the dashed line is the paper's.

    Args:
        groups: List of `Group`, a column of panels for each.
        title: Title of the picture.
        path: Where to write the PNG.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * len(groups) + 1, 8), layout="constrained")
    figure.suptitle(textwrap.fill(title, 50 * len(groups)))
    panels = figure.subplots(
        3, len(groups), squeeze=False, sharex="col", height_ratios=(2, 1, 1)
    )
    for g, column in zip(groups, panels.T, strict=True):
        _draw_group(g, *column)
    _save(figure, path)


def _save(figure, path):
    """Writes a picture as PNG, whole or not at all."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure)
    record_files.write_atomically(
        path,
        lambda file: figure.savefig(file, dpi=150, format="png"),
        mode="wb",
    )


def _draw_group(g, error, affinity, balance):
    from matplotlib.ticker import LogLocator
    from matplotlib.ticker import NullFormatter

    error.set_title(
        f"{g.data}, m_L = {g.settings['num_labeled']} (n = {len(g.records)})",
        fontsize=10,
    )
    error.set(ylabel="error, %", yscale="log")
    error.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    error.yaxis.set_major_formatter("{x:g}")
    error.yaxis.set_minor_formatter(NullFormatter())
    affinity.set(ylabel="affinity α(B)", yscale="log")
    balance.set(ylabel="balance β(B)", xlabel="epoch of stage 2")
    # Validation errors are noisy: the test errors go on top of them.
    _draw_seeds(error, g, "val_error", "validation", "tab:orange", 0.2)
    _draw_seeds(error, g, "test_error", "test", "tab:blue", 0.6)
    _draw_chosen(error, g)
    _draw_seeds(affinity, g, "affinity", None, "tab:blue", 0.6)
    _draw_seeds(balance, g, "balance", None, "tab:blue", 0.6)
    error.legend(fontsize=8, loc="best")
    for panel in (error, affinity, balance):
        panel.grid(alpha=0.3)
        panel.xaxis.get_major_locator().set_params(integer=True)


def _draw_seeds(panel, g, name, label, color, alpha):
    """The curves of all seeds, and their mean with the label."""
    curves = [r["regularization"]["curve"] for r in g.records]
    # Epoch 0, after pretraining, has errors alone.
    first = 0 if curves[0][name][0] is not None else 1
    percent = 100 if name.endswith("error") else 1
    epochs = curves[0]["epoch"][first:]
    seeds = [[percent * y for y in curve[name][first:]] for curve in curves]
    # A lone epoch is a point, which a line does not show.
    style = {"color": color, "marker": "." if len(epochs) == 1 else None}
    if len(seeds) > 1:
        for ys in seeds:
            panel.plot(epochs, ys, lw=0.5, alpha=alpha, **style)
        label = label and f"{label}, mean"
    means = [statistics.mean(ys) for ys in zip(*seeds, strict=True)]
    panel.plot(epochs, means, lw=1.5, label=label, **style)


def _draw_chosen(panel, g):
    """The chosen epochs' test error, and the paper's where it has one."""
    results = [r["result"] for r in g.records]
    panel.plot(
        [r["chosen_epoch"] for r in results],
        [100 * r["chosen_error"] for r in results],
        "o",
        color="black",
        ms=3,
        zorder=3,
        label=f"test, chosen by validation: {g.error('chosen_error')}",
    )
    published = paper_error(g.records[0]["cell"])
    if published is not None:
        panel.axhline(
            published.error,
            color="black",
            ls="--",
            lw=1,
            label=f"paper: {published}",
        )


def show_rivals(records, results):
    """Prints the comparisons and writes those of the folder.

    Args:
        records: The records to print.
        results: Folder of the records, where `rivals.md` and `rivals.png` go.
    """
    console = Console(highlight=False, soft_wrap=True)
    for comparison in compare(records):
        terminal = TerminalTable(title=comparison.title)
        for name in comparison.HEADING:
            terminal.add_column(name, justify="right" if name else "left")
        for row in comparison.rows():
            # As in the tables of the paper, to keep within 80 characters.
            terminal.add_row(*(c.replace(" (n =", "\n(n =") for c in row))
        console.print(terminal)
        for note in comparison.notes():
            console.print(f"- {note}")
    for path in write_rivals(results):
        console.print(f"Written: {path}")


def write_rivals(results):
    """Writes the comparisons of a folder as Markdown and as a picture.

    Returns:
        The paths written; none if there is nothing to compare.
    """
    comparisons = compare(record_files.read_all(results))
    if not comparisons:
        return []
    text = Path(results) / "rivals.md"
    content = "\n".join(c.markdown() for c in comparisons)
    record_files.write_atomically(text, lambda file: file.write(content))
    picture = Path(results) / "rivals.png"
    plot_rivals(comparisons, picture)
    return [text, picture]


def plot_rivals(comparisons, path):
    """Draws the error of each method against its seconds of training.

    Dots are the mean test errors at the epoch chosen by validation, bars
    their standard deviations over the seeds, faint dots the seeds.

    Args:
        comparisons: List of `Comparison`, a panel for each.
        path: Where to write the PNG.
    """
    from matplotlib.figure import Figure

    size = (6 * len(comparisons), 6)
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(1, len(comparisons), squeeze=False)[0]
    for panel, comparison in zip(panels, comparisons, strict=True):
        _draw_comparison(panel, comparison)
    _save(figure, path)


def _draw_comparison(panel, comparison):
    from matplotlib.ticker import LogLocator
    from matplotlib.ticker import NullFormatter

    for g in comparison.groups:
        place = list(METHODS).index(g.method)
        color = f"C{place - 1}" if place else "black"
        style = {"color": color, "marker": "osD^vPXp<>h"[place]}
        seconds = [
            r["pretraining"]["seconds"] + r["regularization"]["seconds"]
            for r in g.records
        ]
        errors = [100 * r["result"]["chosen_error"] for r in g.records]
        panel.plot(seconds, errors, ls="", alpha=0.3, ms=4, **style)
        estimate = g.error("chosen_error")
        panel.errorbar(
            statistics.mean(seconds),
            estimate.mean,
            estimate.deviation or 0.0,
            ls="",
            ms=8,
            capsize=3,
            label=f"{METHODS[g.method]}: {estimate}",
            **style,
        )
    panel.set_title(comparison.title.removesuffix(": test error in percent"))
    panel.set(xscale="log", yscale="log")
    panel.set(xlabel="seconds of training, both stages", ylabel="test error, %")
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(NullFormatter())
    panel.grid(alpha=0.3)
    # Below the panel, where it hides no dot.
    panel.legend(
        fontsize=7, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.13)
    )


def show_study(study, records, results):
    """Prints a study and writes the studies of the folder.

    Args:
        study: A `gar_keras.experiments.studies.Study`.
        records: The records to print.
        results: Folder of the records, where `study_*.md` go.
    """
    console = Console(highlight=False, soft_wrap=True)
    terminal = TerminalTable(title=study.title)
    for name in STUDY_SHORT:
        justify, least = ("right", None) if name else ("left", 22)
        terminal.add_column(name, justify=justify, min_width=least)
    for row in study_rows(study, records, results):
        cells = dict(zip(STUDY_HEADING, row, strict=True))
        terminal.add_row(
            *(cells[name].replace(" (n =", "\n(n =") for name in STUDY_SHORT)
        )
    console.print(terminal)
    for path in write_studies(results):
        console.print(f"Written: {path}")


def write_studies(results):
    """Writes each study of which the folder has a record, as Markdown.

    Returns:
        The paths written.
    """
    everything = record_files.read_all(results)
    written = []
    for study in STUDIES.values():
        content = study_markdown(study, everything, results)
        if content:
            path = Path(results) / f"study_{study.name}.md"
            record_files.write_atomically(
                path, lambda file, text=content: file.write(text)
            )
            written.append(path)
    return written


def study_markdown(study, records, results):
    """A study as Markdown; empty if none of it has been run.

    Args:
        study: A `Study`.
        records: Run records.
        results: Folder of the records, with what lies beside them.
    """
    if not any(arm_group(arm, records) for arm in study.arms.values()):
        return ""
    lines = [f"**{study.title}**", "", _row(STUDY_HEADING)]
    lines.append(_row(["---", *("---:" for _ in STUDY_HEADING[1:])]))
    lines += [_row(row) for row in study_rows(study, records, results)]
    lines += ["", *(f"- {note}" for note in study_notes(study, records))]
    return "\n".join(lines) + "\n"


def study_rows(study, records, results):
    """The rows of a study: its arms, with what was measured of each."""
    rows = []
    usual = arm_group(next(iter(study.arms.values())), records)
    first = usual.by_seed("chosen_error") if usual else {}
    for name, arm in study.arms.items():
        g = arm_group(arm, records)
        if g is None:
            rows.append([name, *("not run" for _ in STUDY_HEADING[1:])])
            continue
        chosen = g.by_seed("chosen_error")
        minutes = g.seconds("pretraining", "regularization") / 60
        rows.append(
            [
                name,
                str(g.error("baseline_error")),
                str(g.error("chosen_error")),
                MISSING if g == usual else _against(first, chosen),
                str(g.error("last_error")),
                str(g.validation_error()),
                *(g.last(term) for term in ("affinity", "balance")),
                f"{g.warned()} of {len(g.records)}",
                f"{minutes:.1f}",
            ]
        )
    for name, voters in study.votes.items():
        errors = vote(voters, records, results)
        cells = [MISSING] * (len(STUDY_HEADING) - 1)
        cells[1] = "not run"
        if errors:
            cells[1] = str(Estimate.of(errors.values()))
            cells[2] = _against(first, errors)
        rows.append([name, *cells])
    return rows


def _against(first, errors):
    """The mean difference of errors by seed, of the seeds that both have.

    Example:

    >>> _against({0: 0.05, 1: 0.06}, {1: 0.04, 2: 0.03})
    '-2.00 (n = 1)'
    """
    common = first.keys() & errors.keys()
    if not common:
        return MISSING
    found = Estimate.of([errors[seed] - first[seed] for seed in common])
    return str(replace(found, signed=True))


def study_notes(study, records):
    """What a reader of a study has to know, a line each."""
    found = {name: arm_group(arm, records) for name, arm in study.arms.items()}
    found = {name: g for name, g in found.items() if g is not None}
    alike = {}
    for name, g in found.items():
        s = g.settings
        where = (
            f"{g.seed_text()}, {s['pretrain_epochs']} + {s['epochs']} epochs, "
            f"{s['precision']}, {s['backend']}, {g.device_text()}"
        )
        alike.setdefault(where, []).append(name)
    lines = [*study.notes]
    for where, names in alike.items():
        who = "all rows" if len(alike) == 1 else "; ".join(names)
        lines.append(f"{where}: {who}")
    changes = {name: g.changes_text() for name, g in found.items()}
    lines += [
        f"{name}: {text.removeprefix(', ')}"
        for name, text in changes.items()
        if text
    ]
    return lines


def vote(voters, records, results):
    """The errors of several runs together by seed; empty if not all ran.

    The predictions of the runs of a seed, each at its own epoch chosen by
    validation, are averaged: the class with the highest mean probability is
    taken.

    Args:
        voters: Experiments with the same labels and test images.
        records: Run records.
        results: Folder with the `.npz` files beside the records.

    Returns:
        A dict of the seeds that all of them ran.
    """
    groups = [arm_group(voter, records) for voter in voters]
    if not all(groups):
        return {}
    runs = [{r["seed"]: r for r in g.records} for g in groups]
    common = sorted(set.intersection(*(set(by_seed) for by_seed in runs)))
    errors = {}
    for seed in common:
        total = 0.0
        for by_seed in runs:
            r = by_seed[seed]
            name = record_files.file_name(r["cell"], seed, r["fingerprint"])
            path = (Path(results) / name).with_suffix(".npz")
            with np.load(path) as file:
                total = total + file["chosen_probabilities"].astype(float)
                labels = file["test_labels"]
        errors[seed] = float(np.mean(total.argmax(axis=1) != labels))
    return errors


def arm_group(arm, records):
    """The group of records of an arm of a study, or `None`.

    Precision and backend may be any; of several groups it is the largest.
    """
    groups = [
        g
        for g in group(records)
        if differences(g.settings, arm).keys() <= {"precision", "backend"}
    ]
    return max(groups, key=_size, default=None)


def paper_error(cell):
    """The paper's `Published` error of GAR in a cell, or `None`.

    Example:

    >>> str(paper_error("mnist-100"))
    '1.56 ± 0.09'
    """
    for table in TABLES.values():
        for i, column in enumerate(table.columns):
            if column.cell == cell and GAR in table.rows:
                return table.rows[GAR][i]
    return None


def paired(records, setting):
    """Compares experiments that differ in one setting, seed by seed.

    Args:
        records: Run records.
        setting: Name of the setting, e.g. `"precision"`.

    Returns:
        Markdown: a table with a row for each pair of experiments and its mean
        difference over the seeds that both ran, in percentage points, at the
        last epoch that both have; empty if there is no pair.
    """
    groups = [g for g in group(records) if g.method == "gar"]
    alike = {}
    for i, first in enumerate(groups):
        for second in groups[i + 1 :]:
            if _differ_in(first, second) - {"epochs"} == {setting}:
                pair = sorted(
                    (first, second), key=lambda g: str(g.settings[setting])
                )
                alike.setdefault(
                    _but_for(first, {setting, "epochs"}), []
                ).append(pair)
    lines = []
    for pairs in alike.values():
        lines += _paired_row(*max(pairs, key=_size_of_pair), setting)
    if not lines:
        return ""
    heading = ["runs", "seeds", "test error", "mean difference"]
    return "\n".join(
        [_row(heading), _row(["---", "---", "---", "---:"]), *lines, ""]
    )


def _differ_in(first, second):
    """Names of the settings in which two experiments differ."""
    a, b = with_defaults(first.settings), with_defaults(second.settings)
    return {name for name in a.keys() | b.keys() if a.get(name) != b.get(name)}


def _size_of_pair(pair):
    first, second = pair
    common = set(first.seeds) & set(second.seeds)
    return bool(common), _common_epoch(first, second), len(common)


def _common_epoch(first, second):
    """The last epoch that both have.

    A run of more epochs was there what a shorter one is at its end, unless
    its rate is laid over all epochs: then there is no such epoch.
    """
    epochs = {g.settings["epochs"] for g in (first, second)}
    rate = with_defaults(first.settings)["extensions"]["rate"]
    if rate == "cosine" and len(epochs) > 1:
        return 0
    return min(epochs)


def _paired_row(first, second, setting):
    epoch = _common_epoch(first, second)
    errors = [
        {
            r["seed"]: 100 * r["regularization"]["curve"]["test_error"][epoch]
            for r in g.records
        }
        for g in (first, second)
    ]
    seeds = sorted(errors[0].keys() & errors[1].keys())
    if not seeds or not epoch:
        return []
    s = first.settings
    names = [str(g.settings[setting]) for g in (first, second)]
    pairs = ", ".join(f"{errors[0][i]:.2f} / {errors[1][i]:.2f}" for i in seeds)
    mean = statistics.mean(errors[0][i] - errors[1][i] for i in seeds)
    return [
        _row(
            [
                f"{first.data}, m_L = {s['num_labeled']}, "
                f"{s['pretrain_epochs']} + {epoch} epochs",
                f"{', '.join(map(str, seeds))} (n = {len(seeds)})",
                f"{' / '.join(names)}: {pairs}",
                f"{mean:+.2f}",
            ]
        )
    ]


def update_readme(readme, results):
    """Puts the tables between their markers in the README.

    A table goes between `<!-- table1 -->` and `<!-- end table1 -->`, the
    comparison of `paired` between markers of the setting's name, that of the
    methods between `<!-- rivals -->` and `<!-- end rivals -->`, those of the
    benchmarks between markers of `benchmark` and `overhead`.

    Args:
        readme: Path of the README.
        results: Folder of the records.

    Returns:
        The new text of the README.

    Raises:
        ValueError: if a table's markers are not one pair.
    """
    everything = record_files.read_all(results)
    text = Path(readme).read_text(encoding="utf-8")
    parts = {t.name: markdown(t, everything) for t in TABLES.values()}
    for setting in ("precision", "frobenius_of"):
        parts[setting] = paired(everything, setting) or "Not run yet.\n"
    for study in STUDIES.values():
        content = study_markdown(study, everything, results)
        parts[f"study {study.name}"] = content or (
            f"{study.title}: not run yet.\n"
        )
    parts["rivals"] = "\n".join(c.markdown() for c in compare(everything)) or (
        "Not run yet.\n"
    )
    parts["benchmark"] = benchmarks.speed(results)
    parts["overhead"] = benchmarks.overhead(results)
    for name, content in parts.items():
        begin, end = f"<!-- {name} -->", f"<!-- end {name} -->"
        if begin not in text and end not in text:
            continue
        head, _, rest = text.partition(begin)
        _, found, tail = rest.partition(end)
        if not found or begin in rest or end in head + tail:
            raise ValueError(
                f"{readme} must hold {begin} and, below it, {end}, once each. "
                "Put the missing one in, or take the other one out."
            )
        text = f"{head}{begin}\n{content}{end}{tail}"
    return text


@dataclass(frozen=True)
class Comparison:
    """GAR and its rivals at the same settings.

    Attributes:
        groups: Groups of records that differ in their method alone, in the
            order of `METHODS`. A method without a network has the same labels
            and images; settings of the training do not concern it.
    """

    groups: tuple

    HEADING = (
        "",
        "epoch chosen by validation",
        "last epoch",
        "seconds, stages 1 + 2",
    )

    @property
    def title(self):
        first = self.groups[0]
        labels = first.settings["num_labeled"]
        return (
            f"GAR and its rivals on {first.data}, m_L = {labels}: test error "
            "in percent"
        )

    def rows(self):
        """A row of strings for the baseline, if any, and for each method."""
        rows = []
        trained = [g for g in self.groups if g.method not in GRAPH_RIVALS]
        if trained:
            error = str(trained[0].error("baseline_error"))
            seconds = f"{trained[0].seconds('pretraining'):.0f}"
            rows.append([BASELINE, error, error, seconds])
        for g in self.groups:
            stages = [g.seconds(s) for s in ("pretraining", "regularization")]
            errors = [str(g.error(f"{e}_error")) for e in ("chosen", "last")]
            seconds = " + ".join(f"{s:.0f}" for s in stages)
            rows.append([METHODS[g.method], *errors, seconds])
        return rows

    def notes(self):
        """What all share, and who was run with which seeds on what."""
        lines = []
        trained = [g for g in self.groups if g.method not in GRAPH_RIVALS]
        if trained:
            s = trained[0].settings
            lines.append(
                f"networks: {s['pretrain_epochs']} + {s['epochs']} epochs, "
                f"{s['precision']}, {s['backend']}"
            )
        alike = {}
        for g in self.groups:
            where = f"{g.seed_text()} on {g.device_text()}"
            alike.setdefault(where, []).append(METHODS[g.method])
        return [*lines, *(f"{k}: {', '.join(v)}" for k, v in alike.items())]

    def markdown(self):
        """The table, with the notes below."""
        lines = [f"**{self.title}**", "", _row(self.HEADING)]
        lines.append(_row(["---", *("---:" for _ in self.HEADING[1:])]))
        lines += [_row(row) for row in self.rows()]
        lines += ["", *(f"- {note}" for note in self.notes())]
        return "\n".join(lines) + "\n"


def compare(records):
    """The comparisons that can be made with some records.

    Methods are compared where all other settings are the same: network,
    labels, batches, steps and optimizer.

    Args:
        records: Run records.

    Returns:
        A list of `Comparison`, each with one rival at least.
    """
    by_data = {}
    plain = ("class_prior", "extensions", "restart")
    for g in group(records):
        if any(with_defaults(g.settings)[k] != _STANDARD[k] for k in plain):
            continue
        by_data.setdefault(_data_of(g), []).append(g)
    found = [m for groups in by_data.values() for m in _compared(groups)]
    order = list(METHODS)
    return [
        Comparison(tuple(sorted(m, key=lambda g: order.index(g.method))))
        for m in found
    ]


def _compared(groups):
    """Lists of groups to compare, of groups on the same data."""
    most_seeds = sorted(groups, key=lambda g: len(g.records))
    graph = {g.method: g for g in most_seeds if g.method in GRAPH_RIVALS}
    alike = {}
    for g in groups:
        if g.method not in GRAPH_RIVALS:
            alike.setdefault(_but_for(g, {"method"}), []).append(g)
    trained = [m for m in alike.values() if {g.method for g in m} != {"gar"}]
    if graph and not trained:
        # Beside the largest experiment with GAR, if there is one.
        members = alike.values()
        trained = [max(members, key=lambda m: _size(m[0]), default=[])]
    return [[*members, *graph.values()] for members in trained]


def _data_of(g):
    settings = with_defaults(g.settings)
    names = ("dataset", "num_labeled", "unlabeled", "num_validation", "world")
    return json.dumps([settings[name] for name in names])


def _but_for(g, names):
    """The settings but for some, as a key."""
    settings = with_defaults(g.settings)
    rest = {k: v for k, v in settings.items() if k not in names}
    return json.dumps(rest, sort_keys=True)


def _our_cell(found, key, column):
    if found is None:
        return MISSING
    estimate = str(found.error(key))
    # A figure made with other data than the column's says so itself.
    if found.records[0]["cell"] == column.cell:
        return estimate
    return f"{estimate} on {found.data}"


def _row(cells):
    return f"| {' | '.join(cells)} |"
