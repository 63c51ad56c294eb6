"""The README and the pages of docs show what the records say, and name only
what there is."""

import inspect
import re
import runpy
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

import gar_keras
from reproduction import paths, records, report
from reproduction.report import write_pages
from reproduction.settings import TABLE_1

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
RESULTS = ROOT / "results"
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
    for path in write_pages.pages_of(README)
}
OTHERS = ("CONTRIBUTING.md", "CHANGELOG.md", "notebooks/README.md")
TEXTS = PAGES | {name: (ROOT / name).read_text("utf-8") for name in OTHERS}
TEXT = PAGES["README.md"]


def generated(text):
    """The parts of the report that a page shows, by name."""
    pairs = re.findall(
        r"^<!-- (.+) -->\n(.*?)<!-- end \1 -->", text, re.M | re.S
    )
    return dict(pairs)


@pytest.mark.slow
def test_the_tables_are_those_of_the_records():
    # If not: python scripts/report.py --readme README.md
    frame = report.read_runs(RESULTS)
    parts = write_pages.sections(frame, RESULTS)
    for name, text in PAGES.items():
        assert write_pages.updated(ROOT / name, parts, RESULTS) == text, name
    places = [part for text in PAGES.values() for part in generated(text)]
    assert sorted(places) == sorted(parts)
    # Figures that are links to their runs.
    linked = re.findall(r"\[(\d+(?:\.\d+)?)(?:\s%)?\]\(results/([^)]+)\)", TEXT)
    assert len(linked) == 2
    (span,) = re.findall(
        r"(\d\.\d) to (\d\.\d) % \(\[seeds [^]]+\]\(results/([^)]+)\)", TEXT
    )
    linked += [(figure, span[2]) for figure in span[:2]]
    for figure, run in linked:
        g = frame[frame.path.str.startswith(run)]
        errors = g[["stage_1", "chosen", "last", "last_20"]].astype(float)
        digits = len(figure.partition(".")[2])
        errors = pd.concat([errors, errors.mean().to_frame().T])
        assert figure in {f"{e:.{digits}f}" for e in errors.stack()}, figure


def test_the_version_is_the_same_everywhere():
    version = gar_keras.__version__
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {version}\n" in citation
    first = re.search(r"^## (\S+?),? ", TEXTS["CHANGELOG.md"], re.M)[1]
    assert first in (version, "Unreleased")


def test_every_public_name_is_on_the_page_of_the_api():
    told = {*re.findall(r"`(\w+)`", PAGES["docs/api.md"])}
    assert {*gar_keras.__all__, "GARClassifier"} - told == set()


def test_figures_in_the_prose_of_the_readme_are_in_a_table():
    tables = " ".join(
        t for page in PAGES.values() for t in generated(page).values()
    )
    # All but the figures of the first command.
    lines = [line for line in TEXT.splitlines() if ", shortened, " not in line]
    text = "\n".join(lines).partition("## Cite")[0]
    text = re.sub(r"Python \S+ to \S+|!\[[^]]+\]", "", text)
    figures = re.findall(r"(?<![\w./])\d+\.\d\d(?![\d.])", text)
    assert len(figures) >= 20
    assert {*figures} - {*re.findall(r"(?<![\d.])\d+\.\d+", tables)} == set()


def rows_of(text):
    """The cells of a table, by row and by the name of the column."""
    lines = [
        line[2:-2].split(" | ") for line in text.splitlines() if "|" in line
    ]
    names, _, *rows = lines
    return {row[0]: dict(zip(names[1:], row[1:], strict=True)) for row in rows}


def test_the_hours_of_the_plan_are_those_of_the_records():
    # The page says how they are counted.
    runs = report.read_runs(RESULTS)
    cores = runs.hardware.map(lambda name: 1 if "1 of 2" in name else 2)
    text = PAGES["docs/experiments.md"]
    start = text.index("| what | records | their core-hours |")
    table = rows_of(text[start:].partition("\n\n")[0])
    others = runs[runs.device == "CPU"]
    counted = 0
    for what, cells in table.items():
        link = re.search(r"\(\.\./results/([^)]+)\)", cells["records"])
        if not what.startswith("Table") or link is None:
            continue
        g = runs[runs.path.str.startswith(link[1])]
        others = others.drop(g.index)
        pretraining = g.pretrain_seconds * cores / 3600
        training = g.seconds * cores / 3600
        spent = (pretraining + training).sum()
        epochs = 133 if what == "Table 2" else 200
        whole = 2000 * (pretraining / g.pretrain_epochs).mean()
        whole += epochs * (training / g.epochs).mean()
        assert f"[{len(g)} run" in cells["records"]
        assert cells["their core-hours"] == f"{spent:.0f}"
        of_ten = cells["core-hours of ten seeds, all epochs"]
        assert of_ten == f"{10 * whole:.0f}"
        counted += 1
    assert counted == 7
    seconds = others.pretrain_seconds.fillna(0) + others.seconds.fillna(0)
    cells = table["shorter runs, studies, other methods, small data sets"]
    spent = (seconds * cores / 3600).sum()
    assert cells["their core-hours"] == f"about {round(spent, -1):.0f}"


def test_the_files_of_the_plan_have_the_hashes_that_are_checked():
    from gar_keras.datasets import mnist
    from reproduction.datasets import norb, svhn

    checked = norb.MD5 | svhn.MD5
    checked |= {"mnist.npz": mnist.MD5, norb.COPY: norb.COPY_MD5}
    checked |= {svhn.GREY: svhn.GREY_MD5}
    lines = PAGES["docs/experiments.md"].splitlines()
    for name, md5 in checked.items():
        assert any(f"`{name}`" in line and md5 in line for line in lines), name


FOLDERS = "scripts|notebooks|results|gar_keras|tests|docs"
# Made by the first command that needs it.
MADE = {".venv/bin/python", ".venv/bin/pip", ".venv/bin/activate"}


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


@pytest.mark.parametrize("name", TEXTS)
def test_every_path_and_link_leads_somewhere(name):
    page, text = ROOT / name, TEXTS[name]
    assert not [path for path in paths_in(text) if not (ROOT / path).exists()]
    for link in links_in(text):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        anchors = anchors_in(target.read_text("utf-8")) if anchor else {""}
        assert anchor in anchors, link


# Of mkdocs and pip.
OF_OTHERS = {"--strict", "--no-deps"}


def options_of(script):
    """The options that a script has."""
    # Not as a program: what is defined is read, nothing runs.
    found = runpy.run_path(str(script))
    if "parser" in found:
        return {*found["parser"]()._option_string_actions}
    names = inspect.signature(found["main"]).parameters
    return {f"--{name.replace('_', '-')}" for name in names}


def test_every_option_named_is_one_of_its_script():
    known = {p.name: options_of(p) for p in (ROOT / "scripts").glob("*.py")}
    found = set()
    for line in "\n".join(PAGES.values()).splitlines():
        command, _, rest = line.replace("`,", " ").partition(".py ")
        named = {*re.findall(r"(?<!\S)`?(--[a-z][a-z0-9-]*)", rest or command)}
        script = re.search(r"(\w+)$", command) if rest else None
        own = known.get(f"{script[1]}.py") if script else None
        own = set().union(*known.values()) if own is None else own
        assert named <= own | OF_OTHERS, line
        found |= named
    assert found >= {"--epochs", "--seeds", "--results"}


def test_the_first_command_ends_with_the_figures_of_the_reference():
    command = TEXT.partition("<!-- first command -->\n```")[2].partition("```")[
        0
    ]
    # Nothing else is unlike the full run.
    labels, seed, pretrain_epochs, epochs = map(
        int,
        re.search(
            r"table1\.py --labels (\d+) --seeds (\d+) --pretrain-epochs (\d+) "
            r"--epochs (\d+)\n",
            command,
        ).groups(),
    )
    experiment = replace(
        TABLE_1[labels],
        epochs=epochs,
        pretrain_epochs=pretrain_epochs,
        precision="bfloat16",
    )
    record = records.read(paths.path_of(experiment, seed, RESULTS))
    curve = record["regularization"]["curve"]
    before, *_, after = (100 * error for error in curve["test_error"])
    assert records.chosen_epoch(curve) == epochs
    folder = paths.path_of(experiment, seed, RESULTS).parent
    told = f"[{before:.2f} % before GAR, {after:.2f} after]"
    assert f"{told}({folder.relative_to(ROOT).as_posix()})" in TEXT
