"""Methods on features: the table of the records of `scripts/other_data.py`."""

from gar_keras.experiments.other_data import DATA
from gar_keras.experiments.other_data import path_of
from gar_keras.experiments.records import read_json
from gar_keras.methods import METHODS
from gar_keras.report.estimates import Estimate
from gar_keras.report.layout import MISSING
from gar_keras.report.layout import Linked
from gar_keras.report.layout import numbers

NAME = "other_data"
FIRST = "stage 1"


def on_page(records, results):
    """The table for its page, or nothing without a record."""
    found = [
        read_json(path_of(data, results), "train again")
        for data in DATA
        if path_of(data, results).exists()
    ]
    return markdown(found) if found else ""


def markdown(found):
    """The data sets, and below them the test errors, in Markdown.

    Args:
        found: Records of data sets, dicts.
    """
    heading = ["test error, %", *(r["settings"]["data"] for r in found)]
    facts = {
        "rows, features, classes": _size,
        "largest class": _largest_class,
        "labelled rows": _num_labeled,
    }
    described = [
        [name, *(_linked(fact(record), record) for record in found)]
        for name, fact in facts.items()
    ]
    methods = dict.fromkeys(
        run["method"] for record in found for run in record["runs"]
    )
    errors = [
        [_title(method), *(_estimate(record, method) for record in found)]
        for method in methods
    ]
    lines = numbers(heading, [*described, *errors])
    return "".join(f"{line}\n" for line in lines)


def _size(record):
    return f"{record['rows']}, {record['features']}, {record['classes']}"


def _largest_class(record):
    return f"{100 * record['largest_class']:.0f} %"


def _num_labeled(record):
    return record["settings"]["labels_per_class"] * record["classes"]


def _title(method):
    return "after stage 1" if method == FIRST else METHODS[method].title


def _estimate(record, method):
    errors = [
        run["test_error"] for run in record["runs"] if run["method"] == method
    ]
    return _linked(Estimate.of(errors), record) if errors else MISSING


def _linked(text, record):
    """A text with a link to the record."""
    path = path_of(record["settings"]["data"], "")
    return Linked(text, [path.as_posix()])
