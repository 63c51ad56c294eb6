"""Tables and curves from run records, beside the paper's figures.

A new table or comparison is a file with a function of the records and their
folder, and a line in `parts.PARTS`.

Everything is made from the records of a folder alone. Keras is not needed.
"""

import warnings

from gar_keras.report.comparison import compare, plot_rivals, show_rivals
from gar_keras.report.confusion import confusions
from gar_keras.report.estimates import Estimate
from gar_keras.report.groups import group
from gar_keras.report.lost import lost_class, lost_text
from gar_keras.report.overview import (
    find,
    index,
    overview_markdown,
    write_overview,
)
from gar_keras.report.pairs import paired
from gar_keras.report.parts import show_report, show_study, study_part
from gar_keras.report.readme import pages, update_readme
from gar_keras.report.sources import with_links_from
from gar_keras.report.studies import (
    study_markdown,
    study_notes,
    study_rows,
)
from gar_keras.report.tables import (
    OUR_ROWS,
    representative,
    show_table,
    table_markdown,
    table_notes,
    table_rows,
    write_table,
)

__all__ = [
    "OUR_ROWS",
    "Estimate",
    "compare",
    "confusions",
    "find",
    "group",
    "index",
    "lost_class",
    "lost_text",
    "table_markdown",
    "table_notes",
    "overview_markdown",
    "pages",
    "paired",
    "plot_rivals",
    "representative",
    "show_table",
    "show_rivals",
    "show_report",
    "show_study",
    "study_markdown",
    "study_part",
    "study_notes",
    "study_rows",
    "table_rows",
    "update_readme",
    "with_links_from",
    "write_overview",
    "write_table",
]

_RENAMED = {
    "markdown": table_markdown,
    "notes": table_notes,
    "show": show_table,
    "write": write_table,
}


def __getattr__(name):
    if name not in _RENAMED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = _RENAMED[name]
    warnings.warn(
        f"{__name__}.{name} has become {found.__name__}.",
        DeprecationWarning,
        stacklevel=2,
    )
    return found
