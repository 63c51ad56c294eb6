"""Figures 1 and 2 of the paper, drawn from what a finished run kept.

A run keeps, beside its record, the logits of some test images at some epochs
of stage 2. Figure 1 shows the three graphs of `graph_statistics` before and
after stage 2, Figure 2 the embedding `B` on its way. Keras is not needed.
"""

from gar_keras.report.plots.embedding import align
from gar_keras.report.plots.embedding import figure2
from gar_keras.report.plots.graph_panels import GRAPH_IMAGES
from gar_keras.report.plots.graph_panels import figure1
from gar_keras.report.plots.graph_panels import graph_pair
from gar_keras.report.plots.runs import CELL
from gar_keras.report.plots.runs import Run
from gar_keras.report.plots.runs import choose_run
from gar_keras.report.plots.runs import load_run
from gar_keras.report.plots.style import PALETTE
from gar_keras.report.plots.style import save

__all__ = [
    "CELL",
    "GRAPH_IMAGES",
    "PALETTE",
    "Run",
    "align",
    "choose_run",
    "figure1",
    "graph_pair",
    "figure2",
    "load_run",
    "save",
]
