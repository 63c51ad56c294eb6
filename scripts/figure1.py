"""Figure 1 of the paper: the graphs G*, G_M and G_N before and after GAR.

    python scripts/figure1.py

draws a finished run, writes runs/figure1.png and, beside it, the numbers as
runs/figure1.json. It takes seconds and does not load Keras. --pair draws
the examples alone, before and after, as in the README: runs/graph_pair.png.
"""

import sys
from dataclasses import asdict, dataclass
from functools import partial

from gar_keras.experiments import records
from gar_keras.report import plots
from gar_keras.report.plots.graph_statistics import graph_numbers
from gar_keras.utils import cli


@dataclass(frozen=True)
class Options(plots.Options):
    """Options of this script."""

    pair: bool = False
    """Draw the graph of the examples alone, before and after stage 2."""


def drawn(run, draw):
    """The graphs of a run before and after stage 2."""
    B, last = run.snapshots, run.last_epoch
    return draw(B[0], B[last], run.labels, run.title, plots.GRAPH_IMAGES)


def numbers(run, record):
    """The numbers of the graphs: of the images drawn, and of all kept."""
    rows = [
        {"epoch": epoch, **asdict(graph_numbers(B[:m], run.labels[:m]))}
        for epoch, B in run.snapshots.items()
        for m in (plots.GRAPH_IMAGES, len(B))
    ]
    return {"record": record.name, "run": run.title, "graphs": rows}


def main(options):
    """Draws the figure and writes its numbers, or draws the pair of graphs."""
    if options.pair:
        options.draw(partial(drawn, draw=plots.graph_pair), "graph_pair.png")
        return
    run, record, output = options.draw(
        partial(drawn, draw=plots.figure1), "figure1.png"
    )
    path = output.with_suffix(".json")
    records.write(path, numbers(run, record))
    print(f"Written: {path}")


if __name__ == "__main__":
    sys.exit(cli.run(main, cli.parse(Options, __doc__)))
