"""SVHN from files written here by SciPy, and its stand-in."""

import hashlib
import shutil
import sys

import numpy as np
import pooch
import pytest
import scipy.io

from reproduction.datasets import svhn
from reproduction.datasets.svhn import (
    load_svhn,
    load_svhn_grey,
    load_svhn_with_extra,
)

# Images in each file.
SIZES = {"train_32x32.mat": 23, "test_32x32.mat": 12, "extra_32x32.mat": 41}

pytestmark = pytest.mark.usefixtures("home")


def make(m):
    """Images (m, 32, 32, 3), and labels (m, 1) as published, 1 to 10."""
    x = np.random.default_rng(m).integers(0, 256, (m, 32, 32, 3), dtype="uint8")
    return x, (np.arange(m, dtype="uint8") % 10 + 1)[:, None]


@pytest.fixture
def published(tmp_path, monkeypatch):
    """A folder with the files as published, where nobody can download."""
    folder = tmp_path / "published"
    folder.mkdir()
    for name, m in SIZES.items():
        x, y = make(m)
        # Image i is X[:, :, :, i].
        arrays = {"X": np.stack(list(x), axis=-1), "y": y}
        scipy.io.savemat(folder / name, arrays, do_compression=True)
        content = (folder / name).read_bytes()
        md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
        monkeypatch.setitem(svhn.MD5, name, md5)
    monkeypatch.setattr(svhn, "HOME", "http://127.0.0.1:1/")
    return folder


def test_load(published):
    data = load_svhn(published)
    assert (data.name, data.title, data.num_classes) == ("svhn", "SVHN", 10)
    for x, y, (images, labels) in (
        (data.x_train, data.y_train, make(23)),
        (data.x_test, data.y_test, make(12)),
    ):
        np.testing.assert_array_equal(x, images, strict=True)
        assert x.flags.c_contiguous
        assert y.dtype == np.int64
        # 1, 2, ..., 9, then 10, which is the digit 0.
        assert y.tolist() == [v % 10 for v in labels[:, 0].tolist()]


def test_files_are_downloaded_once(published, tmp_path, monkeypatch):
    asked = []

    def retrieve(url, known_hash, name, folder):
        asked.append((url, known_hash))
        folder.mkdir(exist_ok=True)
        shutil.copy(published / name, folder)

    monkeypatch.setattr(pooch, "retrieve", retrieve)
    for _ in range(2):
        data = load_svhn(tmp_path / "data")
        np.testing.assert_array_equal(data.x_test, make(12)[0])
    assert asked == [
        (svhn.HOME + name, f"md5:{svhn.MD5[name]}")
        for name in ("train_32x32.mat", "test_32x32.mat")
    ]
    monkeypatch.setitem(sys.modules, "scipy.io", None)
    with pytest.raises(ImportError, match="needs the package scipy"):
        load_svhn(tmp_path / "data")


def test_the_extra_set_lies_behind_the_training_images(published):
    expected = np.concatenate([make(23)[0], make(41)[0]])
    for _ in range(2):
        images = load_svhn_with_extra(published)
        assert isinstance(images, np.memmap)
        np.testing.assert_array_equal(images, expected, strict=True)
        # It is not read again.
        (published / "extra_32x32.mat").unlink(missing_ok=True)


def test_load_grey(tmp_path, monkeypatch):
    grey = {}
    for part, m in (("train", 7), ("test", 4)):
        grey[f"x_{part}"] = make(m)[0][..., :1]
        grey[f"y_{part}"] = np.arange(m, dtype="uint8")
    path = tmp_path / "svhn_grey_32.npz"
    np.savez(path, **grey)
    md5 = hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
    monkeypatch.setattr(svhn, "GREY_MD5", md5)
    data = load_svhn_grey(tmp_path)
    assert (data.name, data.title) == ("svhn-grey", svhn.GREY_TITLE)
    assert "not SVHN format 2" in data.source
    np.testing.assert_array_equal(data.x_train, grey["x_train"], strict=True)
    assert data.y_train.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert data.y_test.dtype == np.int64
