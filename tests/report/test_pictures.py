"""The pictures of the report: the numbers behind them, and that they draw."""

import runpy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_records import make_record
from PIL import Image

from gar_keras.experiments.settings import TABLE_1
from gar_keras.report.plots import style
from gar_keras.report.plots.curves import (
    Runs,
    error_over_time,
    learning_curves,
    running_mean,
)
from gar_keras.report.plots.forest import ours_beside_paper
from gar_keras.report.published import Published

SCRIPTS = Path(__file__).parents[2] / "scripts"
PAPER = Published(1.56, 0.09)


def runs(name="100 labels", chosen=(0.01, 0.03), lost=(), epochs=4):
    """Some runs, whose last errors are 3 % and which start from 10 %."""
    e = replace(TABLE_1[100], epochs=epochs)
    found = [make_record(e, chosen_error=c) for c in chosen]
    frame = pd.DataFrame(
        {
            "curve": [record["regularization"]["curve"] for record in found],
            "seed": range(len(found)),
            "chosen": [100 * error for error in chosen],
            "lost": [seed in lost for seed in range(len(found))],
            "seconds": 600.0,
        }
    )
    return Runs.of(name, frame, PAPER, 200, Published(14.8, 1.0))


def test_runs_that_lost_a_class_have_no_part_in_the_mean():
    found = runs(chosen=(0.01, 0.3, 0.03), lost=[1])
    np.testing.assert_allclose(found.chosen, [1, 30, 3])
    np.testing.assert_allclose(found.mean, [10, 2, 2, 2, 3])
    assert found.describe() == (
        "100 labels\n3.00 % around epoch 4, 2 seeds\n"
        "dashed: seed 1, which lost a class"
    )
    (ax, _) = learning_curves([found]).axes
    dashed = [line for line in ax.lines if line.get_linestyle() == "--"]
    np.testing.assert_allclose(dashed[0].get_ydata(), [10, 30, 30, 30, 3])
    np.testing.assert_allclose(ax.lines[-1].get_ydata(), found.mean)
    # Where all did, their mean is that of all.
    every = runs(lost=[0, 1])
    np.testing.assert_allclose(every.mean, [10, 2, 2, 2, 3])
    assert "dashed" not in every.describe()


def test_the_running_mean_is_over_an_eighth_of_the_epochs():
    errors = np.random.default_rng(0).random((2, 61))
    smooth = running_mean(errors)
    np.testing.assert_array_equal(smooth[:, :16], errors[:, :16])
    np.testing.assert_allclose(smooth[:, 40], errors[:, 38:43].mean(axis=1))
    np.testing.assert_allclose(smooth[:, -1], errors[:, -4:].mean(axis=1))


def test_the_paper_s_errors_are_beside_the_curves_with_their_epochs():
    columns, longer = [runs(), runs("600 labels")], [runs(epochs=9)]
    curves, papers = learning_curves(columns, "MNIST", longer).axes
    assert curves.get_title("left") == "MNIST"
    marks = [line for line in papers.lines if line.get_marker() == "_"]
    assert [line.get_ydata().tolist() for line in marks] == [[1.56], [1.56]]
    assert papers.get_xlabel().endswith("epoch 200")
    colors = [line.get_color() for line in curves.lines]
    assert colors[-3:] == [style.MUTED] * 3


def test_gar_and_the_best_methods_have_colours_and_longer_runs_their_pace():
    errors = {"GAR": 0.9, "e": 0.5, "d": 0.4, "c": 0.3, "b": 0.2, "a": 0.1}
    methods = [runs(name, [error]) for name, error in errors.items()]
    figure = error_over_time(methods, [runs("a", epochs=8)], "MNIST")
    lines = figure.axes[0].lines
    assert [line.get_color() for line in lines] == [
        style.LINES[0], style.LINES[1], *style.LINES[1:], style.MUTED,
        style.MUTED,
    ]  # fmt: skip
    # 10 minutes of 4 epochs are 20 of 8.
    minutes = [line.get_xdata()[-1] for line in lines]
    assert minutes == [10, 10, 20, 10, 10, 10, 10]
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels[:2] == ["GAR, 1 seed", "a, 1 seed\n8 epochs: 2 seeds"]


def test_a_cell_of_the_summary():
    found = runs("MNIST, 100 labels", (0.01, 0.02, 0.12), lost=[2])
    (ax,) = ours_beside_paper([found, runs()]).axes
    texts = [text.get_text() for text in ax.texts]
    assert texts[:2] == ["+3.44", "3 seeds, 1 lost a class, 4 of 200 epochs"]
    crosses = [line for line in ax.lines if line.get_marker() == "X"]
    assert [float(line.get_xdata()[0]) for line in crosses] == [12]
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == ["MNIST,\n100 labels", "100 labels"]


def sheet():
    class Source:
        source = "InfiMNIST with generated fields and tangents"

        def take(self, indices):
            return np.zeros((len(indices), 28, 28, 1), "uint8")

    script = runpy.run_path(str(SCRIPTS / "infimnist_sheet.py"))
    indices = script["sheet_indices"](np.arange(40) % 10, 8_000_000)
    assert indices.shape == (20, 17)
    return script["sheet"](Source(), indices)


PICTURES = {
    "table": lambda: learning_curves([runs(), runs(lost=[0])]),
    "methods": lambda: error_over_time([runs(), runs("VAT")]),
    "summary": lambda: ours_beside_paper([runs()]),
    "sheet": sheet,
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_png_is_of_a_page_s_width(name, tmp_path):
    path = tmp_path / "a.png"
    style.save(PICTURES[name](), path)
    with Image.open(path) as image:
        assert (image.mode, image.width) == ("P", 1257)
