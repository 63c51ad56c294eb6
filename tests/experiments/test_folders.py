"""Where records are: the reference of the clone, and the user's runs."""

from pathlib import Path

import pytest

from gar_keras.experiments import folders

ROOT = Path(__file__).parents[2]


def test_in_the_clone_paths_are_short(monkeypatch):
    monkeypatch.chdir(ROOT)
    assert folders.own() == Path("runs")
    assert folders.reference() == Path("results")


def test_called_from_elsewhere_they_are_still_those_of_the_clone(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert folders.own() == ROOT / "runs"
    assert folders.reference() == ROOT / "results"


def test_without_a_clone_there_is_no_reference(tmp_path, monkeypatch):
    monkeypatch.setattr(folders, "_ROOT", tmp_path)
    (tmp_path / "results").mkdir()
    assert folders.own() == Path("runs")
    assert folders.reference() is None
    assert not folders.is_reference("results")


@pytest.mark.parametrize(
    ("folder", "expected"),
    [(ROOT / "results", True), ("results", True), ("runs", False)],
)
def test_the_reference_is_known_however_it_is_written(
    folder, expected, monkeypatch
):
    monkeypatch.chdir(ROOT)
    assert folders.is_reference(folder) is expected


def test_git_ignores_the_users_runs():
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert f"{folders.own().name}/" in ignored
