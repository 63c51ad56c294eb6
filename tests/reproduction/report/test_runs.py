"""The frame of runs, estimates of errors, and which runs lost a class."""

import math
from dataclasses import replace

import numpy as np
import pytest
from made_records import make_record, write_record

from gar_keras import expected_balance
from reproduction import records, report
from reproduction.report import run_frame
from reproduction.report.estimates import Estimate, between
from reproduction.report.lost_classes import lost_class
from reproduction.settings import TABLE_1, DataSettings

MNIST = replace(TABLE_1[100], epochs=20)


def test_an_estimate_by_hand():
    # Mean 3; squares of the distances 4 + 1 + 0 + 1 + 4 = 10, over 4.
    estimate = Estimate.of([1, 2, 3, 4, 5])
    assert estimate.mean == 3
    assert estimate.deviation == pytest.approx(math.sqrt(2.5))
    assert str(estimate) == "3.00 ± 1.58 (n = 5)"
    assert str(Estimate.of([1.56])) == "1.56 (n = 1)"
    assert Estimate.of([-1.5]).text("+") == "-1.50"


def test_intervals_by_hand():
    # t of 2 degrees of freedom is 4.303.
    low, high = Estimate.of([1, 2, 3]).interval()
    assert (low, high) == pytest.approx(
        (2 - 4.3027 / math.sqrt(3), 2 + 4.3027 / math.sqrt(3)), abs=1e-4
    )
    ours, paper = Estimate(4.0, 2.0, 4), Estimate(1.0, 2.0, 4)
    # Variances of 1 each: 2 * 9 / 3 = 6 degrees of freedom, t = 2.4469.
    low, high = ours.interval_above(paper)
    assert (low, high) == pytest.approx(
        (3 - 2.4469 * math.sqrt(2), 3 + 2.4469 * math.sqrt(2)), abs=1e-4
    )
    alone = Estimate.of([1])
    assert alone.interval() is alone.interval_above(paper) is None
    assert between(None) == "-"
    assert Estimate.of([2, 2]).interval() == (2, 2)


@pytest.mark.parametrize(
    ("prior", "same"), [(None, True), ([0.11] * 9 + [0.01], False)]
)
def test_only_with_uneven_shares_is_an_unprotected_run_another(
    tmp_path, prior, same
):
    e = replace(MNIST, method="safe-gar", protects_rare_classes=False)
    path = write_record(tmp_path, e, also={"predicted_prior": prior})
    today = replace(e, protects_rare_classes=True)
    frame = report.read_runs(tmp_path)
    assert len(run_frame.like(frame, today)) == same
    assert frame.path.item() == path.relative_to(tmp_path).as_posix()


def test_a_run_is_a_row(tmp_path):
    changed = DataSettings(wrong_labels=0.2)
    e = replace(MNIST, stage_2_rate=0.1, data_settings=changed)
    path = write_record(tmp_path, e, seed=3, chosen_error=0.0498)
    record = records.read(path)
    record["environment"] |= {"device_kind": "cpu", "threads": 1}
    record["resumed_in"] = [{"device": "Other", "cores": 4}]
    record["warnings"] = ["Stage 2 has lost class 2"]
    records.write(path, record)
    (row,) = report.read_runs(tmp_path).itertuples()
    assert tmp_path / row.path == path
    assert (row.cell, row.seed, row.title) == ("mnist-100", 3, "MNIST")
    assert row.differs == "wrong labels 0.2, stage 2 rate 0.1"
    assert (row.stage_1, row.chosen, row.last) == pytest.approx((10, 4.98, 3))
    assert row.last_20 == pytest.approx((19 * 4.98 + 3) / 20)
    assert (row.chosen_epoch, row.val_last, row.minutes) == (1, 3, 12)
    assert row.hardware == "Some CPU (1 of 2 cores) / Other (4 cores)"
    assert row.warnings == record["warnings"]
    # Settings are flat, and as a whole.
    assert (row.wrong_labels, row.epochs) == (0.2, 20)
    assert row.experiment.stage_2_rate == 0.1
    assert row.curve["epoch"] == [*range(21)]


def test_a_group_in_words(tmp_path):
    for seed, lost in ((0, False), (1, True), (2, False), (7, False)):
        write_record(tmp_path, MNIST, seed, lost=lost)
    write_record(tmp_path, replace(MNIST, balance=0.5))
    frame = report.read_runs(tmp_path)
    g, _ = sorted(run_frame.groups(frame), key=len, reverse=True)
    assert run_frame.like(frame, replace(MNIST, precision="bfloat16")).empty
    alike = run_frame.like(frame, replace(MNIST, epochs=3), ["epochs"])
    assert [*alike.path] == [*g.path]
    assert (run_frame.seeds(g), run_frame.seeds(g[:3])) == ("0,1,2,7", "0-2")
    assert (run_frame.lost(g), run_frame.warned(g)) == ("1 of 4", "-")
    assert [*run_frame.without_lost(g).seed] == [0, 2, 7]
    assert run_frame.without_lost(g[:1]).empty
    (folder,) = run_frame.links(g)
    assert g.path.str.startswith(f"{folder}/seed").all()
    assert run_frame.links(g[:1]) == [f"{folder}/seed0.json"]


# Lost classes, by what a record holds.


def with_logits(*predictions):
    logits = {k: np.eye(3)[p] for k, p in enumerate(predictions)}
    return records.Arrays(np.array([0, 1, 2]), logits)


@pytest.mark.parametrize(
    ("predictions", "expected"),
    [
        (([0, 1, 2], [0, 1, 2]), False),
        (([0, 1, 2], [0, 1, 1]), True),
        # It came back.
        (([0, 1, 2], [0, 1, 1], [2, 1, 0]), False),
        # It was missing from stage 1 on: GAR has not lost it.
        (([0, 1, 1], [0, 1, 1]), False),
    ],
)
def test_predictions_tell(predictions, expected):
    record = make_record(MNIST, lost=not expected)
    assert lost_class(record, with_logits(*predictions)) is expected
    # What the run noted itself comes first.
    record["lost_classes"] = [] if expected else [2]
    assert lost_class(record, with_logits(*predictions)) is not expected


def test_the_first_epoch_by_step_tells(tmp_path):
    for seed, energies in enumerate(([1e-5, 1e-5], [0.0, 4.0], [4.0, 4.0])):
        v = [[5.0, energy, 6.0] for energy in energies]
        write_record(tmp_path, replace(MNIST, epochs=1), seed, v=v)
    frame = report.read_runs(tmp_path)
    assert [*frame.lost] == [True, False, False]
    assert [*frame.emptied] == [True, True, False]


# The balance is no higher where a class was lost.
LIMIT = expected_balance(128, 9) * 8 / 9


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ({"balance": LIMIT - 0.01}, True),
        ({"balance": LIMIT + 0.01}, False),
        # The classes in use tell more than the balance.
        ({"balance": 0.5, "classes_in_use": 10.0}, False),
        ({"balance": 0.9, "classes_in_use": 9.0}, True),
    ],
)
def test_the_end_of_the_curve_tells(ends, expected):
    record = make_record(MNIST)
    curve = record["regularization"]["curve"]
    for name, value in ends.items():
        curve.setdefault(name, [None] * 21)[-1] = value
    assert lost_class(record, None) is expected


@pytest.mark.parametrize(
    ("changes", "baseline_error"),
    [
        # The mean of the first epoch is low in sound runs too.
        ({"epochs": 1}, 0.1),
        ({"data_settings": DataSettings(shares=(0.19, *[0.09] * 9))}, 0.1),
        ({"class_prior": "labels"}, 0.1),
        ({"ablation": "unrectified"}, 0.1),
        ({"dataset": "mnist-pairs"}, 0.1),
        # Nothing was learnt in stage 1, or there was none.
        ({}, 0.9),
        ({"method": "label-spreading"}, None),
    ],
)
def test_what_cannot_tell_says_so(changes, baseline_error):
    experiment = replace(MNIST, **changes)
    record = make_record(experiment, baseline_error=baseline_error, lost=True)
    assert lost_class(record, None) is None
