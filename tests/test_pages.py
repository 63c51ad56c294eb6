"""The Python of the pages of docs that need data of their own runs."""

from pathlib import Path

import numpy as np
import pytest
from snippets import python_blocks, run_blocks

DOCS = Path(__file__).parents[1] / "docs"


def run_page(name, arrays):
    text = (DOCS / name).read_text(encoding="utf-8")
    return run_blocks(python_blocks(text), arrays)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:GAR never began")
@pytest.mark.parametrize("page", ["as-in-keras.md", "one-fit.md"])
def test_pages_of_images(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    images = np.random.default_rng(0).uniform(size=(40, 28, 28, 1))
    y = np.arange(40) % 10
    run_page(
        page,
        {
            "x": images,
            "y": np.where(np.arange(40) < 20, y, -1),
            "x_labeled": images[:20],
            "y_labeled": y[:20],
            "x_unlabeled": images,
            "x_val": images[:20],
            "y_val": y[:20],
        },
    )


@pytest.mark.slow
def test_first_hour(tmp_path, monkeypatch, capsys):
    from gar_keras import GARClassifier

    monkeypatch.chdir(tmp_path)
    usual = GARClassifier.__init__.__kwdefaults__
    monkeypatch.setitem(usual, "pretrain_epochs", 1)
    x = np.random.default_rng(0).normal(size=(60, 4))
    names = np.array(["cat", "dog", "eel"])[np.arange(60) % 3]
    few = np.where(np.arange(60) < 30, names, "")
    found = run_page("first-hour.md", {"x": x, "y": few, "x_test": x})
    assert found["class_names"]("model.keras") == ["cat", "dog", "eel"]
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("validation error: ")
    assert "classes lost: " in last
