"""GAR beside other methods on the same network, labels and batches."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from gar_keras.experiments import records as record_files
from gar_keras.experiments.settings import (
    GRAPH_RIVALS,
    RIVALS,
    TABLE_1,
    with_defaults,
)
from gar_keras.methods import METHODS
from gar_keras.report import layout
from gar_keras.report.beside import reference_beside
from gar_keras.report.groups import but_for, group, size
from gar_keras.report.plots.curves import Runs, error_over_time
from gar_keras.report.plots.style import save
from gar_keras.report.published import BASELINE
from gar_keras.report.sources import linked
from gar_keras.utils import files, terminal

# All settings of training at their defaults.
_STANDARD = with_defaults(asdict(TABLE_1[100]))


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
        rate = first.settings["stage_2_rate"]
        rate = "" if rate is None else f", learning rate of stage 2 {rate:g}"
        return (
            f"GAR and other methods on {first.data}, m_L = {labels}{rate}: "
            "test error in percent"
        )

    def rows(self, results=None):
        """A row of strings for the baseline, if any, and for each method.

        Args:
            results: Folder of the records, to which the names are linked.
        """
        rows = []
        trained = [g for g in self.groups if g.method not in GRAPH_RIVALS]
        if trained:
            error = str(trained[0].error("baseline_error"))
            seconds = f"{trained[0].seconds('pretraining'):.0f}"
            name = linked(BASELINE, trained[0], results)
            rows.append([name, error, error, seconds])
        for g in self.groups:
            stages = [g.seconds(s) for s in ("pretraining", "regularization")]
            errors = [str(g.error(f"{e}_error")) for e in ("chosen", "last")]
            seconds = " + ".join(f"{s:.0f}" for s in stages)
            name = linked(METHODS[g.method].title, g, results)
            rows.append([name, *errors, seconds])
        return rows

    def notes(self):
        """Notes below the table: epochs, seeds and devices of the methods."""
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
            alike.setdefault(where, []).append(METHODS[g.method].title)
        return [*lines, *(f"{k}: {', '.join(v)}" for k, v in alike.items())]

    def markdown(self, results=None):
        """The table, with the notes below.

        Args:
            results: Folder of the records, to which the names are linked.
        """
        lines = [f"**{self.title}**", ""]
        lines += layout.numbers(self.HEADING, self.rows(results))
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
        if any(g.settings[k] != _STANDARD[k] for k in plain):
            continue
        by_data.setdefault(_data_of(g), []).append(g)
    found = [m for groups in by_data.values() for m in _compared(groups)]
    order = list(METHODS)
    return [
        Comparison(tuple(sorted(m, key=lambda g: order.index(g.method))))
        for m in found
    ]


def show_rivals(records, results):
    """Prints the comparisons and writes those of the folder.

    Below those of a user's folder, the reference's of the same task.

    Args:
        records: The records to print.
        results: Folder of the records, where `rivals.md` and `rivals.png` go.
    """
    console = terminal.console()
    own = compare(records)
    for comparison in own:
        _print(console, comparison, comparison.title)
    titles = {comparison.title for comparison in own}
    for comparison in compare(reference_beside(results)):
        if comparison.title in titles:
            _print(console, comparison, f"Reference: {comparison.title}")
    for path in write_rivals(results):
        console.print(f"Written: {path}")


def _print(console, comparison, title):
    console.print(
        layout.terminal_table(title, comparison.HEADING, comparison.rows())
    )
    for note in comparison.notes():
        console.print(f"- {note}")


def rivals_markdown(records, results=None):
    """The comparisons as Markdown; empty if there is nothing to compare."""
    return "\n".join(c.markdown(results) for c in compare(records))


def write_rivals(results):
    """Writes the comparisons of a folder as Markdown and as a picture.

    Returns:
        The paths written; none if there is nothing to compare.
    """
    everything = record_files.read_all(results)
    comparisons = compare(everything)
    if not comparisons:
        return []
    text = Path(results) / "rivals.md"
    content = rivals_markdown(everything, results)
    files.write_atomically(text, lambda file: file.write(content))
    picture = Path(results) / "rivals.png"
    plot_rivals(comparisons, picture, everything)
    return [text, picture]


def plot_rivals(comparisons, path, records=()):
    """Draws the error of each method over the minutes of its stage 2.

    Of the comparison with the most methods, those that ran on one machine.

    Args:
        comparisons: List of `Comparison`.
        path: Where to write the PNG.
        records: Run records: longer runs of the same settings are drawn thin.
    """
    largest = max(comparisons, key=lambda c: len(c.groups))
    device = largest.groups[0].device_text()
    groups = [g for g in largest.groups if g.device_text() == device]
    longer = [
        other
        for other in group(records)
        for g in groups
        if other.settings["epochs"] > g.settings["epochs"]
        and but_for(other, {"epochs"}) == but_for(g, {"epochs"})
    ]
    s = groups[0].settings
    title = f"{groups[0].data}, {s['num_labeled']} labels, {device}"
    figure = error_over_time([_drawn(g) for g in groups],
                             [_drawn(g) for g in longer], title)  # fmt: skip
    save(figure, path)


def _drawn(g):
    return Runs.of(METHODS[g.method].title, g.records)


def _compared(groups):
    """Lists of groups to compare, of groups on the same data."""
    most_seeds = sorted(groups, key=lambda g: len(g.records))
    graph = {g.method: g for g in most_seeds if g.method in GRAPH_RIVALS}
    alike = {}
    for g in groups:
        if g.method not in GRAPH_RIVALS:
            alike.setdefault(but_for(g, {"method"}), []).append(g)
    trained = [
        members
        for members in alike.values()
        if any(g.method in RIVALS for g in members)
    ]
    if graph and not trained:
        # Beside the largest experiment with GAR, if there is one.
        members = alike.values()
        trained = [max(members, key=lambda m: size(m[0]), default=[])]
    return [[*members, *graph.values()] for members in trained]


def _data_of(g):
    settings = g.settings
    names = ("dataset", "num_labeled", "unlabeled", "num_validation", "world")
    return json.dumps([settings[name] for name in names])
