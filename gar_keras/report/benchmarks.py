"""The benchmark records as Markdown tables."""

from pathlib import Path

from gar_keras.experiments import records

TITLES = {
    "regularize": "stage 2, a step",
    "pretrain": "stage 1, a pass",
    "evaluate": "test error of 1,000 images",
}
SPEED_HEADING = (
    "device",
    "what",
    "network",
    "path",
    "precision",
    "plain, ms",
    "ms",
    "times plain's speed",
    "100 epochs or 1,000 passes, s (plain)",
    "images/s",
)
OVERHEAD_HEADING = (
    "device",
    "batch",
    "classes",
    "images in X_U",
    "precision",
    "without, ms",
    "with GAR, ms",
    "GAR adds, ms",
    "GAR adds, %",
)


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
    return _markdown("benchmark", results, SPEED_HEADING, _speed_row, aims)


def overhead_markdown(_, results):
    """The table of what the regularizer costs; see `speed_markdown`."""
    aim = (
        "Aim: under 1 %. Medians of pairs, with quartiles. The paper: 830 s "
        "without and 882 s with GAR, 6.3 % more (its text says 5 %), on one "
        "GTX 1080."
    )
    return _markdown("overhead", results, OVERHEAD_HEADING, _overhead_row, aim)


def _markdown(kind, results, heading, row, note):
    """A table of all records of a kind, and a line for each machine."""
    rows, machines = [], {}
    for path in sorted(Path(results).glob(f"{kind}_*.json")):
        for entry in records.read(path)["cases"]:
            link = f"[{_device(entry)}]({path.name})"
            rows.append([entry["environment"], [link, *row(entry)]])
            machines[_machine(entry)] = None
    rows.sort(key=lambda one: one[0]["device_kind"] != "gpu")
    if not any(where["device_kind"] == "gpu" for where, _ in rows):
        absent = "one data-centre GPU: not measured: no such device at hand"
        rows.append([None, [absent, *["-"] * (len(heading) - 1)]])
    cells = [heading, ["---"] * len(heading), *(cells for _, cells in rows)]
    table = [f"| {' | '.join(line)} |" for line in cells]
    notes = [f"- {text}" for text in (note, *machines)]
    return "\n".join([*table, "", *notes, ""])


def _speed_row(entry):
    c = entry["case"]
    whole = "-"
    if entry["seconds"] is not None:
        whole = f"{entry['seconds']:,.1f} ({entry['reference_seconds']:,.1f})"
    return [
        TITLES[c["task"]],
        c["network"],
        c["path"],
        c["precision"],
        _spread(entry["reference_ms"], _number),
        _spread(entry["ms"], _number),
        _spread(entry["speedup"], "{:.2f}".format),
        whole,
        f"{entry['images_per_second']:,.0f}",
    ]


def _overhead_row(entry):
    c = entry["case"]
    return [
        str(c["batch_size"]),
        f"{c['num_classes']:,}",
        f"{c['num_images']:,}",
        c["precision"],
        _number(entry["reference_ms"]["median"]),
        _number(entry["ms"]["median"]),
        _spread(entry["difference_ms"], _signed),
        _spread(entry["ratio"], lambda x: f"{100 * (x - 1):+.1f}"),
    ]


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
