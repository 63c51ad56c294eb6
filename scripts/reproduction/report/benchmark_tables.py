"""The benchmark records as Markdown tables."""

from pathlib import Path

import pandas as pd

from reproduction import benchmarks
from reproduction.report.tables import markdown

_TASKS = {
    "regularize": "stage 2, a step",
    "pretrain": "stage 1, a pass",
    "evaluate": "test error of 1,000 images",
}

# The columns behind that of the device: functions of the case and its entry.
SPEED = {
    "what": lambda c, e: _TASKS[c["task"]],
    "network": lambda c, e: c["network"],
    "precision": lambda c, e: c["precision"],
    "plain, ms": lambda c, e: _spread(e["reference_ms"], _number),
    "ms": lambda c, e: _spread(e["ms"], _number),
    "times plain's speed": lambda c, e: _spread(e["speedup"], "{:.2f}".format),
    "images/s": lambda c, e: f"{e['images_per_second']:,.0f}",
}
OVERHEAD = {
    "batch": lambda c, e: str(c["batch_size"]),
    "classes": lambda c, e: f"{c['num_classes']:,}",
    "images in X_U": lambda c, e: f"{c['num_images']:,}",
    # The second of an A/A row is without GAR too.
    "precision": lambda c, e: c["precision"] + ", A/A" * ("second" in c),
    "without, ms": lambda c, e: _number(e["reference_ms"]["median"]),
    "with GAR, ms": lambda c, e: _number(e["ms"]["median"]),
    "GAR adds, ms": lambda c, e: _spread(e["difference_ms"], "{:+.3g}".format),
    "GAR adds, %": lambda c, e: _spread(
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
    rows, names, machines = [], [], {}
    for path in sorted(Path(results).glob(f"{kind}_*.json")):
        for entry in benchmarks.read(path):
            case, e = entry["case"], entry["environment"]
            device = f"{e['device']}, {e['cores']} cores, {e['backend']}"
            names.append(f"[{device}]({path.name})")
            rows.append({c: cell(case, entry) for c, cell in columns.items()})
            machine = (
                f"{device} {e['backend_version']}, Keras {e['keras']}, Python "
                f"{e['python']}, commit {(e['git_revision'] or 'unknown')[:7]};"
                f" medians of {case['pairs']} pairs, with quartiles"
            )
            machines[machine] = None
    return markdown(pd.DataFrame(rows, names), [*notes, *machines])


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
