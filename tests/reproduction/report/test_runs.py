"""The frame of runs, estimates of errors, and which runs lost a class."""

import math
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from made_records import write_record

from reproduction import records, report
from reproduction.report import run_frame
from reproduction.report.estimates import Estimate, between, equivalence
from reproduction.settings import TABLE_1, DataSettings

MNIST = replace(TABLE_1[100], epochs=20)


def test_an_estimate_by_hand():
    # Mean 3; squares of the distances 4 + 1 + 0 + 1 + 4 = 10, over 4.
    estimate = Estimate.of([1, 2, 3, 4, 5])
    assert estimate == (3, pytest.approx(math.sqrt(2.5)), 5)
    assert str(estimate) == "3.00 ± 1.58 (n = 5)"
    assert str(Estimate.of([1.56])) == "1.56 (n = 1)"
    assert Estimate.of([-1.5]).text("+") == "-1.50"


def test_intervals_by_hand():
    # t of 2 degrees of freedom is 4.3027.
    half = 4.3027 / math.sqrt(3)
    found = Estimate.of([1, 2, 3]).interval()
    assert found == pytest.approx((2 - half, 2 + half), abs=1e-4)
    assert Estimate.of([1]).interval() is None
    assert between(None) == "-"
    assert Estimate.of([2, 2]).interval() == (2, 2)


def test_equivalence_by_hand():
    # Variances of 1 each: an error of √2, 6 degrees of freedom, and t of 1.9432
    # for 5 % on one side.
    half = 1.9432 * math.sqrt(2)
    ours, theirs = Estimate(4.0, 2.0, 4), Estimate(3.0, 2.0, 4)
    difference, interval, answer = equivalence(ours, theirs, 1.01 + half)
    assert difference == 1
    assert interval == pytest.approx((1 - half, 1 + half), abs=1e-4)
    assert answer == "yes"
    assert equivalence(theirs, ours, 1.01 + half)[2] == "yes"
    # An end of the interval is outside, and the mean.
    for margin in (0.99 + half, 0.5):
        assert equivalence(ours, theirs, margin)[2] == "not told"
    # And all of it, around 10 - 3.
    far = ours._replace(mean=10.0)
    assert equivalence(far, theirs, 7.01 - half)[2] == "not told"
    assert equivalence(far, theirs, 6.99 - half)[2] == "no"
    assert equivalence(theirs, far, 6.99 - half)[2] == "no"


def test_a_run_is_a_row(tmp_path):
    changed = DataSettings(wrong_labels=0.2)
    e = replace(MNIST, stage_2_rate=0.1, data_settings=changed)
    curve = {
        "seconds": [None, 3600.0, *[36.0] * 19],
        "classes_in_use": [None, *[10.0] * 19, 9.0],
    }
    path = write_record(tmp_path, e, 3, chosen_error=0.0498, curve=curve)
    record = records.read(path)
    record["environment"]["threads"] = 1
    other = {"device": "Other", "device_kind": "cpu", "cores": 4}
    record["resumed_in"] = [other]
    record["warnings"] = ["Stage 2 has lost class 2"]
    records.write(path, record)
    (row,) = report.read_runs(tmp_path).itertuples()
    assert tmp_path / row.path == path
    assert (row.cell, row.seed, row.title) == ("mnist-100", 3, "MNIST")
    assert row.differs == "wrong labels 0.2, stage 2 rate 0.1"
    assert (row.stage_1, row.chosen, row.last) == pytest.approx((10, 4.98, 3))
    assert row.last_20 == pytest.approx((19 * 4.98 + 3) / 20)
    # An epoch took 36 seconds, but for one with a pause.
    assert (row.chosen_epoch, row.val_last, row.minutes) == (1, 3, 14)
    assert (row.device, row.classes_in_use) == ("CPU", 9)
    assert row.hardware == "Some CPU (1 of 2 cores) / Other (4 cores)"
    assert row.warnings == record["warnings"]
    # So are the machines of a stage 1 that was shared.
    gpu = {"device": "GPU", "device_kind": "gpu", "cores": 16}
    made_in = {"environment": record["environment"], "resumed_in": [gpu]}
    record["pretraining"] |= made_in
    records.write(path, record)
    assert report.read_runs(tmp_path).device.tolist() == ["CPU and GPU"]
    # Settings are flat, and as a whole.
    assert (row.wrong_labels, row.epochs) == (0.2, 20)
    assert row.experiment.stage_2_rate == 0.1
    assert row.curve["epoch"] == [*range(21)]


def test_a_group_in_words(tmp_path):
    for seed, lost in ((0, False), (1, True), (2, False), (7, False)):
        write_record(tmp_path, MNIST, seed, lost=lost)
    write_record(tmp_path, MNIST.with_term(balance=0.5))
    frame = report.read_runs(tmp_path)
    g = run_frame.largest(frame)
    assert run_frame.like(frame, replace(MNIST, precision="bfloat16")).empty
    alike = run_frame.like(frame, replace(MNIST, epochs=3), ["epochs"])
    assert [*alike.path] == [*g.path]
    assert (run_frame.seeds(g), run_frame.seeds(g[:3])) == ("0-2,7", "0-2")
    assert run_frame.of_known(g.lost) == "1 of 4"
    assert run_frame.of_known(g.warnings) == "-"
    # Links are to the folder, or to a run on its own.
    folder = Path(g.path.iloc[0]).parent.as_posix()
    assert run_frame.linked("a", g) == f"[a]({folder})"
    both = pd.concat([g, frame.drop(g.index)])
    (alone,) = frame.drop(g.index).path
    assert run_frame.linked("a", both) == f"a ([1]({folder}), [2]({alone}))"


def test_what_a_record_says_of_classes(tmp_path):
    for seed, (lost, dead) in enumerate(
        # In the last one a class that has no name.
        [([2], [2]), ([], [2]), (None, None), ([None], [])]
    ):
        errors = {"stage_1": 0.25, "last": 0.125}
        said = {"lost_classes": lost, "dead_outputs": dead}
        also = {**said, "balanced_errors": errors}
        write_record(tmp_path, MNIST, seed, also=also)
    frame = report.read_runs(tmp_path)
    assert [*frame.lost] == [True, False, None, True]
    assert [*frame.emptied] == [True, True, None, False]
    assert {*frame.balanced_stage_1} == {25}
    assert {*frame.balanced_last} == {12.5}
