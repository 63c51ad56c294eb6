"""The pictures of the report: the numbers behind them, and that they draw."""

import runpy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_records import make_record, write_record
from PIL import Image

from reproduction.report.plots import style
from reproduction.report.plots.curves import (
    error_over_time,
    learning_curves,
    running_mean,
)
from reproduction.report.plots.forest import ours_beside_paper
from reproduction.settings import TABLE_1
from reproduction.studies import FIRST_EPOCH

SCRIPTS = Path(__file__).parents[3] / "scripts"


def runs(chosen=(0.01, 0.03), lost=(), epochs=4):
    """Some runs, whose last errors are 3 % and which start from 10 %."""
    e = replace(TABLE_1[100], epochs=epochs)
    found = [make_record(e, chosen_error=c) for c in chosen]
    return pd.DataFrame(
        {
            "cell": e.cell,
            "epochs": epochs,
            "curve": [record["regularization"]["curve"] for record in found],
            "seed": range(len(found)),
            "stage_1": 10.0,
            "chosen": [100 * error for error in chosen],
            "lost": [seed in lost for seed in range(len(found))],
            "seconds": 600.0,
        }
    )


def test_runs_that_lost_a_class_have_no_part_in_the_mean():
    (ax, _) = learning_curves({"100 labels": runs((0.01, 0.3, 0.03), [1])}).axes
    *seeds, mean = ax.lines
    dashed = [line for line in seeds if line.get_linestyle() == "--"]
    np.testing.assert_allclose(dashed[0].get_ydata(), [10, 30, 30, 30, 3])
    np.testing.assert_allclose(mean.get_ydata(), [10, 2, 2, 2, 3])
    assert mean.get_label() == (
        "100 labels\n3.00 % around epoch 4, 2 seeds\n"
        "dashed: seed 1, which lost a class"
    )
    # Where all did, their mean is that of all.
    *_, every = learning_curves({"all": runs(lost=[0, 1])}).axes[0].lines
    np.testing.assert_allclose(every.get_ydata(), [10, 2, 2, 2, 3])
    assert "dashed" not in every.get_label()


def test_the_running_mean_is_over_an_eighth_of_the_epochs():
    errors = np.random.default_rng(0).random((2, 61))
    smooth = running_mean(errors)
    np.testing.assert_array_equal(smooth[:, :16], errors[:, :16])
    np.testing.assert_allclose(smooth[:, 40], errors[:, 38:43].mean(axis=1))
    np.testing.assert_allclose(smooth[:, -1], errors[:, -4:].mean(axis=1))


def test_the_paper_s_errors_are_beside_the_curves():
    columns = {"100 labels": runs(), "600 labels": runs()}
    curves, papers = learning_curves(columns, "MNIST").axes
    assert curves.get_title("left") == "MNIST"
    marks = [line for line in papers.lines if line.get_marker() == "_"]
    assert [line.get_ydata().tolist() for line in marks] == [[1.56], [1.56]]
    assert papers.get_xlabel() == "the paper"


def test_gar_and_the_best_methods_have_colours_and_longer_runs_their_pace():
    errors = {"GAR": 0.9, "e": 0.5, "d": 0.4, "c": 0.3, "b": 0.2, "a": 0.1}
    methods = {name: [runs([error])] for name, error in errors.items()}
    methods["a"].append(runs(epochs=8))
    figure = error_over_time(methods, "MNIST")
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
    cells = {"MNIST, 100 labels": runs((0.01, 0.02, 0.12), [2]), "b": runs()}
    (ax,) = ours_beside_paper(cells).axes
    crosses = [line for line in ax.lines if line.get_marker() == "X"]
    assert [float(line.get_xdata()[0]) for line in crosses] == [12]
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == ["MNIST,\n100 labels", "b"]


def sheet():
    class Source:
        source = "InfiMNIST with generated fields and tangents"

        def take(self, indices):
            return np.zeros((len(indices), 28, 28, 1), "uint8")

    script = runpy.run_path(str(SCRIPTS / "infimnist_sheet.py"))
    indices = script["sheet_indices"](np.arange(40) % 10, 8_000_000)
    assert indices.shape == (20, 17)
    return script["sheet"](Source(), indices)


def test_the_lost_class_is_marked_in_the_first_epoch(tmp_path):
    script = runpy.run_path(str(SCRIPTS / "first_epoch.py"))
    found = script["noted_runs"](SCRIPTS.parent / "results", seed=2)
    legend = script["picture"](found).legends[0]
    assert "class 2" in [text.get_text() for text in legend.get_texts()]
    kept = script["noted_runs"](SCRIPTS.parent / "results", seed=0)
    assert script["dead_in"](kept) == set()
    for record in found.values():
        noted = record["first_epoch"]
        noted |= {"step": noted["step"][-2:], "v": noted["v"][-2:]}
    script["animation"](found).save(tmp_path / "a.gif", dpi=20)
    with Image.open(tmp_path / "a.gif") as movie:
        assert movie.n_frames == 2
    for arm in FIRST_EPOCH.arms.values():
        write_record(tmp_path, replace(arm, precision="bfloat16"))
    with pytest.raises(ValueError, match="does not note the first epoch"):
        script["noted_runs"](tmp_path, seed=0)


def test_a_png_is_of_a_page_s_width(tmp_path):
    path = tmp_path / "a.png"
    style.save(sheet(), path)
    with Image.open(path) as image:
        assert (image.mode, image.width) == ("P", 1257)
