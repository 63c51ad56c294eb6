"""Figure 1 of the paper: the graphs G*, G_M and G_N before and after GAR.

    python scripts/figure1.py

draws a finished run, writes runs/figure1.png and, beside it, the numbers as
runs/figure1.json. It takes seconds and does not load Keras.
"""

from dataclasses import asdict
from dataclasses import dataclass
from dataclasses import field
import sys

from gar_keras.experiments import folders
from gar_keras.experiments import records
from gar_keras.report import plots
from gar_keras.report.plots.graph_statistics import graph_numbers
from gar_keras.utils import cli


@dataclass(frozen=True)
class Options:
    """Options of this script."""

    results: cli.Folder = field(default_factory=folders.own)
    """Folder of the run records."""
    record: cli.File = None
    """Record of the run to draw. By default the longest run of MNIST with 100
    labels, of the lowest seed; where the folder has none, the reference's."""
    output: cli.File = None
    """PNG to write; the JSON goes beside it. By default figure1.png in the
    results folder."""

    def __post_init__(self):
        cli.check_output("--output", self.output, (".png",))


def numbers(run):
    """The numbers of the graphs: of the images drawn, and of all kept."""
    rows = [
        {"epoch": epoch, **asdict(graph_numbers(B[:m], run.labels[:m]))}
        for epoch, B in run.snapshots.items()
        for m in (plots.GRAPH_IMAGES, len(B))
    ]
    return {"run": run.title, "graphs": rows}


def main(options):
    """Draws, writes and says what is written."""
    path = options.record or plots.choose_run(
        options.results, folders.reference()
    )
    run = plots.load_run(path)
    figure = plots.figure1(
        run.snapshots[0],
        run.snapshots[run.last_epoch],
        run.labels,
        run.title,
        drawn=plots.GRAPH_IMAGES,
    )
    output = options.output or options.results / "figure1.png"
    plots.save(figure, output)
    beside = output.with_suffix(".json")
    records.write(beside, {"record": path.name, **numbers(run)})
    print(f"{run.title}\nWritten: {output}\nWritten: {beside}")


if __name__ == "__main__":
    sys.exit(cli.run(main, cli.parse(Options, __doc__)))
