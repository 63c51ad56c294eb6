"""The accuracy over the examples with a label, and the classes in use."""

import numpy as np
import pytest

from gar_keras.metrics import ClassesInUse, SparseCategoricalAccuracy

LOGITS = np.array([[2, 1, 0], [0, 2, 1], [1, 0, 2], [5, 4, 3]], "float32")


def accuracy(y, logits=LOGITS, weights=None, **options):
    metric = SparseCategoricalAccuracy(**options)
    metric.update_state(np.array(y), logits, sample_weight=weights)
    return float(metric.result())


@pytest.mark.parametrize(
    ("y", "weights", "ignored", "expected"),
    [
        ([0, 1, 2, 0], None, -1, 1),
        ([0, 1, 0, 1], None, -1, 0.5),
        ([0, -1, 0, -1], None, -1, 0.5),
        ([-1, 1, -1, -1], None, -1, 1),
        ([-1, -1, -1, -1], None, -1, 0),
        ([2, 2, 2, 0], None, 2, 1),
        ([1, 0, 2, 2], None, 2, 0),
        # Right with 3, wrong with 1 and with 1, and one without a label.
        ([0, 0, 0, -1], [3, 1, 1, 7], -1, 3 / 5),
        # Without a weight a label may be anything.
        ([0, 0, 9, -2], [1, 1, 0, 0], -1, 1 / 2),
    ],
)
@pytest.mark.parametrize("shape", [(4,), (4, 1)])
@pytest.mark.parametrize("dtype", ["int64", "float32"])
def test_accuracy_of_what_has_a_label(
    y, weights, ignored, expected, shape, dtype
):
    y = np.array(y, dtype).reshape(shape)
    if weights:
        weights = np.reshape(weights, shape)
    found = accuracy(y, weights=weights, ignore_class=ignored)
    assert found == pytest.approx(expected)


def test_largest_label_of_a_dtype_without_a_sign_is_a_class():
    largest = 255
    # Right, of two.
    logits = np.zeros((2, largest + 1), "float32")
    logits[:, largest] = 1
    y = np.array([largest, 0], "uint8")
    assert accuracy(y, logits) == 0.5
    assert accuracy(y, logits, ignore_class=largest) == 0.0


@pytest.mark.parametrize(
    "y",
    [[0, np.nan], np.array([0, -1]).astype("uint8"), [0, -2], [0, 3], [0, 0.5]],
    ids=["NaN", "-1 in uint8", "another mark", "no output", "a half"],
)
def test_accuracy_of_a_label_that_is_none_is_nan(y):
    assert np.isnan(accuracy(y, LOGITS[:2]))


def test_one_hot_labels_are_refused():
    with pytest.raises(ValueError, match=r"shape=\(4, 3\).*argmax\(axis=1\)"):
        accuracy(np.eye(3)[[0, 1, 2, 0]])


# ClassesInUse


ALL, HALF = [10, 10, 10, 10], [20, 20, 0, 0]
RARE = {"class_prior": [0.5, 0.49, 0.01]}
# How many examples each class is given in each step.
IN_USE = {
    "not yet 50 of its own": ([HALF] * 4, {}, []),
    "50 of its own": ([HALF] * 5, {}, [2, 3]),
    # The window of 100 is full after step 10: from then on it is the one
    # before that counts, with the steps since.
    "in the window before": ([ALL] * 5 + [HALF] * 15, {}, []),
    "that window is gone": ([ALL] * 5 + [HALF] * 16, {}, [2, 3]),
    "come back at once": ([ALL] * 5 + [HALF] * 17 + [ALL], {}, []),
    # 200 of 400 are its own.
    "one in a hundred": ([[398, 2]], {}, []),
    "less than that": ([[399, 1]], {}, [1]),
    # 4,900 examples, of which 2,401 and 49 are those of the last two.
    "by its share": ([[700, 0, 0]] * 7, RARE, [1]),
    # The third is missed from 5,000 on.
    "rare": ([[700, 0, 0]] * 7 + [[100, 0, 0]], RARE, [1, 2]),
    # That is no reason to wait for the second, which was there at first.
    "each alone": ([[51, 49, 0]] * 10 + [[100, 0, 0]] * 6, RARE, [1]),
}


@pytest.mark.parametrize("steps, options, unused", IN_USE.values(), ids=IN_USE)
def test_classes_that_are_missed(steps, options, unused):
    metric = ClassesInUse(**options)
    for given in steps:
        # The largest logit decides, and it may well be negative.
        metric.update_state(
            np.eye(len(given))[np.repeat(np.arange(len(given)), given)] - 9
        )
    assert metric.unused() == unused
    assert int(metric.result()) == len(steps[0]) - len(unused)


def test_classes_in_use_from_its_config():
    metric = ClassesInUse(name="digits", class_prior=(0.25, 0.75))
    assert ClassesInUse.from_config(metric.get_config()).get_config() == {
        "name": "digits", "dtype": "float32", "class_prior": (0.25, 0.75),
    }  # fmt: skip
