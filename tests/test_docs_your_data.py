"""docs/your-data.md: its Python runs on data in the forms that it tells of."""

import warnings
from pathlib import Path

import h5py
import keras
import numpy as np
import pytest
from snippets import python_blocks, run_blocks

PAGE = Path(__file__).parents[1] / "docs/your-data.md"


@pytest.mark.slow
def test_the_python_runs(tmp_path, monkeypatch):
    pytest.importorskip("PIL")
    from gar_keras import GARWarning
    from gar_keras.estimator.classifier import GARClassifier

    usual = GARClassifier.__init__.__kwdefaults__
    monkeypatch.setitem(usual, "pretrain_epochs", 1)
    monkeypatch.setitem(usual, "epochs", 1)
    monkeypatch.chdir(tmp_path)
    images = np.random.default_rng(0).uniform(size=(48, 8, 8, 1))
    images = images.astype("float32")
    classes = np.arange(48) % 3
    for i, image in enumerate(images[:8]):
        for folder in (f"labeled/{i % 2}", "unlabeled"):
            Path(folder).mkdir(parents=True, exist_ok=True)
            keras.utils.save_img(f"{folder}/{i}.png", image)
    np.save("images.npy", images)
    with h5py.File("images.h5", "w") as file:
        file["x"] = images
    arrays = {
        "x_labeled": images[:18],
        "y_labeled": classes[:18],
        "x_unlabeled": images,
        "x_test": images,
        "y_test": classes,
    }
    with warnings.catch_warnings():
        # A step on noise teaches nothing, and GAR says so.
        warnings.simplefilter("ignore", GARWarning)
        blocks = python_blocks(PAGE.read_text(encoding="utf-8"))
        found = run_blocks(blocks, arrays)
    assert set(found["model"].input) == {"left", "right"}
    assert found["classifier"].classes_.tolist() == [0, 1, 2]
