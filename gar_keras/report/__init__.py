"""Tables and curves from run records, beside the paper's figures.

Everything is made from the records of a folder alone. Keras is not needed.
"""

from gar_keras.report.comparison import Comparison
from gar_keras.report.comparison import compare
from gar_keras.report.comparison import plot_rivals
from gar_keras.report.comparison import show_rivals
from gar_keras.report.comparison import write_rivals
from gar_keras.report.confusion import confusions
from gar_keras.report.estimates import Estimate
from gar_keras.report.groups import Group
from gar_keras.report.groups import group
from gar_keras.report.lost import lost_class
from gar_keras.report.lost import lost_text
from gar_keras.report.pairs import paired
from gar_keras.report.plots.curves import plot_curves
from gar_keras.report.readme import update_readme
from gar_keras.report.studies import show_study
from gar_keras.report.studies import study_markdown
from gar_keras.report.studies import study_notes
from gar_keras.report.studies import study_rows
from gar_keras.report.studies import vote
from gar_keras.report.studies import write_studies
from gar_keras.report.tables import OUR_ROWS
from gar_keras.report.tables import markdown
from gar_keras.report.tables import notes
from gar_keras.report.tables import representative
from gar_keras.report.tables import show
from gar_keras.report.tables import table_rows
from gar_keras.report.tables import write

__all__ = [
    "OUR_ROWS",
    "Comparison",
    "Estimate",
    "Group",
    "compare",
    "confusions",
    "group",
    "lost_class",
    "lost_text",
    "markdown",
    "notes",
    "paired",
    "plot_curves",
    "plot_rivals",
    "representative",
    "show",
    "show_rivals",
    "show_study",
    "study_markdown",
    "study_notes",
    "study_rows",
    "table_rows",
    "update_readme",
    "vote",
    "write",
    "write_rivals",
    "write_studies",
]
