"""GAR beside other methods on the same network, labels and batches."""

from dataclasses import asdict
from dataclasses import dataclass
import json
from pathlib import Path
import statistics

from gar_keras.experiments import records as record_files
from gar_keras.experiments.settings import GRAPH_RIVALS
from gar_keras.experiments.settings import RIVALS
from gar_keras.experiments.settings import TABLE_1
from gar_keras.experiments.settings import with_defaults
from gar_keras.methods import METHODS
from gar_keras.report import layout
from gar_keras.report.beside import reference_beside
from gar_keras.report.groups import but_for
from gar_keras.report.groups import group
from gar_keras.report.groups import size
from gar_keras.report.plots.style import new_figure
from gar_keras.report.plots.style import save
from gar_keras.report.published import BASELINE
from gar_keras.report.sources import linked
from gar_keras.utils import files
from gar_keras.utils import terminal

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
    figure = new_figure(6 * len(comparisons), 6)
    panels = figure.subplots(
        1, len(comparisons), squeeze=False, sharex=True, sharey=True
    )[0]
    for panel, comparison in zip(panels, comparisons, strict=True):
        _draw_comparison(panel, comparison)
    save(figure, path)


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


def _draw_comparison(panel, comparison):
    from matplotlib.ticker import LogLocator
    from matplotlib.ticker import NullFormatter

    for g in comparison.groups:
        place = list(METHODS).index(g.method)
        color = f"C{place - 1}" if place else "black"
        style = {"color": color, "marker": METHODS[g.method].marker}
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
            label=f"{METHODS[g.method].title}: {estimate}",
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
