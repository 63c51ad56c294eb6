"""The notebooks: pairs in step, outputs that hold anywhere, code that runs."""

import os
import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import fresh
import jupytext
import nbformat
import pytest

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
NAMES = sorted(path.stem for path in FOLDER.glob("[0-9][0-9]_*.py"))

# What the tests set in the cell of parameters, to train for a moment.
QUICK = {
    "01_quickstart": {"PRETRAIN_EPOCHS": 100, "EPOCHS": 1},
    "02_bipartite_graph": {"STARTS": 2},
    "03_graph_of_a_network": {"PRETRAIN_EPOCHS": 100, "EPOCHS": 1},
    "04_your_own_data": {"PRETRAIN_EPOCHS": 50, "EPOCHS": 1, "SEEDS": 1},
    "05_reading_the_results": {},
}

# Runs a source and draws its figures, which `show` alone does not do without
# a screen. Warnings that a reader would see are errors.
RUNNER = """
import runpy, sys, warnings
import matplotlib.pyplot as plt

for category in (UserWarning, RuntimeWarning, FutureWarning):
    warnings.simplefilter("error", category)

sys.path.append(sys.argv[2])
from few_digits import load_few
from gar_keras import datasets

def show():
    for number in plt.get_fignums():
        plt.figure(number).canvas.draw()
    plt.close("all")

plt.show = show
datasets.load_mnist = load_few
runpy.run_path(sys.argv[1], run_name="__main__")
"""

# No output may hold these: they differ between machines or between runs.
FOREIGN = (
    r"(?<![\w.:/<])/(?:[\w.+-]+/)+[\w.+-]+|[A-Z]:\\\w",
    r"0x[0-9a-f]{6,}",
    r"\d\s?[mun]?s/(?:step|epoch)|\bCPU times\b|\bWall time\b",
    r"oneDNN|absl::|cuInit|cudart|TF-TRT|rebuild TensorFlow|WARNING",
)


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_its_source_executed_with_clean_outputs(name):
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    source = jupytext.read(FOLDER / f"{name}.py")
    expected = [(c.cell_type, c.source) for c in source.cells]
    actual = [(c.cell_type, c.source) for c in notebook.cells]
    assert actual == expected, f"run: python notebooks/execute.py {name}"
    cells = [c for c in notebook.cells if c.cell_type == "code"]
    counts = [cell.execution_count for cell in cells]
    assert counts == [*range(1, len(counts) + 1)]
    # Wall-clock times of the cells would differ from run to run.
    assert all("execution" not in cell.metadata for cell in cells)
    outputs = [output for cell in cells for output in cell.outputs]
    assert sum("image/png" in o.get("data", {}) for o in outputs) >= 2
    assert {o.get("name", "stdout") for o in outputs} == {"stdout"}
    texts = [o.get("text", "") for o in outputs]
    texts += [
        value
        for o in outputs
        for kind, value in o.get("data", {}).items()
        if kind.startswith("text/")
    ]
    found = [re.findall(p, text) for text in texts for p in FOREIGN]
    assert not [match for matches in found for match in matches]
    assert len((FOLDER / f"{name}.ipynb").read_text("utf-8")) < 650_000


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_source_runs(name, tmp_path):
    source = jupytext.read(FOLDER / f"{name}.py")
    (cell,) = [
        c for c in source.cells if "parameters" in c.metadata.get("tags", ())
    ]
    for parameter, value in QUICK[name].items():
        line, new = rf"(?m)^{parameter} = .*", f"{parameter} = {value}"
        cell.source, times = re.subn(line, new, cell.source)
        assert times == 1
    path = tmp_path / f"{name}.py"
    path.write_text(jupytext.writes(source, "py:percent"), encoding="utf-8")
    env = {**os.environ, "MPLBACKEND": "agg"}
    assert fresh.run(RUNNER, path, fresh.SUPPORT, cwd=FOLDER, env=env)


def test_the_website_shows_formulas_and_leads_to_every_heading():
    hooks = runpy.run_path(str(FOLDER.parent / "docs/site/hooks.py"))
    page = SimpleNamespace(file=SimpleNamespace(src_uri="notebooks/a.ipynb"))
    code = r'<pre>title("$\alpha$")</pre>'
    shown = hooks["on_page_content"](
        '<h2 id="a-fit">A <code>fit</code><a class="anchor-link"></a></h2>'
        '<h3 id="of-b">Of B<a class="anchor-link"></a></h3>'
        f"<p>for $n$ of $$0 &lt; B$$</p>{code}",
        page,
    )
    (heading,) = page.toc
    assert (heading.title, heading.url) == ("A fit", "#a-fit")
    assert [below.url for below in heading.children] == ["#of-b"]
    assert shown.count("<math") == 2
    assert '<span class="wide-formula"><math' in shown
    assert shown.endswith(f"</p>{code}")
