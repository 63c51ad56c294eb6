"""Methods on features: the table of the records of `scripts/other_data.py`."""

import statistics

from gar_keras.experiments.other_data import DATA, EQUAL, STAGE_1, path_of
from gar_keras.experiments.records import read_json
from gar_keras.methods import METHODS
from gar_keras.report.estimates import Estimate
from gar_keras.report.layout import MISSING, Linked, numbers

NAME = "other_data"


def on_page(records, results):
    """The tables for the page, or nothing without a record."""
    tables = []
    for equal in EQUAL:
        paths = (path_of(data, results, equal) for data in DATA)
        found = [read_json(p, "train again") for p in paths if p.exists()]
        if found:
            tables.append(markdown(found))
    return "\n".join(tables)


def markdown(found):
    """The data sets, and below them the test errors, in Markdown.

    Args:
        found: Records of data sets, dicts, with the same thing equal for all
            methods.
    """
    heading = [
        f"test error at equal {_equal(found[0])}, %",
        *(r["settings"]["data"] for r in found),
    ]
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
    return "after stage 1" if method == STAGE_1 else METHODS[method].title


def _estimate(record, method):
    runs = [run for run in record["runs"] if run["method"] == method]
    if not runs:
        return MISSING
    text = str(Estimate.of([run["test_error"] for run in runs]))
    if _equal(record) == "time" and "epochs" in runs[0]:
        epochs = statistics.median(run["epochs"] for run in runs)
        text += f", {epochs:.0f} epochs"
    return _linked(text, record)


def _linked(text, record):
    """A text with a link to the record."""
    path = path_of(record["settings"]["data"], "", _equal(record))
    return Linked(text, [path.as_posix()])


def _equal(record):
    # Not in records of before there was a choice.
    return record["settings"].get("equal", "steps")
