"""The notebooks: pairs in step, outputs that hold anywhere, code that runs."""

import os
import re
import runpy
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jupytext
import nbformat
import pytest
from made_records import write_record

from gar_keras.experiments.settings import NORB_JPEG, TABLE_1

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
NAMES = sorted(path.stem for path in FOLDER.glob("[0-9][0-9]_*.py"))
RESULTS = "04_reading_the_results"

# What the tests set in the cell of parameters, to train for a moment.
QUICK = {
    "01_quickstart": {"PRETRAIN_EPOCHS": 100, "EPOCHS": 1},
    "02_bipartite_graph": {"PRETRAIN_EPOCHS": 100, "EPOCHS": 1},
    "03_your_own_data": {"PRETRAIN_EPOCHS": 50, "EPOCHS": 1, "SEEDS": 1},
}

# Runs a source and draws its figures, which `show` alone does not do without
# a screen. Warnings that a reader would see are errors.
RUNNER = """
import runpy, sys, warnings
import matplotlib.pyplot as plt

for category in (UserWarning, RuntimeWarning, FutureWarning):
    warnings.simplefilter("error", category)

def show():
    for number in plt.get_fignums():
        plt.figure(number).canvas.draw()
    plt.close("all")

plt.show = show
runpy.run_path(sys.argv[1], run_name="__main__")
"""

# No output may hold these: they differ between machines or between runs.
FOREIGN = {
    "path": r"(?<![\w.:/<])/(?:[\w.+-]+/)+[\w.+-]+|[A-Z]:\\\w",
    "address": r"0x[0-9a-f]{6,}",
    "timing": r"\d\s?[mun]?s/(?:step|epoch)|\bCPU times\b|\bWall time\b",
    "log": r"oneDNN|absl::|cuInit|cudart|TF-TRT|rebuild TensorFlow|WARNING",
}


def notebook(name):
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


def code_cells(name):
    return [c for c in notebook(name).cells if c.cell_type == "code"]


def outputs(name):
    return [output for cell in code_cells(name) for output in cell.outputs]


def texts(name):
    """All text that the outputs of a notebook show."""
    for output in outputs(name):
        if output.output_type == "stream":
            yield output.text
        for kind, value in output.get("data", {}).items():
            if kind.startswith("text/"):
                yield value


def foreign(text):
    return [
        (what, match[0])
        for what, pattern in FOREIGN.items()
        for match in re.finditer(pattern, text)
    ]


def test_every_source_has_its_notebook():
    assert len(NAMES) == 4
    assert NAMES == sorted(path.stem for path in FOLDER.glob("*.ipynb"))


@pytest.mark.parametrize("name", NAMES)
def test_pair_is_in_step(name):
    source = jupytext.read(FOLDER / f"{name}.py")
    expected = [(c.cell_type, c.source) for c in source.cells]
    actual = [(c.cell_type, c.source) for c in notebook(name).cells]
    assert actual == expected, f"run: python notebooks/execute.py {name}"


@pytest.mark.parametrize("name", NAMES)
def test_was_executed_from_top_to_bottom(name):
    counts = [cell.execution_count for cell in code_cells(name)]
    assert counts == [*range(1, len(counts) + 1)]
    pictures = ["image/png" in o.get("data", {}) for o in outputs(name)]
    assert sum(pictures) >= 2


@pytest.mark.parametrize("name", NAMES)
def test_outputs_are_clean(name):
    assert {o.output_type for o in outputs(name)} <= {"stream", "display_data",
        "execute_result"}  # fmt: skip
    streams = [o for o in outputs(name) if o.output_type == "stream"]
    assert {o.name for o in streams} <= {"stdout"}
    assert [found for text in texts(name) for found in foreign(text)] == []


@pytest.mark.parametrize("name", NAMES)
def test_holds_nothing_of_the_machine(name):
    raw = (FOLDER / f"{name}.ipynb").read_text(encoding="utf-8")
    for own in (FOLDER.parent, Path(sys.prefix), Path.home()):
        # The root folder itself is in every URL.
        assert own == Path("/") or f"{own}/" not in raw
    assert len(raw) < 650_000
    # Wall-clock times of the cells would differ from run to run.
    assert all("execution" not in cell.metadata for cell in code_cells(name))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("saved in /home/somebody/model.keras", "path"),
        (r"saved in C:\models", "path"),
        ("<Axes object at 0x7f32a1b2c3d4>", "address"),
        ("4/4 - 0s - 12ms/step", "timing"),
        ("I0000 oneDNN custom operations are on", "log"),
    ],
)
def test_foreign_output_is_found(text, what):
    assert what in [found for found, _ in foreign(text)]


@pytest.mark.parametrize(
    "text",
    [
        "error: 3.12 % (n = 10)",
        "see https://example.org/a/b",
        "python scripts/table1.py --labels 100",
        "2 / (1 * 6), 60/200, ± 0.09, m/n",
        "<span>a</span>/b",
    ],
)
def test_ordinary_output_is_not(text):
    assert foreign(text) == []


@pytest.mark.slow
def test_execution_shows_no_advice_on_compilation(tmp_path):
    source = tmp_path / "probe.py"
    source.write_text(
        "# %%\nimport logging\n\n"
        "logger = logging.getLogger('tensorflow')\n"
        "logger.warning('5 out of the last 5 calls')\n"
        "logger.error('out of memory')\n"
    )
    execute = runpy.run_path(str(FOLDER / "execute.py"))["execute"]
    (cell,) = execute(source).cells
    shown = "".join(output.text for output in cell.outputs)
    assert "out of the last" not in shown
    assert "out of memory" in shown


def shortened(name):
    """A source with parameters that train for a moment."""
    source = jupytext.read(FOLDER / f"{name}.py")
    (cell,) = [c for c in source.cells if "parameters" in tags(c)]
    for parameter, value in QUICK[name].items():
        cell.source, times = re.subn(
            rf"^{parameter} = .*", f"{parameter} = {value}", cell.source,
            flags=re.M,
        )  # fmt: skip
        assert times == 1
    return jupytext.writes(source, "py:percent")


def tags(cell):
    return cell.metadata.get("tags", ())


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_source_runs(name, tmp_path):
    path = tmp_path / f"{name}.py"
    path.write_text(shortened(name), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", RUNNER, str(path)],
        cwd=FOLDER,
        env={**os.environ, "MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert "test error" in done.stdout


@pytest.fixture
def read_results(tmp_path, monkeypatch, capsys):
    """Runs the notebook on the records in `tmp_path`; returns its output."""
    import matplotlib
    import matplotlib.pyplot as plt

    def show():
        for number in plt.get_fignums():
            plt.figure(number).canvas.draw()
        plt.close("all")

    def run():
        runpy.run_path(str(FOLDER / f"{RESULTS}.py"), run_name="__main__")
        return capsys.readouterr().out

    (tmp_path / "notebooks").mkdir()
    (tmp_path / "results").mkdir()
    monkeypatch.chdir(tmp_path / "notebooks")
    monkeypatch.setattr(plt, "show", show)
    with matplotlib.rc_context():
        yield run


def test_results_without_records(read_results):
    with pytest.raises(SystemExit, match="scripts/table1.py"):
        read_results()


def test_results_of_one_run(read_results, tmp_path):
    write_record(tmp_path / "results", TABLE_1[100], chosen_error=0.0625)
    text = read_results()
    assert "records: 1\n" in text
    assert "The figure: 6.25 (n = 1)" in text
    assert "interval none: one seed" in text
    assert "gain  3.75 points" in text
    assert "MNIST, 100 labels" in text


def test_results_of_the_cell_and_of_others(read_results, tmp_path):
    def write(experiment, seed, **results):
        write_record(tmp_path / "results", experiment, seed, **results)

    for seed, error in enumerate((0.01, 0.02, 0.03)):
        write(TABLE_1[100], seed, chosen_error=error, baseline_error=0.11)
    write(replace(TABLE_1[100], epochs=1, frobenius_of="Z"), 0)
    write(replace(TABLE_1[100], epochs=150), 0, chosen_error=0.04)
    write(replace(TABLE_1[600], affinity=0.0), 0)
    write(NORB_JPEG[300], 0, title="small NORB (JPEG copy)", last_error=0.2)
    text = read_results()
    assert "records: 7\n" in text
    assert "The figure: 2.00 ± 1.00 (n = 3)" in text
    assert "interval -0.48 to 4.48" in text
    assert "the paper's mean is inside our interval" in text
    assert "1.00, 2.00, 3.00" in text
    paths = re.findall(r"^mnist-100/.*seed\d\.json$", text, re.M)
    assert len(set(paths)) == len(paths) == 3
    assert "small NORB (JPEG copy), 300 labels" in text


def test_results_of_this_project(read_results, tmp_path):
    (tmp_path / "results").rmdir()
    (tmp_path / "results").symlink_to(FOLDER.parent / "results")
    text = read_results()
    assert re.search(r"^The figure: \d", text, re.M)
    assert re.search(r"^    mnist-100/\d+\+\d+", text, re.M)
