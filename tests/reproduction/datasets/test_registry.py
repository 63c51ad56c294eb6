"""Data sets by their names."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from gar_keras.datasets import DataError, load_mnist
from reproduction import datasets


def test_pairs_are_two_digits_side_by_side():
    mnist = load_mnist()
    pairs = datasets.load("mnist-pairs")
    left, right = np.split(pairs.x_test, 2, axis=2)
    np.testing.assert_array_equal(left, mnist.x_test)
    for row in (0, 7, 9_999):
        where = (mnist.x_test == right[row]).all(axis=(1, 2, 3))
        (found,) = np.flatnonzero(where)
        labels = mnist.y_test[[row, found]]
        assert pairs.y_test[row] == 10 * labels[0] + labels[1]


def test_digits_are_those_of_scikit_learn(monkeypatch):
    digits = datasets.load("digits")
    assert digits.x_train.max() == 255
    assert np.bincount(digits.y_test).sum() == 500
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(ImportError, match="pip install 'gar_keras.experim"):
        datasets.load("digits")


@pytest.mark.parametrize("name", ["digits", "wine"])
def test_what_comes_with_a_package_takes_no_folder(name, tmp_path):
    with pytest.raises(DataError, match="Leave the folder out.*data_dir='"):
        datasets.load(name, tmp_path)


def test_load_finds_by_name_and_refuses_others(monkeypatch):
    found = SimpleNamespace(name="tiny", title="Tiny")
    monkeypatch.setitem(datasets.DATASETS, "tiny", lambda data_dir: found)
    assert datasets.load("tiny") is found
    with pytest.raises(ValueError, match="mnist, .*Received: name='minst'"):
        datasets.load("minst")
    monkeypatch.setitem(datasets.DATASETS, "norb", lambda data_dir: found)
    with pytest.raises(DataError, match="'tiny'.*Received: name='norb'"):
        datasets.load("norb")
