"""MNIST as published or not at all, and splits that can be drawn again."""

import sys
from dataclasses import replace
from importlib import resources
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gar_keras import datasets
from gar_keras.datasets import DataError, load_mnist, make_split
from gar_keras.datasets.mnist import IDX_MD5
from gar_keras.datasets.splits import draw_split

# Images of each digit, as counted on the original label files.
TRAIN_COUNTS = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
TEST_COUNTS = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]

# The split of seed 0 with 100 labels, as the records hold it.
FIRST_LABELED = [18023, 33983, 55054, 49937, 30849]
FINGERPRINT = "98613feabaaab990e857fac85784397a42d55b1578c023a202f20c2276e5cb1a"


@pytest.fixture(scope="module")
def mnist():
    return load_mnist()


def test_mnist_is_mnist(mnist):
    assert mnist.x_train.shape == (60000, 28, 28, 1)
    assert mnist.x_test.shape == (10000, 28, 28, 1)
    assert mnist.x_train.dtype == mnist.x_test.dtype == np.uint8
    assert mnist.y_train[:5].tolist() == [5, 0, 4, 1, 9]
    assert np.bincount(mnist.y_train).tolist() == TRAIN_COUNTS
    assert np.bincount(mnist.y_test).tolist() == TEST_COUNTS
    # The mean that everybody standardizes MNIST with.
    assert mnist.x_train.mean() / 255 == pytest.approx(0.1306604762738429)
    assert "exact" in mnist.source


def test_pairs_are_two_digits_side_by_side(mnist):
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


@pytest.mark.parametrize("key", IDX_MD5)
def test_one_altered_value_is_refused(key, mnist, tmp_path):
    arrays = {
        "x_train": mnist.x_train[..., 0],
        "y_train": mnist.y_train.astype("uint8"),
        "x_test": mnist.x_test[..., 0],
        "y_test": mnist.y_test.astype("uint8"),
    }
    arrays[key] = arrays[key].copy()
    arrays[key].flat[arrays[key].size // 2] ^= 1
    np.savez(tmp_path / "mnist.npz", **arrays)
    with pytest.raises(DataError, match=f"{key} in .*truncated or altered"):
        load_mnist(tmp_path)


@pytest.mark.parametrize("length", [-1, 1000, 0, None])
def test_a_damaged_or_missing_file_is_refused(length, tmp_path):
    if length is not None:
        inside = resources.files("gar_keras") / "data" / "mnist.npz"
        content = inside.read_bytes()[:length]
        (tmp_path / "mnist.npz").write_bytes(content)
    with pytest.raises(DataError, match="mnist.npz is not a readable"):
        load_mnist(tmp_path)


def test_a_file_for_a_folder_and_arrays_of_other_names_are_refused(tmp_path):
    np.savez(tmp_path / "mnist.npz", images=np.zeros(3))
    for path in (tmp_path, tmp_path / "mnist.npz"):
        with pytest.raises(DataError, match="is not a readable .npz file"):
            load_mnist(path)


def test_load_finds_by_name_and_refuses_others(monkeypatch):
    found = SimpleNamespace(name="tiny", title="Tiny")
    monkeypatch.setitem(datasets.DATASETS, "tiny", lambda data_dir: found)
    assert datasets.load("tiny") is found
    with pytest.raises(ValueError, match="mnist, .*Received: name='minst'"):
        datasets.load("minst")
    monkeypatch.setitem(datasets.DATASETS, "norb", lambda data_dir: found)
    with pytest.raises(DataError, match="'tiny'.*Received: name='norb'"):
        datasets.load("norb")


# Splits


@st.composite
def draws(draw):
    """Labels and numbers that can be drawn from them."""
    n = draw(st.integers(2, 6))
    each = draw(st.integers(1, 8))
    extra = draw(st.lists(st.integers(0, n - 1), max_size=20))
    y = np.array([*range(n)] * each + extra)
    y = np.random.default_rng(draw(st.integers(0, 9))).permutation(y)
    num_labeled = n * draw(st.integers(1, each))
    return y, num_labeled, draw(st.integers(0, len(y) - num_labeled))


@settings(max_examples=50, deadline=None)
@given(draws(), st.integers(0, 2**32 - 1))
def test_a_split_is_even_disjoint_and_decided_by_its_seed(drawn, seed):
    y, num_labeled, num_validation = drawn
    split = make_split(y, num_labeled, seed, num_validation)
    assert len(split.labeled) == num_labeled
    assert len(split.validation) == num_validation
    chosen = np.concatenate([split.labeled, split.validation])
    assert len(np.unique(chosen)) == len(chosen)
    assert chosen.min() >= 0 and chosen.max() < len(y)
    assert len(set(np.bincount(y[split.labeled]))) == 1
    again = make_split(y.copy(), num_labeled, seed, num_validation)
    assert again.fingerprint() == split.fingerprint()
    # The labels do not depend on the validation images.
    without = make_split(y, num_labeled, seed, 0)
    np.testing.assert_array_equal(without.labeled, split.labeled)


LABELS = np.arange(1000) % 10


def test_seeds_give_different_splits_in_no_order():
    prints = {make_split(LABELS, 20, s, 50).fingerprint() for s in range(20)}
    assert len(prints) == 20
    split = make_split(LABELS, 100, 0, 100)
    assert (np.diff(LABELS[split.labeled]) < 0).any()
    swapped = replace(split, labeled=split.validation, validation=split.labeled)
    assert split.fingerprint() != swapped.fingerprint()


def test_the_published_split_is_drawn_again(mnist):
    split = make_split(mnist.y_train, 100, seed=0)
    assert split.labeled[:5].tolist() == FIRST_LABELED
    assert split.fingerprint() == FINGERPRINT


def test_a_random_split_has_the_shares_of_the_classes():
    y = np.repeat([0, 1], [900, 100])
    split = draw_split(y, 500, seed=0, num_validation=500)
    assert sorted([*split.labeled, *split.validation]) == [*range(1000)]
    assert 25 < np.count_nonzero(y[split.labeled]) < 75


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_labeled": 25}, "multiple of the 10 classes.*num_labeled=25"),
        ({"num_labeled": 0}, "num_labeled must be an integer"),
        ({"num_labeled": 1010}, "num_labeled must be an integer from 1 to"),
        ({"num_validation": 981}, "num_validation must be .* from 0 to 980"),
        ({"seed": -1}, "seed must be an integer"),
        ({"y_train": []}, "y_train must be integer class indices"),
        ({"y_train": np.repeat([0, 1], [9, 2]), "num_labeled": 6},
         "class 1 holds 2. Ask for at most 4"),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_is_refused(change, message):
    arguments = {
        "y_train": LABELS,
        "num_labeled": 20,
        "seed": 0,
        "num_validation": 2,
    }
    with pytest.raises(ValueError, match=message):
        make_split(**{**arguments, **change})
