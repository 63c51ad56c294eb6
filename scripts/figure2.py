"""Figure 2 of the paper: t-SNE of B over stage 2, and the test accuracy.

    python scripts/figure2.py

draws a finished run and writes runs/figure2.png, in about a minute.
"""

import sys

from reproduction import commands


def parser():
    return commands.figure_parser(__doc__)


def main(options):
    """Draws the logits of several epochs, and the test accuracy."""
    with commands.loading():
        from reproduction.report import plots

    plots.draw(options, "figure2.png", plots.figure2)
    return 0


if __name__ == "__main__":
    sys.exit(commands.main(parser(), main))
