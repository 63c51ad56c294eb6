"""Tables and learning curves from run records, beside the paper's figures."""

from dataclasses import dataclass
from pathlib import Path
import statistics

from rich.console import Console
from rich.table import Table as TerminalTable

from gar_keras.experiments import records as record_files
from gar_keras.experiments.paper import BASELINE
from gar_keras.experiments.paper import GAR
from gar_keras.experiments.paper import TABLES
from gar_keras.experiments.settings import stands_for_paper

MISSING = "-"


@dataclass(frozen=True)
class Estimate:
    """Mean and standard deviation of an error over seeds, in percent.

    Attributes:
        mean: Mean.
        deviation: Sample standard deviation, or `None` for one seed.
        n: Number of seeds.
    """

    mean: float
    deviation: float | None
    n: int

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

    def __str__(self):
        spread = "" if self.deviation is None else f" ± {self.deviation:.2f}"
        return f"{self.mean:.2f}{spread} (n = {self.n})"


@dataclass(frozen=True)
class Group:
    """The records of one experiment, over its seeds."""

    records: tuple

    @property
    def settings(self):
        return self.records[0]["experiment"]

    @property
    def data(self):
        return self.records[0]["data"]["title"]

    @property
    def seeds(self):
        return sorted(record["seed"] for record in self.records)

    def error(self, key):
        """Estimate of one of the results, e.g. `"chosen_error"`."""
        return Estimate.of([r["result"][key] for r in self.records])

    def describe(self):
        """One line: what was run, on what, how often and for how long."""
        s = self.settings
        minutes = [
            (r["pretraining"]["seconds"] + r["regularization"]["seconds"]) / 60
            for r in self.records
        ]
        devices = sorted({r["environment"]["device"] for r in self.records})
        cores = sorted({str(r["environment"]["cores"]) for r in self.records})
        frobenius = "" if s["frobenius_of"] == "B" else ", Frobenius term of Z"
        return (
            f"{self.data}, m_L = {s['num_labeled']}: n = {len(self.records)} "
            f"(seeds {', '.join(map(str, self.seeds))}), "
            f"{s['pretrain_epochs']} + {s['epochs']} epochs, "
            f"{s['precision']}, {s['backend']}{frobenius}, "
            f"{'/'.join(devices)} ({'/'.join(cores)} cores), "
            f"{statistics.mean(minutes):.0f} min a run"
        )


# Our rows, below the paper's: what they show and the key in the records.
OUR_ROWS = {
    f"{BASELINE}, ours": "baseline_error",
    f"{GAR}, ours, epoch chosen by validation": "chosen_error",
    f"{GAR}, ours, last epoch": "last_error",
}


def group(records):
    """Groups records by experiment, in the order of their first appearance."""
    found = {}
    for record in records:
        found.setdefault(record["fingerprint"], []).append(record)
    return [Group(tuple(members)) for members in found.values()]


def representative(records, column):
    """The group that stands for a column of a table, or `None`.

    Of the experiments with the paper's settings: the one with the most epochs
    of stage 2, then the one with the most seeds.
    """
    for cell in (column.cell, column.stand_in):
        groups = [
            g
            for g in group(records)
            if g.records[0]["cell"] == cell
            and stands_for_paper(g.settings, cell)
        ]
        if groups:
            size = [(g.settings["epochs"], len(g.records)) for g in groups]
            return groups[size.index(max(size))]
    return None


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
    """A line for each column: what our figure was made with, if there is one."""
    lines = []
    for column in table.columns:
        found = representative(records, column)
        missing = f"{column.heading}: not run"
        lines.append(missing if found is None else found.describe())
    return lines


def show(table, records, results):
    """Prints a table and writes the Markdown and the curves of the folder.

    The table in the terminal is made from `records`; the files cover all
    records in the folder.

    Args:
        table: A `Table` of the paper.
        records: The records to print.
        results: Folder of the records, where the files go.
    """
    console = Console(highlight=False, soft_wrap=True)
    heading, *rows = table_rows(table, records)
    terminal = TerminalTable(title=table.title)
    for name in heading:
        terminal.add_column(name, justify="right" if name else "left")
    for row in rows:
        ours = row[0] in OUR_ROWS
        terminal.add_row(*row, style="bold" if ours else None)
    console.print(terminal)
    for line in notes(table, records):
        console.print(f"- {line}")
    for path in write(table, results):
        console.print(f"Written: {path}")


def write(table, results):
    """Writes a table's Markdown and PNG from all records of a folder.

    Returns:
        The paths written.
    """
    everything = record_files.read_all(results)
    text = Path(results) / f"{table.name}.md"
    text.write_text(markdown(table, everything))
    groups = [representative(everything, c) for c in table.columns]
    groups = [g for g in groups if g is not None]
    if not groups:
        return [text]
    picture = Path(results) / f"{table.name}.png"
    plot_curves(groups, table.title, picture)
    return [text, picture]


def plot_curves(groups, title, path):
    """Draws error, affinity and balance over the epochs, all seeds.

    Args:
        groups: List of `Group`, a column of panels for each.
        title: Title of the picture.
        path: Where to write the PNG.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * len(groups) + 1, 7), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title)
    panels = figure.subplots(3, len(groups), squeeze=False, sharex="col")
    for g, (error, affinity, balance) in zip(groups, panels.T, strict=True):
        for record in g.records:
            _draw_seed(record, error, affinity, balance)
        s = g.settings
        error.set_title(f"{g.data}, m_L = {s['num_labeled']}", fontsize=10)
        error.set(ylabel="error, %", yscale="log")
        error.yaxis.set_major_formatter("{x:g}")
        error.yaxis.set_minor_formatter("{x:g}")
        error.legend(fontsize=8)
        affinity.set(ylabel="affinity α(B)", yscale="log")
        balance.set(ylabel="balance β(B)", xlabel="epoch of stage 2")
        for panel in (error, affinity, balance):
            panel.grid(alpha=0.3)
    figure.savefig(path, dpi=150)


def _draw_seed(record, error, affinity, balance):
    curve = record["regularization"]["curve"]
    seed = record["seed"]
    test = [100 * e for e in curve["test_error"]]
    validation = [100 * e for e in curve["val_error"]]
    (line,) = error.plot(curve["epoch"], test, label=f"test, seed {seed}")
    style = {"color": line.get_color(), "lw": 1}
    error.plot(
        curve["epoch"],
        validation,
        ls=":",
        label=f"validation, seed {seed}",
        **style,
    )
    # Epoch 0, after pretraining, has errors alone.
    for panel, name in ((affinity, "affinity"), (balance, "balance")):
        panel.plot(curve["epoch"][1:], curve[name][1:], **style)


def update_readme(readme, results):
    """Puts the tables between their markers in the README.

    A table goes between `<!-- table1 -->` and `<!-- end table1 -->`.

    Args:
        readme: Path of the README.
        results: Folder of the records.

    Returns:
        The new text of the README.
    """
    everything = record_files.read_all(results)
    text = Path(readme).read_text()
    for table in TABLES.values():
        begin, end = f"<!-- {table.name} -->", f"<!-- end {table.name} -->"
        if begin in text:
            head, _, rest = text.partition(begin)
            _, _, tail = rest.partition(end)
            body = markdown(table, everything)
            text = f"{head}{begin}\n{body}{end}{tail}"
    return text


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
