"""Figures 1 and 2 of the paper, drawn from what a finished run kept.

A run keeps, beside its record, the logits of some test images at some epochs
of stage 2. Figure 1 shows the three graphs of `graph_statistics` before and
after stage 2, Figure 2 the embedding `B` on its way.
"""

from reproduction.report.plots.embedding import figure2
from reproduction.report.plots.graph_panels import figure1, graph_pair
from reproduction.report.plots.results import choose_run, draw, load_run
from reproduction.report.plots.style import PALETTE

__all__ = [
    "PALETTE",
    "choose_run",
    "draw",
    "figure1",
    "figure2",
    "graph_pair",
    "load_run",
]
