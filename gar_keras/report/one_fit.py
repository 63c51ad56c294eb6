"""One fit beside the two stages: table and picture of `scripts/one_fit.py`."""

from pathlib import Path

from gar_keras.experiments.records import read_json
from gar_keras.report.estimates import Estimate
from gar_keras.report.layout import Linked, numbers
from gar_keras.report.plots import style

NAME = "one_fit"


def on_page(records, results):
    """The table for its page, or nothing without its record."""
    path = Path(results) / f"{NAME}.json"
    if not path.exists():
        return ""
    return markdown(read_json(path, "train again"), [path.name])


def markdown(record, links=()):
    """The test errors of each way, as a table in Markdown."""
    rows = []
    for way in _ways(record):
        runs = _runs(record, way)
        ends = (_at_switch, lambda run: run["test_error"][-1])
        errors = [str(Estimate.of([end(r) for r in runs])) for end in ends]
        rows.append([Linked(way, links), *errors])
    heading = ["test error, %", "after the labels alone", "at the end"]
    return "".join(f"{line}\n" for line in numbers(heading, rows))


def draw(record, path):
    """Draws the test errors over the steps, as in `figure`."""
    style.save(figure(record), path)


def figure(record):
    """The test errors over the steps: seeds thin, their mean thick."""
    drawn = style.page_figure(4.8)
    panel = drawn.subplots()
    style.clear_axes(panel)
    for way, color in zip(_ways(record), style.LINES, strict=False):
        runs = _runs(record, way)
        steps = runs[0]["step"]
        errors = [[100 * e for e in run["test_error"]] for run in runs]
        for one in errors:
            panel.plot(steps, one, lw=0.5, alpha=0.4, color=color)
        mean = [sum(e) / len(e) for e in zip(*errors, strict=True)]
        panel.plot(steps, mean, lw=1.8, color=color, label=way)
    panel.axvline(_runs(record, _ways(record)[0])[0]["switch"], color="0.4",
                  ls=":", lw=1)  # fmt: skip
    panel.set(xlabel="steps", ylabel="test error, %", yscale="log")
    style.plain_ticks(panel.yaxis)
    panel.legend(frameon=False)
    settings = record["settings"]
    panel.set_title(
        f"{settings['data']}, m_L = {settings['num_labeled']} "
        f"(n = {len(settings['seeds'])}); dotted: GAR begins",
        loc="left",
        fontsize=11,
    )
    return drawn


def _ways(record):
    return list(dict.fromkeys(run["way"] for run in record["runs"]))


def _runs(record, way):
    return [run for run in record["runs"] if run["way"] == way]


def _at_switch(run):
    """The test error at the last step before GAR begins."""
    return run["test_error"][run["step"].index(run["switch"])]
