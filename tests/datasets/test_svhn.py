"""SVHN from files written here by SciPy, and its stand-in."""

import hashlib
import sys

import numpy as np
import pytest
import scipy.io

from gar_keras.datasets import svhn
from gar_keras.datasets.base import DataError
from gar_keras.datasets.svhn import (
    SvhnFile,
    load_svhn,
    load_svhn_grey,
    load_svhn_with_extra,
)

# An address that nobody answers: what is not there must not be fetched.
NOWHERE = "http://127.0.0.1:1/"

pytestmark = pytest.mark.usefixtures("home")


def make(m, seed):
    """Images (m, 32, 32, 3), and labels (m, 1) as published, 1 to 10."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 256, (m, 32, 32, 3), dtype="uint8")
    return x, (np.arange(m, dtype="uint8") % 10 + 1)[:, None]


def write(path, x, y):
    """A file as published: image i is X[:, :, :, i]."""
    arrays = {"X": np.stack(list(x), axis=-1), "y": y}
    scipy.io.savemat(path, arrays, do_compression=True)
    md5 = hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
    return SvhnFile(path.name, md5, len(x), NOWHERE)


@pytest.fixture
def files(tmp_path):
    return {
        "train": write(tmp_path / "train_32x32.mat", *make(23, 0)),
        "test": write(tmp_path / "test_32x32.mat", *make(12, 1)),
    }


def test_load(tmp_path, files):
    data = load_svhn(tmp_path, **files)
    assert (data.name, data.title, data.num_classes) == ("svhn", "SVHN", 10)
    for x, y, (images, labels) in (
        (data.x_train, data.y_train, make(23, 0)),
        (data.x_test, data.y_test, make(12, 1)),
    ):
        np.testing.assert_array_equal(x, images, strict=True)
        assert x.flags.c_contiguous
        assert y.dtype == np.int64
        # 1, 2, ..., 9, then 10, which is the digit 0.
        assert y.tolist() == [v % 10 for v in labels[:, 0].tolist()]


def test_an_altered_or_missing_file_is_not_taken(tmp_path, files):
    path = tmp_path / files["test"].name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match=f"download test_32x32.mat.*{NOWHERE}"):
        load_svhn(tmp_path, **files)
    path.unlink()
    with pytest.raises(DataError, match="--data-dir"):
        load_svhn(tmp_path, **files)


def test_the_shape_must_be_that_of_the_data_set(tmp_path, files):
    files["test"] = write(tmp_path / "test_32x32.mat", make(12, 1)[0][:, 1:], 1)
    with pytest.raises(DataError, match=r"must be uint8 \(12, 32, 32, 3\)"):
        load_svhn(tmp_path, **files)


def test_without_scipy_nothing_is_downloaded(tmp_path, files, monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.io", None)
    with pytest.raises(ImportError, match="needs the package scipy"):
        load_svhn(tmp_path, **files)


def test_the_extra_set_lies_behind_the_training_images(tmp_path, files):
    extra = write(tmp_path / "extra_32x32.mat", *make(41, 2))
    expected = np.concatenate([make(23, 0)[0], make(41, 2)[0]])
    for _ in range(2):
        images = load_svhn_with_extra(tmp_path, files["train"], extra)
        assert isinstance(images, np.memmap)
        np.testing.assert_array_equal(images, expected, strict=True)
        # The MD5 says what was kept: the file is not read again.
        (tmp_path / extra.name).unlink(missing_ok=True)


def grey(**changes):
    arrays = {}
    for part, m in (("train", 7), ("test", 4)):
        arrays[f"x_{part}"] = make(m, m)[0][..., :1]
        arrays[f"y_{part}"] = np.arange(m, dtype="uint8")
    return {**arrays, **changes}


def test_load_grey(tmp_path):
    with pytest.raises(DataError, match="svhn_grey_32.npz.*--data-dir"):
        load_svhn_grey(tmp_path)
    np.savez(tmp_path / "svhn_grey_32.npz", **grey())
    data = load_svhn_grey(tmp_path)
    assert (data.name, data.title) == ("svhn-grey", svhn.GREY_TITLE)
    assert "not SVHN format 2" in data.source
    np.testing.assert_array_equal(data.x_train, grey()["x_train"], strict=True)
    assert data.y_train.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert data.y_test.dtype == np.int64


@pytest.mark.parametrize(
    "key, change",
    [
        ("x_train", lambda a: a[1:]),
        ("x_test", lambda a: a / 255),
        ("x_test", lambda a: a[..., 0]),
        ("y_train", lambda a: a + 4),
        ("y_train", lambda a: a * 1.0),
    ],
)
def test_load_grey_refuses(tmp_path, key, change):
    np.savez(
        tmp_path / "svhn_grey_32.npz", **grey(**{key: change(grey()[key])})
    )
    with pytest.raises(ValueError, match="Received"):
        load_svhn_grey(tmp_path)
