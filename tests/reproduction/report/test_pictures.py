"""The pictures of the report: the numbers behind them, and that they draw."""

from dataclasses import replace

import numpy as np
from made_records import write_record

from reproduction import report
from reproduction.report.pictures import (
    learning_curves,
    ours_and_paper,
    running_mean,
)
from reproduction.report.published import TABLES
from reproduction.settings import TABLE_1

FEW = {m: replace(e, epochs=4) for m, e in TABLE_1.items()}


def write(folder, experiment, errors, lost=()):
    """Records of seeds 0, 1, ... that begin with 10 % and end with 3 %."""
    for seed, error in enumerate(errors):
        lose = seed in lost
        write_record(folder, experiment, seed, chosen_error=error, lost=lose)


def test_each_run_has_a_line_dashed_where_a_class_was_lost(tmp_path):
    write(tmp_path, FEW[100], (0.01, 0.3, 0.02), lost=[1])
    write(tmp_path, FEW[600], [0.02], lost=[0])
    frame = report.read_runs(tmp_path)
    curves, papers = learning_curves(TABLES["table1"], frame).axes
    few, *seeds, more, lost = curves.lines
    assert [line.get_linestyle() for line in seeds] == ["-", "--", "-"]
    np.testing.assert_allclose(seeds[1].get_ydata(), [10, 30, 30, 30, 3])
    assert few.get_label() == "MNIST, 100 labels, 3 runs"
    assert more.get_label() == "MNIST, 600 labels, 1 run"
    assert seeds[1].get_label() == lost.get_label() == "lost a class"
    assert {line.get_color() for line in seeds} == {few.get_color()}
    assert lost.get_color() == more.get_color() != few.get_color()
    marks = [line for line in papers.lines if line.get_marker() == "_"]
    assert [line.get_ydata().tolist() for line in marks] == [[1.56], [1.15]]
    assert learning_curves(TABLES["table2"], frame) is None


def test_the_running_mean_is_over_an_eighth_of_the_epochs():
    errors = np.random.default_rng(0).random(61)
    smooth = running_mean(errors)
    np.testing.assert_array_equal(smooth[:16], errors[:16])
    np.testing.assert_allclose(smooth[40], errors[38:43].mean())
    np.testing.assert_allclose(smooth[-1], errors[-4:].mean())


def test_a_cell_of_the_summary(tmp_path):
    write(tmp_path, FEW[100], (0.01, 0.02, 0.12), lost=[2])
    write(tmp_path, FEW[600], [0.01])
    (ax,) = ours_and_paper(report.read_runs(tmp_path)).axes
    crosses = [line for line in ax.lines if line.get_marker() == "X"]
    assert [float(line.get_xdata()[0]) for line in crosses] == [12]
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == [
        "MNIST, 100 labels\n2000 + 4 epochs, CPU",
        "MNIST, 600 labels\n2000 + 4 epochs, CPU",
    ]
