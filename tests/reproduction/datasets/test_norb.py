"""Small NORB: the file format, the preprocessing, and what is refused."""

import gzip
import hashlib
import struct

import numpy as np
import pytest

from gar_keras.datasets.dataset import DataError
from reproduction.datasets import norb
from reproduction.datasets.norb import (
    load_norb,
    load_norb_jpeg,
    preprocess,
    read_matrix,
)

PAIRS = 20
NAMES = [f"{p}-{k}.mat.gz" for p in ("train", "test") for k in ("dat", "cat")]
MAGIC = {"int32": 0x1E3D4C54, "uint8": 0x1E3D4C55}

pytestmark = pytest.mark.usefixtures("home", "small")


def matrix_bytes(array):
    """The file in NORB's format, worked out apart from the reader."""
    dims = (*array.shape, 1, 1)[: max(3, array.ndim)]
    head = struct.pack("<Ii", MAGIC[array.dtype.name], array.ndim)
    head += struct.pack(f"<{len(dims)}i", *dims)
    return head + array.astype(array.dtype.newbyteorder("<")).tobytes()


def md5_of(content):
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (2, PAIRS, 2, 96, 96), dtype="uint8")
LABELS = RNG.integers(0, 5, (2, PAIRS), dtype="int32")
OFFICIAL = [IMAGES[0], LABELS[0], IMAGES[1], LABELS[1]]


@pytest.fixture
def small(monkeypatch):
    """The two halves are data sets of few images."""
    md5 = [md5_of(matrix_bytes(array)) for array in OFFICIAL]
    monkeypatch.setattr(norb, "MD5", dict(zip(NAMES, md5, strict=True)))


def write_matrix(path, array):
    path.write_bytes(gzip.compress(matrix_bytes(array), 1, mtime=0))


def nearest(images):
    """Rows and columns 1, 4, 7, ..., 94, with the cameras last."""
    picked = [3 * i + 1 for i in range(32)]
    return np.moveaxis(images[:, :, picked][:, :, :, picked], 1, 3)


PIXELS = nearest(IMAGES[0]), nearest(IMAGES[1])


@pytest.fixture
def write_copy(monkeypatch):
    """Writes the copy at 32x32, which is that known by its MD5 from then."""

    def write(folder, x_train=PIXELS[0]):
        path = folder / "smallnorb_32.npz"
        y_train, y_test = LABELS.astype("uint8")
        np.savez(
            path, x_train=x_train, y_train=y_train, x_test=PIXELS[1],
            y_test=y_test,
        )  # fmt: skip
        monkeypatch.setattr(norb, "COPY_MD5", md5_of(path.read_bytes()))

    return write


@pytest.fixture
def official(tmp_path):
    """A folder with the official files."""
    folder = tmp_path / "official"
    folder.mkdir()
    for name, array in zip(NAMES, OFFICIAL, strict=True):
        write_matrix(folder / name, array)
    return folder


def test_read_matrix_by_hand(tmp_path):
    path = tmp_path / "info.mat.gz"
    content = bytes.fromhex(
        "544C3D1E 02000000"  # int32, two dimensions
        "02000000 03000000 01000000"  # 2 x 3, and one more that is stored
        "00000000 01000000 FFFFFFFF 00010000 00000080 FFFFFF7F"
    )
    path.write_bytes(gzip.compress(content))
    np.testing.assert_array_equal(
        read_matrix(path, md5_of(content)),
        np.array([[0, 1, -1], [256, -(2**31), 2**31 - 1]], "int32"),
        strict=True,
    )


def by_formula(x_train, x_test):
    """The preprocessing, written image by image."""
    rng = np.random.default_rng(0)
    train = (x_train + rng.random(x_train.shape)) / 256
    test = (x_test + rng.random(x_test.shape)) / 256
    mean = sum(train) / len(train)

    def scaled(x):
        return (x - np.mean(x)) / np.std(x)

    return (
        np.stack([scaled(image - mean) for image in train]),
        np.stack([scaled(image - mean) for image in test]),
    )


def test_preprocess_is_the_formula(monkeypatch):
    monkeypatch.setattr(norb, "_BLOCK", 3)
    for x, e in zip(preprocess(*PIXELS), by_formula(*PIXELS), strict=True):
        assert x.dtype == np.float32
        np.testing.assert_allclose(x, e, rtol=0, atol=1e-6)


def test_load_official_and_copy(official, tmp_path, write_copy):
    write_copy(tmp_path)
    x_train, x_test = preprocess(*PIXELS)
    for data, name, title, words in (
        (load_norb(official), "norb", "small NORB", "official files"),
        (
            load_norb_jpeg(tmp_path),
            *("norb-jpeg", "small NORB (JPEG copy)", "not lossless"),
        ),
    ):
        assert (data.name, data.title) == (name, title)
        assert words in data.source
        assert "training images' mean" in data.source
        assert data.num_classes == 5
        # The same pixels, so the same images.
        np.testing.assert_array_equal(data.x_train, x_train, strict=True)
        np.testing.assert_array_equal(data.x_test, x_test, strict=True)
        assert [*data.y_train, *data.y_test] == [*LABELS[0], *LABELS[1]]
        assert type(data.x_train) is np.ndarray


def test_a_missing_file_is_named(official):
    (official / NAMES[3]).unlink()
    with pytest.raises(DataError, match="test-cat.mat.gz is missing"):
        load_norb(official)
