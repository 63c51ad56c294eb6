"""Which runs lost a class, and which class is taken for which."""

from dataclasses import replace

import numpy as np
import pytest
from made_records import make_record, write_record

from gar_keras import report
from gar_keras.experiments import records
from gar_keras.experiments.settings import NORB_JPEG, TABLE_1, DataConditions
from gar_keras.report import confusion, lost
from gar_keras.report.published import TABLE_1 as PAPER_TABLE_1

MNIST = replace(TABLE_1[100], epochs=4)
LABELS = np.array([0, 0, 1, 1, 2])


def keep(path, predictions, labels=LABELS, n=5, **more):
    """Writes logits beside a record: one-hot, of the predictions by epoch."""
    kept = {f"epoch_{k}": np.eye(n)[p] for k, p in predictions.items()}
    np.savez(path.with_suffix(".npz"), labels=labels, **kept, **more)


def with_balance(*balance, experiment=MNIST, **results):
    record = make_record(experiment, **results)
    record["regularization"]["curve"]["balance"] = [None, *balance]
    return record


@pytest.mark.parametrize(
    ("predictions", "expected"),
    [
        ({0: [0, 0, 1, 1, 2], 4: [0, 0, 1, 1, 2]}, False),
        ({0: [0, 0, 1, 1, 2], 4: [0, 0, 1, 1, 1]}, True),
        # It came back.
        ({0: [0, 0, 1, 1, 2], 1: [0, 0, 1, 1, 1], 4: [0, 2, 1, 1, 1]}, False),
        # It was missing from stage 1 on: GAR has not lost it.
        ({0: [0, 0, 1, 1, 1], 4: [0, 0, 1, 1, 1]}, False),
        # Epochs in the order of their number, not of their names.
        ({0: [0, 0, 1, 1, 2], 10: [0, 0, 1, 1, 1], 4: [0, 0, 1, 1, 2]}, True),
    ],
)
def test_predictions_tell(tmp_path, predictions, expected):
    path = write_record(tmp_path, MNIST)
    keep(path, predictions)
    record = records.read(path)
    assert report.lost_class(record, tmp_path) is expected


def test_the_balance_tells_where_no_predictions_were_kept(tmp_path):
    from gar_keras import expected_balance

    limit = lost.balance_without_a_class(128, 10)
    assert limit == pytest.approx(expected_balance(128, 9) * 8 / 9)
    below = with_balance(0.7, 0.8, 0.8, limit - 0.01)
    above = with_balance(0.7, 0.8, 0.8, limit + 0.01)
    assert report.lost_class(below) is report.lost_class(below, tmp_path)
    assert report.lost_class(below) is True
    assert report.lost_class(above) is False
    # Of five classes it would be lower.
    five = replace(MNIST, world=DataConditions(known_classes=5))
    assert report.lost_class(with_balance(*[0.8] * 4, experiment=five)) is False


def test_classes_in_use_tell_more_than_the_balance():
    record = with_balance(*[0.9] * 4)
    curve = record["regularization"]["curve"]
    curve["classes_in_use"] = [None, 10.0, 10.0, 9.0, 9.0]
    assert report.lost_class(record) is True
    curve["classes_in_use"][-1] = 10.0
    curve["balance"][-1] = 0.7
    assert report.lost_class(record) is False


@pytest.mark.parametrize(
    "record",
    [
        # The mean of the first epoch is low in sound runs too.
        with_balance(0.7, experiment=replace(MNIST, epochs=1)),
        with_balance(
            *[0.7] * 4,
            experiment=replace(
                MNIST, world=DataConditions(shares=(0.19, *[0.09] * 9))
            ),
        ),
        with_balance(
            *[0.7] * 4, experiment=replace(MNIST, class_prior="labels")
        ),
        with_balance(
            *[0.7] * 4, experiment=replace(MNIST, dataset="mnist-pairs")
        ),
        # Nothing was learnt in stage 1.
        with_balance(*[0.0] * 4, baseline_error=0.9),
        # Graph methods have no stage 1.
        make_record(
            replace(MNIST, method="label-spreading"), baseline_error=None
        ),
    ],
    ids=["short", "shares", "prior", "pairs", "chance", "no stage 1"],
)
def test_what_cannot_tell_says_so(record):
    assert report.lost_class(record) is None
    assert lost.lost_text([record]) == "-"


def test_runs_are_counted_of_those_that_can_tell():
    found = [
        with_balance(*[0.9] * 4),
        with_balance(*[0.7] * 4),
        with_balance(*[0.7] * 4, baseline_error=0.9),
    ]
    assert lost.lost_text(found) == "1 of 2"
    note = report.table_notes(PAPER_TABLE_1, found)[0]
    assert "runs that lost a class: 1 of 2" in note


def test_the_largest_confusion_is_followed_back(tmp_path):
    path = write_record(
        tmp_path, replace(NORB_JPEG[300], epochs=4), title="NORB"
    )
    # Car 4, truck 3: both cars are taken for trucks in the end.
    labels = np.array([0, 3, 4, 4])
    predictions = {0: [1, 3, 3, 4], 1: [1, 4, 3, 4], 4: [0, 3, 3, 3]}
    keep(path, predictions, labels)
    write_record(tmp_path, MNIST)
    text = report.confusions(records.read_all(tmp_path), tmp_path)
    rows = [line.split(" | ") for line in text.strip().splitlines()[2:]]
    link = path.relative_to(tmp_path)
    run = f"[NORB, m_L = 300, 2000 + 4 epochs, seed 0]({link})"
    assert rows[0][0] == f"| {run}"
    assert [row[1:] for row in rows] == [
        ["0", "2 of 4", "car taken for truck: 1 of 2", "1 |"],
        ["1", "3 of 4", "car taken for truck: 1 of 2", "2 |"],
        ["4", "2 of 4", "car taken for truck: 2 of 2", "0 |"],
    ]
    assert report.confusions([], tmp_path) == ""
    # All that is kept are these four images.
    rows = confusion.matrices(records.read_all(tmp_path), tmp_path).splitlines()
    assert rows[0].endswith("| as truck | as car | error in percent |")
    assert rows[-2:] == [
        f"| {run} | 4 | truck | 0 | 0 | 0 | 1 | 0 | 0.00 |",
        f"| {run} | 4 | car | 0 | 0 | 0 | 2 | 0 | 100.00 |",
    ]
    assert " | human | 0 | 0 | 0 | 0 | 0 | - |" in rows[3]


def test_digits_are_confused_at_the_chosen_epoch(tmp_path):
    """Of the experiment that Table 1 shows, the one of most epochs."""
    for e in (replace(MNIST, epochs=3), replace(MNIST, epochs=4)):
        path = write_record(tmp_path, e)
        # Of three 2s, two are taken for 1s at the chosen epoch.
        keep(
            path,
            {0: [0, 1, 1], 4: [0, 1, 2]},
            np.array([0, 2, 2]),
            test_labels=np.array([0, 1, 2, 2, 2]),
            chosen_probabilities=np.eye(3)[[2, 1, 1, 1, 2]],
        )
    # Without predictions, and of a cell that no table has.
    write_record(tmp_path, replace(MNIST, epochs=4), seed=1)
    write_record(tmp_path, replace(MNIST, num_labeled=50, epochs=4))
    found = records.read_all(tmp_path)
    _, _, row = confusion.digits(found, tmp_path).splitlines()
    link = path.relative_to(tmp_path)
    assert row == (
        f"| [MNIST, m_L = 100, 2000 + 4 epochs, seed 0]({link}) | 1 | "
        "3 of 5 | 2 taken for 1: 2 of 3 | 1 | "
        "2 at epoch 0, 1 at 4, of 3 |"
    )
    assert confusion.digits(found[:0], tmp_path) == ""


def test_a_confusion_matrix_is_of_the_chosen_epoch(tmp_path):
    path = write_record(tmp_path, replace(NORB_JPEG[300], epochs=4))
    kept = {
        "test_labels": np.array([4, 4, 4, 4]),
        "chosen_probabilities": np.eye(5)[[3, 4, 4, 4]],
    }
    keep(path, {0: [0], 4: [1]}, np.array([0]), **kept)
    text = confusion.matrices(records.read_all(tmp_path), tmp_path)
    assert text.splitlines()[-1].endswith(
        "| 1 | car | 0 | 0 | 0 | 1 | 3 | 25.00 |"
    )
