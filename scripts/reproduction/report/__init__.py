"""Tables and curves from run records, with the paper's figures.

`read_runs` gives a DataFrame with a row for each run. A table is a dict of
named runs and a dict of named functions of them: see
`reproduction.report.tables`. A section of the pages is a line in
`reproduction.report.write_pages.sections`.
"""

from reproduction.report.estimates import Estimate
from reproduction.report.run_frame import read_runs
from reproduction.report.terminal import show_baselines, show_study, show_table
from reproduction.report.write_pages import write

__all__ = [
    "Estimate",
    "read_runs",
    "show_baselines",
    "show_study",
    "show_table",
    "write",
]
