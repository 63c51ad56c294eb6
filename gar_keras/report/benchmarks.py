"""The benchmark records as Markdown tables."""

from pathlib import Path

from gar_keras.experiments import records

_TASKS = {
    "regularize": "stage 2, a step",
    "pretrain": "stage 1, a pass",
    "evaluate": "test error of 1,000 images",
}

# The columns behind that of the device: functions of the case and its entry.
SPEED = {
    "what": lambda c, e: _TASKS[c["task"]],
    "network": lambda c, e: c["network"],
    "path": lambda c, e: c["path"],
    "precision": lambda c, e: c["precision"],
    "plain, ms": lambda c, e: _spread(e["reference_ms"], _number),
    "ms": lambda c, e: _spread(e["ms"], _number),
    "times plain's speed": lambda c, e: _spread(e["speedup"], "{:.2f}".format),
    "100 epochs or 1,000 passes, s (plain)": lambda c, e: _whole(e),
    "images/s": lambda c, e: f"{e['images_per_second']:,.0f}",
}
OVERHEAD = {
    "batch": lambda c, e: str(c["batch_size"]),
    "classes": lambda c, e: f"{c['num_classes']:,}",
    "images in X_U": lambda c, e: f"{c['num_images']:,}",
    "precision": lambda c, e: c["precision"],
    "without, ms": lambda c, e: _number(e["reference_ms"]["median"]),
    "with GAR, ms": lambda c, e: _number(e["ms"]["median"]),
    "GAR adds, ms": lambda c, e: _spread(e["difference_ms"], _signed),
    "GAR adds, %": lambda c, e: _spread(
        e["ratio"], lambda ratio: f"{100 * (ratio - 1):+.1f}"
    ),
}


def speed_markdown(_, results):
    """The table of the speed benchmark: a row for each case, GPUs first.

    Args:
        _: Run records, which have no part in it.
        results: Folder of the benchmark records.

    Raises:
        RecordError: if a file of that name is not a record.
    """
    aims = (
        "Aims: 100 epochs of stage 2 (cnn6) in 15 s on one data-centre GPU, "
        "and on a CPU at 2 times the speed of plain Keras."
    )
    return _markdown("benchmark", results, SPEED, aims)


def overhead_markdown(_, results):
    """The table of what the regularizer costs; see `speed_markdown`."""
    aim = (
        "Aim: under 1 %. Medians of pairs, with quartiles. The paper: 830 s "
        "without and 882 s with GAR, 6.3 % more (its text says 5 %), on one "
        "GTX 1080."
    )
    return _markdown("overhead", results, OVERHEAD, aim)


def _markdown(kind, results, columns, note):
    """A table of all records of a kind, and a line for each machine."""
    rows, machines = [], {}
    for path in sorted(Path(results).glob(f"{kind}_*.json")):
        for entry in records.read(path)["cases"]:
            link = f"[{_device(entry)}]({path.name})"
            cells = [show(entry["case"], entry) for show in columns.values()]
            on_gpu = entry["environment"]["device_kind"] == "gpu"
            rows.append((not on_gpu, [link, *cells]))
            machines[_machine(entry)] = None
    rows.sort(key=lambda row: row[0])
    if all(on_cpu for on_cpu, _ in rows):
        absent = "one data-centre GPU: not measured: no such device at hand"
        rows.append((False, [absent, *["-"] * len(columns)]))
    heading = ["device", *columns]
    lines = [heading, ["---"] * len(heading), *(cells for _, cells in rows)]
    table = [f"| {' | '.join(cells)} |" for cells in lines]
    notes = [f"- {text}" for text in (note, *machines)]
    return "\n".join([*table, "", *notes, ""])


def _whole(entry):
    if entry["seconds"] is None:
        return "-"
    return f"{entry['seconds']:,.1f} ({entry['reference_seconds']:,.1f})"


def _machine(entry):
    """The machine and the software of an entry, in words."""
    e = entry["environment"]
    revision, _, edited = (e["git_revision"] or "unknown").partition("+")
    return (
        f"{_device(entry)}: {e['processor']}, {e['cores']} cores; "
        f"{e['backend']} {e['backend_version']}, Keras {e['keras']}, "
        f"Python {e['python']}, commit {revision[:7]}{edited and '+'}{edited}; "
        f"medians of {entry['case']['pairs']} pairs, with quartiles"
    )


def _device(entry):
    e = entry["environment"]
    cores = f" ({e['cores']} cores)" if e["device_kind"] == "cpu" else ""
    return f"{e['device']}{cores}, {e['backend']}"


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


def _signed(value):
    return ("-" if value < 0 else "+") + _number(abs(value))
