"""MNIST as published or not at all, and splits that can be drawn again."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gar_keras.datasets import DataError, load_mnist, make_split
from gar_keras.datasets import mnist as mnist_module
from gar_keras.datasets.data_files import data_folder, read_npz

# MD5 of the four original idx files: an 8 or 16 byte header, then the array.
IDX_MD5 = {
    "x_train": "6bbc9ace898e44ae57da46a324031adb",
    "y_train": "a25bea736e30d166cdddb491f175f624",
    "x_test": "2646ac647ad5339dbf082846283269ea",
    "y_test": "27ae3e4e09519cfbb04c329615203637",
}

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
    for name, md5 in IDX_MD5.items():
        array = getattr(mnist, name).squeeze().astype("uint8")
        file = bytes([0, 0, 8, array.ndim])
        file += np.array(array.shape, ">u4").tobytes() + array.tobytes()
        assert hashlib.md5(file).hexdigest() == md5
    assert "exact" in mnist.source


def test_a_damaged_file_is_refused(tmp_path, monkeypatch):
    inside = mnist_module.resources.files("gar_keras")
    content = bytearray((inside / "data" / "mnist.npz").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "mnist.npz").write_bytes(content)
    monkeypatch.setattr(mnist_module.resources, "files", lambda _: tmp_path)
    with pytest.raises(DataError, match="mnist.npz is damaged"):
        load_mnist()


def test_a_file_that_is_missing_or_no_archive_is_refused(tmp_path):
    with pytest.raises(DataError, match="a.npz is missing. Put it there"):
        read_npz(tmp_path / "a.npz", ["y"])
    np.savez(tmp_path / "a.npz", x=np.zeros(3))
    with pytest.raises(DataError, match="is damaged: no .npz file with y"):
        read_npz(tmp_path / "a.npz", ["y"])


def test_the_folder_is_that_of_the_argument_the_variable_or_the_user(
    home, tmp_path, monkeypatch
):
    assert data_folder() == home / ".cache/gar_keras"
    monkeypatch.setenv("GAR_KERAS_DATA", str(tmp_path / "data"))
    assert data_folder() == tmp_path / "data"
    assert data_folder(tmp_path) == tmp_path


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


ARGUMENTS = dict(y_train=LABELS, num_labeled=20, seed=0, num_validation=2)


REFUSED = [
    ({"num_labeled": 25}, "multiple of the 10 classes.*num_labeled=25"),
    ({"y_train": []}, "y_train must be integer class indices"),
    ({"y_train": np.repeat([0, 1], [9, 2]), "num_labeled": 6}, "2 to 4"),
    ({"num_labeled": 0}, "num_labeled must be an integer from 1 to 1000"),
    ({"num_validation": 981}, "20 labelled, 980 are left .*=981"),
    ({"num_validation": -1}, "num_validation=-1"),
    ({"seed": -1}, "seed must be an integer of at least 0.*seed=-1"),
]


@pytest.mark.parametrize(("change", "message"), REFUSED)
def test_what_cannot_be_drawn_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        make_split(**ARGUMENTS | change)
