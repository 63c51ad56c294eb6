"""Tables and curves from run records, beside the paper's figures.

`read_runs` gives a DataFrame with a row a run. A table is a dict of named runs
and a dict of named functions of them: see `gar_keras.report.tables`. A part of
the pages is a line in `gar_keras.report.pages.parts`.
"""

from gar_keras.report.estimates import Estimate
from gar_keras.report.pages import find, pages_of, parts, updated, write
from gar_keras.report.runs import read_runs
from gar_keras.report.show import show_rivals, show_study, show_table
from gar_keras.report.tables import markdown, table

__all__ = [
    "Estimate",
    "find",
    "markdown",
    "pages_of",
    "parts",
    "read_runs",
    "show_rivals",
    "show_study",
    "show_table",
    "table",
    "updated",
    "write",
]
