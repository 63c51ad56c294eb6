"""The pictures of the report: the numbers behind them, and that they draw."""

from dataclasses import replace

import numpy as np
import pandas as pd
from made_records import make_record

from reproduction.report.plots.curves import (
    error_over_time,
    learning_curves,
    running_mean,
)
from reproduction.report.plots.forest import ours_beside_paper
from reproduction.settings import TABLE_1


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


def test_a_run_that_lost_a_class_is_dashed_and_counts_in_the_mean():
    columns = {"100": runs((0.01, 0.3, 0.02), [1]), "all": runs(lost=[0, 1])}
    longer = {"all": runs(lost=[0], epochs=8)}
    curves, papers = learning_curves(columns, "MNIST", longer).axes
    assert curves.get_title("left") == "MNIST"
    *seeds, mean, _, _, every, dotted = curves.lines
    dashed = [line for line in seeds if line.get_linestyle() == "--"]
    np.testing.assert_allclose(dashed[0].get_ydata(), [10, 30, 30, 30, 3])
    np.testing.assert_allclose(mean.get_ydata(), [10, 11, 11, 11, 3])
    assert mean.get_label() == (
        "100\n3.00 % around epoch 4, 3 seeds\n"
        "3.00 % without seed 1, which lost a class"
    )
    np.testing.assert_allclose(every.get_ydata(), [10, 2, 2, 2, 3])
    assert every.get_label() == (
        "all\n3.00 % around epoch 4, 2 seeds\nlost a class: seeds 0-1"
    )
    assert dotted.get_linestyle() == ":"
    assert dotted.get_label() == (
        "3.00 % around epoch 8, 2 seeds\n"
        "3.00 % without seed 0, which lost a class"
    )
    marks = [line for line in papers.lines if line.get_marker() == "_"]
    assert [line.get_ydata().tolist() for line in marks] == [[1.56], [1.56]]


def test_the_running_mean_is_over_an_eighth_of_the_epochs():
    errors = np.random.default_rng(0).random((2, 61))
    smooth = running_mean(errors)
    np.testing.assert_array_equal(smooth[:, :16], errors[:, :16])
    np.testing.assert_allclose(smooth[:, 40], errors[:, 38:43].mean(axis=1))
    np.testing.assert_allclose(smooth[:, -1], errors[:, -4:].mean(axis=1))


def test_methods_are_told_apart_and_longer_runs_have_the_pace_of_a_timed_one():
    timed = {"GAR": runs([0.9]), "b": runs([0.2]), "a": runs([0.1])}
    longer = {"a": runs(epochs=8, lost=[1]), "safe": runs(epochs=6)}
    lines = error_over_time(timed, longer, "MNIST").axes[0].lines
    looks = {}
    for line in lines:
        method = line.get_label().split(",")[0]
        look = line.get_color(), line.get_marker()
        assert looks.setdefault(method, look) == look
    colors, markers = zip(*looks.values(), strict=True)
    assert len({*colors}) == len({*markers}) == 4
    # 10 minutes of 4 epochs are 20 of 8.
    assert {line.get_label(): line.get_xdata()[-1] for line in lines} == {
        "GAR, 4 epochs, 1 seed": 10,
        "a, 4 epochs, 1 seed": 10,
        "a, 8 epochs, 2 seeds, 1 lost a class": 20,
        "safe, 6 epochs, 2 seeds, timed as GAR": 15,
        "b, 4 epochs, 1 seed": 10,
    }


def test_a_cell_of_the_summary():
    cells = {"MNIST, 100 labels": runs((0.01, 0.02, 0.12), [2]), "b": runs()}
    (ax,) = ours_beside_paper(cells).axes
    crosses = [line for line in ax.lines if line.get_marker() == "X"]
    assert [float(line.get_xdata()[0]) for line in crosses] == [12]
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == ["MNIST,\n100 labels", "b"]
