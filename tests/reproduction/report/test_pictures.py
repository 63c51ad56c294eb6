"""The pictures of the report: the numbers behind them, and that they draw."""

import re
from dataclasses import replace

import numpy as np
from made_records import write_record

from reproduction import report
from reproduction.report.plots.curves import (
    error_over_time,
    learning_curves,
    running_mean,
)
from reproduction.report.plots.forest import ours_and_paper
from reproduction.report.published import TABLES
from reproduction.settings import TABLE_1

FEW = {m: replace(e, epochs=4) for m, e in TABLE_1.items()}


def write(folder, experiment, errors, lost=()):
    """Records of seeds 0, 1, ... that begin with 10 % and end with 3 %."""
    for seed, error in enumerate(errors):
        lose = seed in lost
        write_record(folder, experiment, seed, chosen_error=error, lost=lose)


def test_a_run_that_lost_a_class_is_dashed_and_counts_in_the_mean(tmp_path):
    write(tmp_path, FEW[100], (0.01, 0.3, 0.02), lost=[1])
    write(tmp_path, FEW[600], (0.01, 0.03), lost=[0, 1])
    frame = report.read_runs(tmp_path)
    curves, papers = learning_curves(TABLES["table1"], frame).axes
    assert curves.get_title("left") == "MNIST"
    *seeds, mean, _, _, every = curves.lines
    dashed = [line for line in seeds if line.get_linestyle() == "--"]
    np.testing.assert_allclose(dashed[0].get_ydata(), [10, 30, 30, 30, 3])
    np.testing.assert_allclose(mean.get_ydata(), [10, 11, 11, 11, 3])
    assert mean.get_label() == (
        "100 labels\n3.00 % around epoch 4, 3 seeds\n"
        "3.00 % without seed 1, which lost a class"
    )
    np.testing.assert_allclose(every.get_ydata(), [10, 2, 2, 2, 3])
    assert every.get_label() == (
        "600 labels\n3.00 % around epoch 4, 2 seeds\nlost a class: seeds 0-1"
    )
    marks = [line for line in papers.lines if line.get_marker() == "_"]
    assert [line.get_ydata().tolist() for line in marks] == [[1.56], [1.15]]


def test_the_running_mean_is_over_an_eighth_of_the_epochs():
    errors = np.random.default_rng(0).random((2, 61))
    smooth = running_mean(errors)
    np.testing.assert_array_equal(smooth[:, :16], errors[:, :16])
    np.testing.assert_allclose(smooth[:, 40], errors[:, 38:43].mean(axis=1))
    np.testing.assert_allclose(smooth[:, -1], errors[:, -4:].mean(axis=1))


def test_methods_are_told_apart_and_longer_runs_have_the_pace_of_a_timed_one(
    tmp_path,
):
    gar = FEW[100]
    for e, errors in (
        (gar, [0.9]),
        (gar.with_method("pi"), [0.2]),
        (gar.with_method("vat"), [0.1]),
        (replace(gar.with_method("safe-gar"), epochs=6), [0.05, 0.05]),
    ):
        write(tmp_path, e, errors)
    longer = replace(gar.with_method("vat"), epochs=8)
    write(tmp_path, longer, (0.01, 0.03), lost=[1])
    lines = error_over_time(report.read_runs(tmp_path)).axes[0].lines
    looks = {}
    for line in lines:
        method = re.split(r", \d", line.get_label())[0]
        look = line.get_color(), line.get_marker()
        assert looks.setdefault(method, look) == look
    colors, markers = zip(*looks.values(), strict=True)
    assert len({*colors}) == len({*markers}) == 4
    # 36 seconds an epoch.
    ends = {line.get_label(): line.get_xdata()[-1].round(1) for line in lines}
    assert ends == {
        "GAR, 4 epochs, 1 seed": 2.4,
        "VAT, 4 epochs, 1 seed": 2.4,
        "VAT, 8 epochs, 2 seeds, 1 lost a class": 4.8,
        "GAR, safe default, 6 epochs, 2 seeds, timed as GAR": 3.6,
        "Π model, 4 epochs, 1 seed": 2.4,
    }


def test_a_cell_of_the_summary(tmp_path):
    write(tmp_path, FEW[100], (0.01, 0.02, 0.12), lost=[2])
    write(tmp_path, FEW[600], [0.01])
    (ax,) = ours_and_paper(report.read_runs(tmp_path)).axes
    crosses = [line for line in ax.lines if line.get_marker() == "X"]
    assert [float(line.get_xdata()[0]) for line in crosses] == [12]
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == ["MNIST,\n100 labels", "MNIST,\n600 labels"]
