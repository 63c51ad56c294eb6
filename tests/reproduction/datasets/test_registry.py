"""Data sets by their names."""

import hashlib
import sys

import numpy as np
import pytest
from sklearn.datasets import load_digits

from gar_keras.datasets import DataError, load_mnist
from reproduction import datasets
from reproduction.datasets import norb, svhn


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
    x, y = load_digits(return_X_y=True)
    digits = datasets.load("digits")
    found = np.concatenate([digits.x_train, digits.x_test]).reshape(-1, 64)
    # scikit-learn has grey levels up to 16; those here are rounded.
    np.testing.assert_allclose(found / 255, x / 16, atol=0.51 / 255)
    np.testing.assert_array_equal([*digits.y_train, *digits.y_test], y)
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(ImportError, match="pip install 'gar_keras.experim"):
        datasets.load("digits")


JUNK = {
    "norb": tuple(norb.MD5),
    "norb-jpeg": (norb.COPY,),
    "svhn": ("train_32x32.mat",),
    "svhn-grey": (svhn.GREY,),
}


@pytest.mark.parametrize(
    ("name", "file"),
    [(name, file) for name, files in JUNK.items() for file in files],
)
def test_a_damaged_file_is_named_with_its_md5_and_left_alone(
    name, file, tmp_path, monkeypatch
):
    junk = b"<html>404</html>"
    for other in JUNK[name] if name == "norb" else (file,):
        (tmp_path / other).write_bytes(junk)
    # Whoever could download it, does not.
    monkeypatch.setattr(svhn, "HOME", "http://127.0.0.1:1/")
    md5 = hashlib.md5(junk, usedforsecurity=False).hexdigest()
    with pytest.raises(DataError, match=f"damaged.*Received: md5={md5}") as e:
        datasets.load(name, tmp_path)
    first = JUNK[name][0] if name == "norb" else file
    assert str(e.value).startswith(str(tmp_path / first))
    assert "\n" not in str(e.value)
    assert (tmp_path / file).read_bytes() == junk
