"""What the README shows of the records, from made-up ones."""

from dataclasses import replace

from made_records import make_record

from gar_keras.experiments.settings import TABLE_1
from gar_keras.experiments.studies import FASTER, SMALL_BATCHES
from gar_keras.report import summary
from gar_keras.report.overview import rows_of


def runs(*chosen_errors):
    return [
        make_record(TABLE_1[100], seed, chosen_error=error)
        for seed, error in enumerate(chosen_errors)
    ]


def seeds(found):
    row = rows_of(summary.summary_markdown(found))[0].row
    return row[summary.CELLS_HEADING.index("seeds")]


def test_the_headline():
    assert summary.headline_markdown(runs(0.015, 0.017)) == (
        "MNIST with 100 labels, without augmentation: test error 10.0 → "
        "**1.6 %** (2 seeds, 200 epochs of GAR). The paper: 14.8 → 1.6 % "
        "(10 seeds).\n"
    )
    assert seeds(runs(0.015, 0.017)) == "2"


def test_the_headline_ends_with_the_default_steps_and_small_batches():
    arm = FASTER.arms[SMALL_BATCHES]
    small = [make_record(arm, seed, chosen_error=0.018) for seed in range(3)]
    assert summary.headline_markdown([*runs(0.015), *small]).endswith(
        " (10 seeds). With the default steps of `regularize` and batches of "
        "32: **1.8 %** (3 seeds, 20 epochs).\n"
    )
    assert summary.headline_markdown(small) == ""


def test_a_run_that_lost_a_class_counts_and_is_marked():
    found = runs(0.015, 0.017, 0.13)
    found[2]["regularization"]["curve"]["balance"][-1] = 0.5
    assert (
        "**5.4 %** (3 seeds, 200 epochs of GAR; 1.6 % in the 2 that lost no "
        "class). The paper"
    ) in summary.headline_markdown(found)
    assert seeds(found) == "3, 1 lost a class"


def test_methods_in_order_are_those_with_100_labels_of_mnist():
    few, many = (
        [
            make_record(replace(TABLE_1[m], epochs=4, method=method))
            for method in ("gar", "pi")
        ]
        for m in (100, 1000)
    )
    many.append(make_record(replace(TABLE_1[1000], epochs=4, method="vat")))
    shown = summary.methods_markdown(few)
    assert "Π model" in shown
    assert summary.methods_markdown([*many, *few]) == shown
    assert summary.methods_markdown(many) == ""
    # Without a network there is no stage 1 to beat.
    alone = [make_record(replace(TABLE_1[100], method="hagr"))]
    assert summary.methods_markdown(alone) == ""
