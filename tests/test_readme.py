"""The README and the pages of docs show what the records say, name only what
there is, and their Python runs."""

import inspect
import re
import runpy
import shutil
import subprocess
import warnings
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from snippets import python_blocks, run_blocks

import gar_keras
from gar_keras import report
from gar_keras.experiments import placement, records
from gar_keras.experiments.settings import TABLE_1
from gar_keras.report.tables import ERRORS

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
RESULTS = ROOT / "results"


PAGES = {str(p.relative_to(ROOT)): p for p in report.pages_of(README)}
# Their Python has data, and a test, of its own.
WITH_OWN_DATA = {
    "docs/as-in-keras.md",
    "docs/distributed.md",
    "docs/first-hour.md",
    "docs/leaving.md",
    "docs/one-fit.md",
    "docs/your-data.md",
}


@pytest.fixture(scope="module")
def texts():
    return {n: p.read_text(encoding="utf-8") for n, p in PAGES.items()}


@pytest.fixture(scope="module")
def text(texts):
    return texts["README.md"]


def generated(text):
    """The parts of the report that a page shows, by name."""
    pairs = re.findall(
        r"^<!-- (.+) -->\n(.*?)<!-- end \1 -->", text, re.M | re.S
    )
    return dict(pairs)


@pytest.mark.slow
def test_the_tables_are_those_of_the_records(texts):
    # If not: python scripts/report.py --readme README.md
    parts = report.parts(report.read_runs(RESULTS), RESULTS)
    for name, text in texts.items():
        assert report.updated(PAGES[name], parts, RESULTS) == text, name


def test_each_part_of_the_report_has_a_place_on_one_page(texts):
    places = [part for text in texts.values() for part in generated(text)]
    assert {*report.parts(report.read_runs(RESULTS), RESULTS)} == {*places}
    assert len(places) == len({*places})


def test_the_readme_is_short(text):
    assert len(text.splitlines()) <= 180


def test_the_version_is_the_same_everywhere():
    version = gar_keras.__version__
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {version}\n" in citation
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    first = re.search(r"^## (\S+?),? ", changes, re.M)[1]
    assert first in (version, "Unreleased")


def test_every_public_name_is_on_the_page_of_the_api(texts):
    told = {*re.findall(r"`(\w+)`", texts["docs/api.md"])}
    assert {*gar_keras.__all__, "GARClassifier"} - told == set()


def test_figures_in_the_prose_of_the_readme_are_in_a_table(text, texts):
    tables = " ".join(
        t for page in texts.values() for t in generated(page).values()
    )
    prose = text.partition("<!-- first figures -->")[0]
    for part in generated(text).values():
        prose = prose.replace(part, "")
    figures = re.findall(r"(?<![\w./])\d+\.\d\d?(?![\d.])", prose)
    assert len(figures) >= 8
    known = {*re.findall(r"(?<![\d.])\d+\.\d+", tables)} | EXPECTED
    assert {*figures} - known == set()


def test_table_1_is_shown_with_a_figure_of_ours(texts):
    table = generated(texts["docs/reproduction.md"])["table1"]
    found = records.read_all(RESULTS)
    own = [row for row in table.splitlines() if row.startswith("| **")]
    assert found and len(own) >= 3
    assert all("(n = " in row for row in own)


FOLDERS = "scripts|notebooks|results|gar_keras|tests|docs|examples"
# Balances and settings in the prose, which are worked out elsewhere.
EXPECTED = {"0.93"}
# Made by the first command that needs it.
MADE = {".venv/bin/python", ".venv/bin/pip"}


def links_in(text):
    """The links of a page to what is not on other sites."""
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    return {link for link in links if "://" not in link}


def paths_in(text):
    """The local paths that a page names elsewhere than in links."""
    text = re.sub(r"\]\([^)\s]+\)", "]", text)
    named = re.findall(rf"(?<![\w/.-])(?:{FOLDERS})/[\w./-]*\w", text)
    hidden = re.findall(r"(?<![\w/])\.[a-z]\w+/[\w./-]+\w", text)
    return {*named, *hidden} - MADE


def anchors_in(text):
    """What links to the headings of a page end in."""
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in plain}


def test_links_paths_and_anchors_are_found_in_a_text():
    text = (
        "## Lost `ab` classes: why\n"
        "Run `python scripts/a.py --results results`; see [b](docs/b.md#c), "
        "[d](https://e.org/scripts/f.py), ![g](results/g.png) and NOTICE. "
        "`.venv/bin/python scripts/h.py`, .ci/run. In `tests/`, no file."
    )
    assert links_in(text) == {"docs/b.md#c", "results/g.png"}
    assert paths_in(text) == {"scripts/a.py", "scripts/h.py", ".ci/run"}
    assert anchors_in(text) == {"lost-ab-classes-why"}


@pytest.mark.parametrize("name", [*PAGES, "CONTRIBUTING.md", "CHANGELOG.md"])
def test_every_path_and_link_leads_somewhere(name):
    page = ROOT / name
    text = page.read_text(encoding="utf-8")
    assert not [path for path in paths_in(text) if not (ROOT / path).exists()]
    for link in links_in(text):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        if anchor:
            assert anchor in anchors_in(target.read_text(encoding="utf-8")), (
                link
            )


# Of pip, mkdocs and tar.
OF_OTHERS = {
    "--dest", "--exclude", "--no-deps", "--no-index", "--only-binary",
    "--platform", "--python-version", "--strict", "--target",
}  # fmt: skip
OPTION = r"(?<!\S)`?(--[a-z][a-z0-9-]*)"
COMMAND = r"scripts/(\w+)\.py(.*)"


def options_by_command(text):
    """The options that a page names, as `{command: options}`.

    An option belongs to the command before it in its line, in a row of a table
    of options to the last command above. Those that have none are under `None`.
    """
    found, last = {}, None
    for line in text.splitlines():
        match = re.search(COMMAND, line)
        if line.startswith("| `--"):
            command, rest = last, line.split("|")[1]
        elif match:
            command, rest = match[1], match[2]
            last = command
        else:
            command, rest = None, line
        named = re.findall(OPTION, rest.replace("`,", " "))
        if named:
            found.setdefault(command, set()).update(named)
    return found


def options_of(command):
    """The options that a script has."""
    # Not as a program: what is defined is read, nothing runs.
    script = runpy.run_path(str(ROOT / f"scripts/{command}.py"))
    if "Options" in script:
        names = [f.name for f in fields(script["Options"])]
    else:
        names = inspect.signature(script["main"]).parameters
    return {f"--{name.replace('_', '-')}" for name in names}


def test_options_go_with_the_command_before_them():
    assert options_by_command(
        "git clone --depth 1 && python scripts/a.py --b 1 --c-d\n"
        "| `scripts/e.py --f` | does it; `--g` for more, `--h` for less |\n"
        "| `--i 1`, `--j x` | or `--k` |\n"
        "With `--m`, a dash -- or two.\n"
    ) == {
        "a": {"--b", "--c-d"},
        "e": {"--f", "--g", "--h", "--i", "--j"},
        None: {"--m"},
    }


def test_every_option_named_is_one_of_its_command(texts):
    named = {}
    for text in texts.values():
        for command, options in options_by_command(text).items():
            named.setdefault(command, set()).update(options)
    loose = named.pop(None, set())
    known = {command: options_of(command) for command in named}
    assert {"table1", "table3", "rivals", "benchmark"} <= named.keys()
    assert {c: named[c] - known[c] for c in named if named[c] - known[c]} == {}
    assert not loose - set().union(*known.values()) - OF_OTHERS


def check(folder, text):
    """Runs the check in a folder with a README of this text."""
    (folder / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", folder / ".ci/run")
    (folder / "README.md").write_text(text, encoding="utf-8")
    return subprocess.run(
        ["bash", folder / ".ci/run"], capture_output=True, text=True
    )


@pytest.mark.parametrize("name", ["first command", "test command"])
def test_without_its_commands_the_check_fails(name, tmp_path):
    commands = "".join(
        f"<!-- {other} -->\n```bash\ntrue\n```\n"
        for other in {"first command", "test command"} - {name}
    )
    done = check(tmp_path, commands)
    assert done.returncode == 1
    assert f"has no {name} behind <!-- {name} -->" in done.stderr


def test_the_check_runs_the_first_command_before_the_tests(tmp_path):
    done = check(
        tmp_path,
        "<!-- test command -->\n```bash\ncat made && false\n```\n"
        "<!-- first command -->\n```bash\necho it is there > made\n```\n",
    )
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "echo it is there > made", "cat made && false", "it is there"
    ]  # fmt: skip


def first_command(text):
    """The first command, and the figures that it is said to end with."""
    command, figures = (
        text.partition(f"<!-- first {what} -->\n```")[2].partition("```")[0]
        for what in ("command", "figures")
    )
    return command, figures


def test_the_first_command_ends_with_the_figures_of_the_reference(text):
    command, figures = first_command(text)
    script, options = re.search(r"scripts/(\w+)\.py(.*)", command).groups()
    assert script == "table1"
    words = options.split()
    wanted = dict(zip(words[::2], words[1::2], strict=True))
    experiment = replace(
        TABLE_1[int(wanted.pop("--labels"))],
        epochs=int(wanted.pop("--epochs")),
        pretrain_epochs=int(wanted.pop("--pretrain-epochs")),
        precision="bfloat16",
    )
    seed = int(wanted.pop("--seeds"))
    record = records.read(placement.path_of(experiment, seed, RESULTS))
    # Nothing else is unlike the full run.
    assert not wanted
    keys = ("baseline_error", "chosen_error", "last_error")
    for row, key in zip(ERRORS, keys, strict=False):
        error = 100 * record["result"][key]
        assert re.search(rf"{re.escape(row)} +{error:.2f} \(n = 1\)", figures)
    epochs = f"{experiment.pretrain_epochs} + {experiment.epochs}"
    assert re.search(rf"ours +{re.escape(epochs)}$", figures, re.M)


def test_python_blocks_are_found_and_run():
    blocks = python_blocks(
        "Text.\n```python\na = x + 1\nx = 5\n```\n```bash\nexit 1\n```\n"
        "```python\nb = a + x + dict(pretrain_epochs=2000)['pretrain_epochs']"
        "\n```\n"
    )
    assert len(blocks) == 2
    # 2 + 1 + 1 epoch, not 2 + 5 + 2,000.
    assert run_blocks(blocks, {"x": 1})["b"] == 4
    with pytest.raises(NameError, match="nowhere"):
        run_blocks([*blocks, "nowhere"], {"x": 1})


def network():
    import keras

    return keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            keras.layers.Flatten(),
            keras.layers.Dense(10),
        ]
    )


@pytest.mark.slow
def test_the_python_runs(texts, monkeypatch):
    from gar_keras import GARWarning
    from gar_keras.estimator.classifier import GARClassifier

    usual = GARClassifier.__init__.__kwdefaults__
    monkeypatch.setitem(usual, "pretrain_epochs", 1)
    monkeypatch.setitem(usual, "epochs", 1)
    images = np.random.default_rng(0).uniform(size=(40, 28, 28, 1))
    images = images.astype("float32")
    classes = np.arange(40) % 10
    few = np.where(np.arange(40) < 20, classes, -1)
    arrays = {
        "x_labeled": images[:20],
        "y_labeled": classes[:20],
        "x_unlabeled": images,
        "x_val": images[20:30],
        "y_val": classes[20:30],
        "x_test": images[30:],
        "y_test": classes[30:],
        "x": images,
        "y": few,
    }
    found = {}
    with warnings.catch_warnings():
        # A step on noise teaches nothing, and GAR says so.
        warnings.simplefilter("ignore", GARWarning)
        for name in PAGES.keys() - WITH_OWN_DATA:
            blocks = python_blocks(texts[name])
            made = any("model = " in block for block in blocks)
            given = (
                arrays if made or not blocks else {"model": network()} | arrays
            )
            found[name] = run_blocks(blocks, given)
    model = found["README.md"]["model"]
    assert model.output_shape == (None, 10)
    assert type(model.layers[0]).__name__ == "Rescaling"
    assert found["docs/options.md"]["method"].rate == "cosine"
    classifier = found["docs/models.md"]["classifier"]
    assert classifier.predict(images[:3]).shape == (3,)
