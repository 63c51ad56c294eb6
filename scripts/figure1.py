"""Figure 1 of the paper: the graphs G*, G_M and G_N before and after GAR.

    python scripts/figure1.py

draws 250 test images of a finished run, as the paper does, writes
runs/figure1.png and, beside it, the numbers as runs/figure1.json. --pair draws
the graph of the images alone, before and after, as in the README:
runs/graph_pair.png.
"""

import sys

from reproduction import commands

# Images drawn, as many as in the paper.
IMAGES = 250


def parser():
    made = commands.figure_parser(__doc__)
    made.add_argument(
        "--pair",
        action="store_true",
        help="draw the graph of the images alone, before and after stage 2",
    )
    return made


def main(options):
    """Draws the figure and writes its numbers, or draws the pair of graphs."""
    with commands.loading():
        from reproduction import records
        from reproduction.report import plots
        from reproduction.report.plots.graph_statistics import graph_numbers

    panels = plots.graph_pair if options.pair else plots.figure1
    name = "graph_pair.png" if options.pair else "figure1.png"

    def figure(run):
        before, *_, after = (B[:IMAGES] for B in run.snapshots.values())
        return panels(before, after, run.labels[:IMAGES], run.title)

    run, record, output = plots.draw(options, name, figure)
    if options.pair:
        return 0
    # Numbers of the images drawn, and of all images kept.
    rows = [
        {"epoch": epoch, **graph_numbers(B[:m], run.labels[:m])}
        for epoch, B in run.snapshots.items()
        for m in (IMAGES, len(B))
    ]
    path, parts = output.with_suffix(".json"), record.absolute().parts[-3:]
    found = {"record": "/".join(parts), "run": run.title, "graphs": rows}
    records.write(path, found)
    print(f"Written: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(commands.main(parser(), main))
