"""The README shows what the records say, and names only what there is."""

from pathlib import Path
import re

import pytest

from gar_keras import cli
from gar_keras import report
from gar_keras.experiments import records

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
RESULTS = ROOT / "results"


@pytest.fixture(scope="module")
def text():
    return README.read_text(encoding="utf-8")


def test_the_tables_are_those_of_the_records(text):
    # If not: python scripts/report.py --readme README.md
    assert report.update_readme(README, RESULTS) == text


def test_table_1_is_shown_with_a_figure_of_ours(text):
    table = text.partition("<!-- table1 -->")[2]
    table = table.partition("<!-- end table1 -->")[0]
    found = records.read_all(RESULTS)
    own = [row for row in table.splitlines() if row.startswith("| **")]
    assert found and len(own) == 3
    assert all("(n = " in row for row in own)


FOLDERS = "scripts|notebooks|results|gar_keras|tests|docs|examples"
# Made by the first command that needs it.
MADE = {".venv/bin/python", ".venv/bin/pip"}


def paths_in(text):
    """Every local path that a README names, in links and elsewhere."""
    links = re.findall(r"\]\(([^)#\s]+)\)", text)
    local = {link for link in links if "://" not in link}
    named = re.findall(rf"(?<![\w/.-])(?:{FOLDERS})/[\w./-]*\w", text)
    hidden = re.findall(r"(?<![\w/])\.[a-z]\w+/[\w./-]+\w", text)
    return local | {*named, *hidden} - MADE


def test_paths_are_found_in_a_text():
    assert paths_in(
        "Run `python scripts/a.py --results results`; see [b](docs/b.md#c), "
        "[d](https://e.org/scripts/f.py), ![g](results/g.png) and NOTICE. "
        "`.venv/bin/python scripts/h.py`, .ci/run. In `tests/`, no file."
    ) == {"scripts/a.py", "docs/b.md", "results/g.png", "scripts/h.py",
          ".ci/run"}  # fmt: skip


def test_every_path_named_is_there(text):
    missing = [path for path in paths_in(text) if not (ROOT / path).exists()]
    assert not missing
    assert "scripts/table1.py" in paths_in(text)


def test_every_option_named_is_one(text):
    known = {
        f"--{name.replace('_', '-')}" for name in cli.RunOptions.__annotations__
    }
    scripts = [*ROOT.glob("scripts/*.py"), ROOT / "gar_keras/__main__.py"]
    for script in scripts:
        fields = re.findall(r"^    (\w+): ", script.read_text(), re.MULTILINE)
        known |= {f"--{name.replace('_', '-')}" for name in fields}
    named = set(re.findall(r"(?<!\S)`?(--[a-z][a-z0-9-]*)", text))
    assert "--labels" in named
    assert not named - known
