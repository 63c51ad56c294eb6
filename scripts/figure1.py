"""Figure 1 of the paper: the graphs G*, G_M and G_N before and after GAR.

    python scripts/figure1.py

draws a finished run, writes runs/figure1.png and, beside it, the numbers as
runs/figure1.json. --pair draws the examples alone, before and after, as in the
README: runs/graph_pair.png.
"""

import sys
from dataclasses import dataclass

from reproduction import cli, records
from reproduction.report import plots
from reproduction.report.plots.graph_panels import GRAPH_IMAGES
from reproduction.report.plots.graph_statistics import graph_numbers


@dataclass(frozen=True)
class Options(plots.Options):
    """Options of this script."""

    pair: bool = False
    """Draw the graph of the examples alone, before and after stage 2."""


def drawn_by(draw):
    """A function of a run that draws its graphs before and after stage 2."""
    return lambda run: draw(
        run.snapshots[0],
        run.snapshots[max(run.snapshots)],
        run.labels,
        run.title,
        drawn=GRAPH_IMAGES,
    )


def numbers(run, record):
    """The numbers of the graphs: of the images drawn, and of all kept."""
    rows = [
        {"epoch": epoch, **graph_numbers(B[:m], run.labels[:m])}
        for epoch, B in run.snapshots.items()
        for m in (GRAPH_IMAGES, len(B))
    ]
    path = "/".join(record.absolute().parts[-3:])
    return {"record": path, "run": run.title, "graphs": rows}


def main(options):
    """Draws the figure and writes its numbers, or draws the pair of graphs."""
    if options.pair:
        options.draw("graph_pair.png", drawn_by(plots.graph_pair))
        return
    run, record, output = options.draw("figure1.png", drawn_by(plots.figure1))
    path = output.with_suffix(".json")
    records.write(path, numbers(run, record))
    print(f"Written: {path}")


if __name__ == "__main__":
    sys.exit(cli.run(main, cli.parse(Options, __doc__)))
