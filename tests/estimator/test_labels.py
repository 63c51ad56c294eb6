"""Rows without a label are marked in one way, and each class is kept back."""

import numpy as np
import pytest
from said import said

from gar_keras.estimator.examples import (
    as_labels,
    encode,
    is_unlabeled,
    keep_back,
)

pandas = pytest.importorskip("pandas")

ONE_WAY = {
    "-1": [-1, 0, 1, -1],
    "None": [None, 0, 1, None],
    "NaN": [np.nan, 0.0, 1.0, np.nan],
    "NA": pandas.array([None, 0, 1, None], "Int64"),
    "an empty string": ["", "no", "yes", ""],
    "None and NaN": [None, "no", "yes", np.nan],
    "-1 among names": np.array([-1, "no", "yes", "-1"], object),
    "-1 as a name": np.array(["-1", "no", "yes", "-1"]),
    "-1 in NumPy's strings": np.array(
        ["-1", "no", "yes", "-1"], np.dtypes.StringDType()
    ),
}
SEVERAL = {
    "-1 and None": ([-1, 0, 1, None], "-1 and None"),
    "-1 and NaN": (np.array([-1, 0, 1, np.nan]), "-1.0 and nan"),
    "-1 and NA": (pandas.array([-1, 0, 1, None], "Int64"), "-1 and <NA>"),
    "-1 and an empty string": (["-1", "0", "1", ""], "'-1' and ''"),
    "None and an empty string": ([None, "no", "yes", ""], "None and ''"),
}


@pytest.mark.parametrize("name", ONE_WAY)
def test_one_marker_is_taken(name):
    classes, targets = encode(np.asarray(as_labels(ONE_WAY[name])))
    assert len(classes) == 2 and targets.tolist() == [-1, 0, 1, -1]


@pytest.mark.parametrize("name", SEVERAL)
def test_two_are_refused_by_name(name):
    labels, both = SEVERAL[name]
    with pytest.raises(ValueError, match="Received: both") as raised:
        as_labels(labels)
    assert both in str(raised.value)


@pytest.mark.parametrize(
    ("counts", "fraction", "kept", "alone"),
    [
        ((40, 2), 0.2, (8, 1), None),
        ((40, 4), 0.1, (4, 1), None),
        ((10, 10), 0.9, (9, 9), None),
        ((2, 2), 0.1, (1, 1), None),
        ((40, 1), 0.2, (8, 0), "b"),
        ((1, 1, 5), 0.2, (0, 0, 1), "a, b"),
    ],
)
def test_each_class_of_two_labels_is_kept_back(counts, fraction, kept, alone):
    y = np.repeat([*range(len(counts)), -1], [*counts, 7])
    rows = []
    names = np.array(["a", "b", "c"])
    texts = said(lambda: rows.extend(keep_back(y, fraction, 0, names)))
    assert tuple(np.bincount(y[rows], minlength=len(counts))) == kept
    assert len(texts) == bool(alone)
    assert all(f"Received: {alone}, trained on alone" in text for text in texts)


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([1, 1.0, True, 2, -1], [1, 2]),
        ([True, False, None], [False, True]),
        (["NA", "None", "nan", ""], ["NA", "None", "nan"]),
        ([2**53, 2**53 + 1, None], [2**53, 2**53 + 1]),
        ([0, 1, ""], [0, 1]),
        (pandas.array([1, 2, None], "Int64"), [1, 2]),
        (pandas.Series(["x", None], dtype="category"), ["x"]),
        (pandas.to_datetime(["2020-01-01", None]), ["2020-01-01"]),
        ([0, "a", -1], "0 and 'a'"),
        ([1, "1"], "1 and '1'"),
        ([b"a", "a"], "b'a' and 'a'"),
        (np.array([[0], ["a"]], object), "0 and 'a'"),
    ],
    ids=str,
)
def test_labels_are_kept_or_refused(labels, classes):
    if isinstance(classes, str):
        with pytest.raises(ValueError, match=f"one kind, .*: {classes}"):
            as_labels(labels)
        return
    found = np.asarray(as_labels(labels))
    known = found[~is_unlabeled(found)]
    if isinstance(classes[0], bool):
        assert encode(found)[0].dtype == bool
    assert [*np.unique(known.astype(found.dtype))] == [
        *np.array(classes, known.dtype)
    ]
