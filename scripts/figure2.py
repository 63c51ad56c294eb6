"""Figure 2 of the paper: t-SNE of B over stage 2, and the test accuracy.

    python scripts/figure2.py

draws a finished run and writes runs/figure2.png, in about a minute.
"""

import sys

from reproduction import cli
from reproduction.report import plots


def figure(run):
    """The logits of several epochs, and the test accuracy."""
    return plots.figure2(run.snapshots, run.labels, run.curve, run.title)


def main(options):
    """Draws the figure."""
    options.draw("figure2.png", figure)


if __name__ == "__main__":
    sys.exit(cli.run(main, cli.parse(plots.Options, __doc__)))
