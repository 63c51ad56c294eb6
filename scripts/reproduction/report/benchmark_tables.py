"""The benchmark records as Markdown tables."""

from pathlib import Path

from reproduction import benchmarks
from reproduction.report.estimates import MISSING
from reproduction.report.tables import markdown, table

_TASKS = {
    "regularize": "stage 2, a step",
    "pretrain": "stage 1, a pass",
    "evaluate": "test error of 1,000 images",
}

# The columns behind that of the device: functions of an entry of a record.
SPEED = {
    "what": lambda e: _TASKS[e["case"]["task"]],
    "network": lambda e: e["case"]["network"],
    "precision": lambda e: e["case"]["precision"],
    "plain, ms": lambda e: _spread(e["reference_ms"], _number),
    "ms": lambda e: _spread(e["ms"], _number),
    "times plain's speed, in one precision": lambda e: _speedup(e),
    "images/s": lambda e: f"{e['images_per_second']:,.0f}",
}
OVERHEAD = {
    "batch": lambda e: str(e["case"]["batch_size"]),
    "classes": lambda e: f"{e['case']['num_classes']:,}",
    "images in X_U": lambda e: f"{e['case']['num_images']:,}",
    "precision": lambda e: _precision(e["case"]),
    "without, ms": lambda e: _number(e["reference_ms"]["median"]),
    "with GAR, ms": lambda e: _number(e["ms"]["median"]),
    "GAR adds, ms": lambda e: _spread(e["difference_ms"], "{:+.3g}".format),
    "GAR adds, %": lambda e: _spread(
        e["ratio"], lambda ratio: f"{100 * (ratio - 1):+.1f}"
    ),
}
PAPERS_COST = (
    "The paper: 830 s without and 882 s with GAR, 6.3 % more (its text says 5 "
    "%), on one GTX 1080."
)
KINDS = {"benchmark": (SPEED, ()), "overhead": (OVERHEAD, (PAPERS_COST,))}


def benchmark_markdown(kind, results):
    """The table of a kind of benchmark; empty without a record."""
    columns, notes = KINDS[kind]
    rows, machines = [], {}
    for path in sorted(Path(results).glob(f"{kind}_*.json")):
        for entry in benchmarks.read(path):
            e = entry["environment"]
            device = f"{e['device']}, {e['cores']} cores, {e['backend']}"
            rows.append((f"[{device}]({path.name})", entry))
            machine = (
                f"{device} {e['backend_version']}, Keras {e['keras']}, Python "
                f"{e['python']}, commit {(e['git_revision'] or 'unknown')[:7]};"
                f" medians of {entry['case']['pairs']} pairs, with quartiles"
            )
            machines[machine] = None
    return markdown(table(rows, columns), [*notes, *machines])


def _precision(case):
    # The second of an A/A row is without GAR too.
    is_of_the_same = "second" in case
    return f"{case['precision']}, A/A" if is_of_the_same else case["precision"]


def _speedup(entry):
    # Plain Keras computes in float32.
    if entry["case"]["precision"] != "float32":
        return MISSING
    return _spread(entry["speedup"], "{:.2f}".format)


def _spread(values, form):
    low, high = map(form, values["quartiles"])
    return f"{form(values['median'])} ({low} to {high})"


def _number(value):
    """Three digits at least, with no exponent.

    Example:

    >>> _number(1234.5), _number(12.345), _number(0.012345)
    ('1,234', '12.3', '0.0123')
    """
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
