"""What the package says of itself where it is published."""

import re
import shutil
from email import message_from_string
from pathlib import Path

import fresh
import pytest

ROOT = Path(__file__).resolve().parents[1]
# What of a clone the metadata are made of.
FILES = (
    *("setup.cfg", "pyproject.toml", "MANIFEST.in"),
    *("LICENSE", "NOTICE", "DESCRIPTION.md"),
    *("gar_keras/__init__.py", "gar_keras/utils/version.py"),
)
MAKE = "from setuptools import build_meta; import sys; "
MAKE += "build_meta.prepare_metadata_for_build_wheel(sys.argv[1])"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The metadata of the wheel, and the folder that holds them."""
    # License expressions came with setuptools 77.
    pytest.importorskip("setuptools", minversion="77")
    folder = tmp_path_factory.mktemp("clone")
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    made = folder / "made"
    made.mkdir()
    fresh.run(MAKE, made, cwd=folder)
    (path,) = made.glob("*.dist-info/METADATA")
    return message_from_string(path.read_text("utf-8")), path.parent


@pytest.mark.slow
def test_the_licences_of_code_and_data(built):
    metadata, folder = built
    assert metadata["License-Expression"] == "Apache-2.0 AND CC-BY-SA-3.0"
    assert metadata["License"] is None
    assert not any("License ::" in c for c in metadata.get_all("Classifier"))
    assert set(metadata.get_all("License-File")) == {"LICENSE", "NOTICE"}
    assert "CC BY-SA 3.0" in metadata.get_payload()
    for name in ("LICENSE", "NOTICE"):
        expected = (ROOT / name).read_text("utf-8")
        assert (folder / "licenses" / name).read_text("utf-8") == expected


@pytest.mark.slow
def test_the_description_needs_no_clone(built):
    metadata, _ = built
    text = metadata.get_payload()
    assert text.strip() == (ROOT / "DESCRIPTION.md").read_text("utf-8").strip()
    targets = re.findall(r"\]\(([^)\s]*)", text)
    targets += re.findall(r"(?:src|href)=[\"']?([^\"'\s>]*)", text)
    assert targets
    urls = [url.split(", ")[1] for url in metadata.get_all("Project-URL")]
    assert all(url.startswith("https://") for url in (*targets, *urls))
    assert "https://arxiv.org/abs/1705.07219" in urls


def test_the_code_of_the_description_is_that_of_the_readme():
    blocks = re.compile(r"```python\n(.*?)```", re.S)
    first, second = blocks.findall((ROOT / "DESCRIPTION.md").read_text("utf-8"))
    readme = (ROOT / "README.md").read_text("utf-8")
    assert first in readme
    names = re.findall(r"import (.*)", second)[0].split(", ")
    assert all(f"{name}(" in readme for name in names)
