"""The benchmark records as Markdown tables, beside the project's aims."""

from gar_keras.benchmarks.records import read_all
from gar_keras.experiments.placement import path_of_benchmark
from gar_keras.report import layout

# 100 epochs of stage 2 of cnn6 on one data-centre GPU.
AIM_SECONDS = 15
# Times the speed of the plain path, in stage 2 of cnn6 on a CPU.
AIM_SPEEDUP = 2
# What the regularizer adds to a step.
AIM_OVERHEAD = 0.01

NOT_AT_HAND = "not measured: no such device at hand"
ABSENT = {
    "gpu": f"one data-centre GPU: {NOT_AT_HAND}",
    "cpu": "a CPU: not measured",
}
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
    "peak memory, MiB (plain)",
    "floor, ms",
    "share of the floor",
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
    "peak memory, MiB (without)",
)


def speed_markdown(records, results):
    """The table of the speed benchmark.

    Args:
        records: Run records, which have no part in it.
        results: Folder of the benchmark records.

    Returns:
        Markdown: the aims with what was measured of them, a row for each case,
        and a line for each machine. A kind of device without a record is named
        as not measured.

    Raises:
        RecordError: if a file of that name is not a record.
    """
    entries = _sorted(read_all(results, "benchmark"))
    rows = [_speed_row(e) for e in entries]
    return "\n".join(
        [
            *layout.markdown_table(("aim", "measured"), _aims(entries)),
            "",
            *layout.markdown_table(
                SPEED_HEADING, rows + _absent(entries, SPEED_HEADING)
            ),
            "",
            *_machines(entries),
            "",
        ]
    )


def overhead_markdown(records, results):
    """The table of what the regularizer costs.

    Args:
        records: Run records, which have no part in it.
        results: Folder of the benchmark records.

    Returns:
        Markdown, as `speed_markdown`.

    Raises:
        RecordError: if a file of that name is not a record.
    """
    entries = _sorted(read_all(results, "overhead"))
    rows = [_overhead_row(e) for e in entries]
    absent = _absent(entries, OVERHEAD_HEADING)
    return "\n".join(
        [
            *layout.markdown_table(OVERHEAD_HEADING, rows + absent),
            "",
            f"- Aim: under {100 * AIM_OVERHEAD:g} %. Medians of pairs, with "
            "quartiles. The paper: 830 s without and 882 s with GAR, 6.3 % "
            "more (its text says 5 %), on one GTX 1080.",
            *_machines(entries),
            "",
        ]
    )


def _aims(entries):
    return [
        [
            "100 epochs of stage 2 (cnn6) on one data-centre GPU in "
            f"{AIM_SECONDS} s",
            _fastest(entries),
        ],
        [
            f"stage 2 (cnn6) on a CPU at {AIM_SPEEDUP} times the speed of the "
            "plain path",
            _most_speedup(entries),
        ],
    ]


def _fastest(entries):
    found = _stage2(entries, "gpu")
    if not found:
        return NOT_AT_HAND
    best = min(found, key=lambda e: e["seconds"])
    verdict = "reached" if best["seconds"] <= AIM_SECONDS else "not reached"
    text = f"{verdict}: {best['seconds']:.1f} s, {_way(best)}"
    return _linked(text, "benchmark", best)


def _most_speedup(entries):
    found = _stage2(entries, "cpu")
    if not found:
        return "not measured"
    best = max(found, key=lambda e: e["speedup"]["median"])
    reached = best["speedup"]["median"] >= AIM_SPEEDUP
    verdict = "reached" if reached else "not reached"
    speedup = _spread(best["speedup"], "{:.2f}".format)
    return _linked(f"{verdict}: {speedup}, {_way(best)}", "benchmark", best)


def _stage2(entries, kind):
    return [
        e
        for e in entries
        if e["case"]["task"] == "regularize"
        and e["case"]["network"] == "cnn6"
        and e["case"]["images"] == 60_000
        and e["environment"]["device_kind"] == kind
    ]


def _way(entry):
    """Path, precision and machine of an entry."""
    c = entry["case"]
    return f"{c['path']}, {c['precision']}, {_device(entry)}"


def _speed_row(entry):
    c = entry["case"]
    peak = entry["peak"]
    whole = "-"
    if entry["seconds"] is not None:
        whole = f"{entry['seconds']:,.1f} ({entry['reference_seconds']:,.1f})"
    return [
        _linked(_device(entry), "benchmark", entry),
        TITLES[c["task"]],
        c["network"],
        c["path"],
        c["precision"],
        _spread(entry["reference_ms"], _number),
        _spread(entry["ms"], _number),
        _spread(entry["speedup"], "{:.2f}".format),
        whole,
        f"{entry['images_per_second']:,.0f}",
        f"{_mib(peak['path'])} ({_mib(peak['reference'])})",
        _number(entry["floor_ms"]),
        f"{100 * entry['floor_share']:.0f} %",
    ]


def _overhead_row(entry):
    c = entry["case"]
    peak = entry["peak"]
    percent = {
        "median": 100 * (entry["ratio"]["median"] - 1),
        "quartiles": [100 * (q - 1) for q in entry["ratio"]["quartiles"]],
    }
    return [
        _linked(_device(entry), "overhead", entry),
        str(c["batch_size"]),
        f"{c['num_classes']:,}",
        f"{c['num_images']:,}",
        c["precision"],
        _number(entry["reference_ms"]["median"]),
        _number(entry["ms"]["median"]),
        _spread(entry["difference_ms"], _signed),
        _spread(percent, "{:+.1f}".format),
        f"{_mib(peak['with'])} ({_mib(peak['without'])})",
    ]


def _absent(entries, heading):
    """A row for each kind of device that has no record."""
    there = {e["environment"]["device_kind"] for e in entries}
    rest = ["-"] * (len(heading) - 1)
    return [[text, *rest] for kind, text in ABSENT.items() if kind not in there]


def _machines(entries):
    """A line for each machine and its software, with its rows if several."""
    rows = {}
    for number, entry in enumerate(entries, 1):
        rows.setdefault(_machine(entry), []).append(str(number))
    if len(rows) == 1:
        return [f"- {text}" for text in rows]
    return [
        f"- {text} (row{'s' * (len(numbers) > 1)} {', '.join(numbers)})"
        for text, numbers in rows.items()
    ]


def _machine(entry):
    """The machine and the software of an entry, in words."""
    e = entry["environment"]
    revision = (e["git_revision"] or "unknown")[:7]
    edited = "+changes" if "+" in (e["git_revision"] or "") else ""
    return (
        f"{_device(entry)}: {e['processor']}, {e['cores']} cores; "
        f"{e['backend']} {e['backend_version']}, Keras {e['keras']}, "
        f"Python {e['python']}, commit {revision}{edited}; medians of "
        f"{entry['case']['pairs']} pairs, with quartiles"
    )


def _linked(text, kind, entry):
    """A text with a link to the record of the benchmark."""
    path = path_of_benchmark(kind, entry["environment"], "")
    return layout.Linked(text, [path.name])


def _device(entry):
    e = entry["environment"]
    cores = f" ({e['cores']} cores)" if e["device_kind"] == "cpu" else ""
    return f"{e['device']}{cores}, {e['backend']}"


def _sorted(entries):
    """GPUs first, each machine's cases in the order of their measurement."""
    return sorted(
        entries, key=lambda e: e["environment"]["device_kind"] != "gpu"
    )


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


def _mib(peak):
    """The GPU's memory where there is one, else the process's."""
    value = peak["device_mib"]
    return f"{peak['host_mib'] if value is None else value:,.0f}"
