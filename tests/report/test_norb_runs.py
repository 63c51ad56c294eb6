"""All runs on NORB: their last epochs, and the mean of the test images."""

from dataclasses import replace

from made_records import make_record
from pages import without_links

from gar_keras.experiments.settings import NORB_JPEG, TABLE_1
from gar_keras.report.norb import norb_markdown

PLAIN = replace(NORB_JPEG[1000], epochs=60)


def made(experiment, *errors, seed=0, own=None):
    """A record with the last of these test errors in all later epochs."""
    record = make_record(experiment, seed, title="NORB")
    curve = record["regularization"]["curve"]
    rest = experiment.epochs + 1 - len(errors)
    curve["test_error"] = [*errors, *errors[-1:] * rest]
    if own is not None:
        curve["test_error_own_mean"] = [e + own for e in curve["test_error"]]
    return record


def rows(*records):
    lines = without_links(norb_markdown([*records])).splitlines()[2:]
    table = [line.strip("| ").split(" | ") for line in lines if line[:1] == "|"]
    return [cells[1:] for cells in table]


def test_the_mean_of_the_last_20_epochs_is_beside_the_chosen_and_the_last():
    # Epoch 1 is chosen.
    errors = [0.2, 0.1, *[0.5] * 39, *[0.2] * 10, *[0.3] * 10]
    (row,) = rows(made(PLAIN, *errors), make_record(TABLE_1[100]))
    assert row[:2] == ["the training images'", "0"]
    figures = ["20.00", "10.00", "30.00", "25.00"]
    assert row[2:6] == [f"{figure} (n = 1)" for figure in figures]
    assert row[6:] == ["-", "-"]
    (row,) = rows(made(replace(PLAIN, epochs=10), 0.2, 0.1))
    assert row[5] == "-"


def test_the_own_mean_is_set_beside_the_same_weights():
    # An older record has none.
    records = [made(PLAIN, 0.1, own=0.01), made(PLAIN, 0.2, seed=1)]
    first, second = rows(*records)
    assert first[5:] == ["15.00 ± 7.07 (n = 2)", "-", "-"]
    assert second[:2] == ["their own", "0"]
    assert second[5:] == ["11.00 (n = 1)", "10.00 (n = 1)", "+1.00 (n = 1)"]


def test_what_is_changed_is_set_beside_the_paper_s_after_as_many_steps():
    # Of 60 epochs, the last 20 of the first 30 have an error of 20 %.
    errors = [0.1, *[0.4] * 10, *[0.2] * 20, 0.3]
    plain = [made(PLAIN, *errors), made(PLAIN, *errors, seed=1)]
    slow = made(replace(PLAIN, stage_2_rate=0.002, epochs=30), 0.15)
    *_, row = rows(*plain, slow)
    assert row[5:] == ["15.00 (n = 1)", "20.00 (n = 1)", "-5.00 (n = 1)"]
    # 10 epochs of b_U = 32 are as 30 of b_U = 96, and 7 of them as 20.
    large = replace(
        PLAIN, labeled_per_batch=96, unlabeled_per_batch=32, epochs=10
    )
    *_, row = rows(*plain, made(large, 0.9, 0.9, 0.9, 0.9, 0.25))
    assert row[5:] == ["25.00 (n = 1)", "20.00 (n = 1)", "+5.00 (n = 1)"]
    # Another stage 1, or none of as many epochs.
    for change in ({"pretrain_epochs": 300}, {"epochs": 90}):
        other = replace(PLAIN, camera_stretch=True, **change)
        *_, row = rows(*plain, made(other, 0.1))
        assert row[6:] == ["-", "-"]
