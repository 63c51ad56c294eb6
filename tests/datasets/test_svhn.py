"""SVHN from files written here by SciPy, and its stand-in."""

import hashlib
import sys
from dataclasses import replace

import numpy as np
import pytest
import scipy.io

from gar_keras.datasets import svhn
from gar_keras.datasets.base import DataError
from gar_keras.datasets.sources import ConcatenatedImages
from gar_keras.datasets.svhn import (
    SvhnFile,
    load_svhn,
    load_svhn_extra,
    load_svhn_grey,
)

# An address that nobody answers: what is not there must not be fetched.
NOWHERE = "http://127.0.0.1:1/"


pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    """No time goes by between attempts."""
    monkeypatch.setattr(svhn.fetch.__globals__["time"], "sleep", lambda s: None)


def make(m, seed):
    """Images (m, 32, 32, 3), and labels (m, 1) as published, 1 to 10."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 256, (m, 32, 32, 3), dtype="uint8")
    return x, (np.arange(m, dtype="uint8") % 10 + 1)[:, None]


def describe(path, images):
    content = path.read_bytes()
    md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
    return SvhnFile(path.name, len(content), md5, NOWHERE + path.name, images)


def write(path, x, y, **arrays):
    """A file as published: image i is X[:, :, :, i]."""
    x = np.stack(list(x), axis=-1)
    scipy.io.savemat(path, {"X": x, "y": y, **arrays}, do_compression=True)
    return describe(path, y.shape[0])


@pytest.fixture
def files(tmp_path):
    return {
        "train": write(tmp_path / "train_32x32.mat", *make(23, 0)),
        "test": write(tmp_path / "test_32x32.mat", *make(12, 1)),
    }


def test_published_files():
    sizes = [file.bytes for file in (svhn.TRAIN, svhn.TEST)]
    assert sizes == [182_040_794, 64_275_384]
    assert svhn.TRAIN.md5 == "e26dedcc434d2e4c54c9b2d4a06d8373"
    assert svhn.TEST.md5 == "eb5a983be6a315427106f1b164d9cef3"
    home = "http://ufldl.stanford.edu/housenumbers/"
    for file, name, images in (
        (svhn.TRAIN, "train_32x32.mat", 73_257),
        (svhn.TEST, "test_32x32.mat", 26_032),
        (svhn.EXTRA, "extra_32x32.mat", 531_131),
    ):
        assert (file.name, file.url) == (name, home + name)
        assert file.images == images


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
        assert y[:12].tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2]
        assert y.tolist() == [v % 10 for v in labels[:, 0].tolist()]


def test_load_from_the_folder_of_the_variable(tmp_path, files, monkeypatch):
    monkeypatch.setenv("GAR_KERAS_DATA", str(tmp_path))
    assert len(load_svhn(**files).x_test) == 12


def test_labels_may_be_doubles(tmp_path, files):
    x, y = make(23, 0)
    files["train"] = write(tmp_path / "train_32x32.mat", x, y.astype(float))
    y_train = load_svhn(tmp_path, **files).y_train
    assert y_train.dtype == np.int64
    assert y_train[8:11].tolist() == [9, 0, 1]


@pytest.mark.parametrize("name", ["train", "test"])
def test_load_refuses_an_altered_file(tmp_path, files, name):
    path = tmp_path / files[name].name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=f"{path}.* Received: md5="):
        load_svhn(tmp_path, **files)
    path.write_bytes(content[:-1])
    with pytest.raises(DataError, match="was truncated or altered"):
        load_svhn(tmp_path, **files)


def test_load_says_what_is_missing(tmp_path, files):
    (tmp_path / "test_32x32.mat").unlink()
    with pytest.raises(DataError) as failure:
        load_svhn(tmp_path, **files)
    message = str(failure.value)
    for part in (
        f"test_32x32.mat ({files['test'].bytes:,} bytes)",
        NOWHERE + "test_32x32.mat",
        str(tmp_path),
        "--data-dir",
    ):
        assert part in message


X, Y = make(12, 1)


@pytest.mark.parametrize(
    "arrays, message",
    [
        ({"X": X}, "X in .* must be uint8.*Received: uint8"),
        ({"X": X.transpose(1, 2, 3, 0) / 255}, "Received: float64"),
        ({"X": X[1:].transpose(1, 2, 3, 0)}, r"\(32, 32, 3, 11\)"),
        ({"X": X[..., :1].transpose(1, 2, 3, 0)}, r"\(32, 32, 1, 12\)"),
        ({"y": Y - 1}, "labels 1 to 10 .* values from 0 to 9"),
        ({"y": Y + 1}, "values from 2 to 11"),
        ({"y": Y + 0.5}, "values from 1.5 to 10.5"),
        ({"y": Y.T}, r"shape=\(1, 12\)"),
        ({"y": Y[1:]}, r"shape=\(11, 1\)"),
        ({"y": Y[:0]}, r"y in .* must be \(12, 1\). Received: shape=\(0,"),
        ({"X": None}, "KeyError"),
        ({"y": None}, "KeyError"),
    ],
)
def test_load_refuses_other_arrays(tmp_path, files, arrays, message):
    path = tmp_path / "test_32x32.mat"
    content = {"X": X.transpose(1, 2, 3, 0), "y": Y, **arrays}
    content = {k: v for k, v in content.items() if v is not None}
    scipy.io.savemat(path, content)
    files["test"] = describe(path, 12)
    with pytest.raises(DataError, match=message):
        load_svhn(tmp_path, **files)


@pytest.mark.parametrize("begin, end", [(0, 0.5), (0.3, 1), (0, 0.01)])
def test_load_refuses_what_scipy_cannot_read(tmp_path, files, begin, end):
    path = tmp_path / "test_32x32.mat"
    content = path.read_bytes()
    n = len(content)
    path.write_bytes(content[int(begin * n) : int(end * n)])
    files["test"] = describe(path, 12)
    with pytest.raises(DataError, match="not a readable SVHN file"):
        load_svhn(tmp_path, **files)


def test_load_without_scipy_fails_before_any_download(
    tmp_path, files, monkeypatch
):
    monkeypatch.setitem(sys.modules, "scipy.io", None)
    (tmp_path / "train_32x32.mat").unlink()
    for load in (
        lambda: load_svhn(tmp_path, **files),
        lambda: load_svhn_extra(tmp_path, files["train"]),
    ):
        with pytest.raises(ImportError, match="needs the package scipy"):
            load()


# The extra set.


@pytest.fixture
def extra(tmp_path):
    return write(tmp_path / "extra_32x32.mat", *make(41, 2))


def test_extra(tmp_path, extra):
    images = load_svhn_extra(tmp_path, extra)
    expected, _ = make(41, 2)
    assert images.shape == (41, 32, 32, 3)
    assert images.dtype == np.uint8
    order = [40, 0, 16, 15, 0, 33]
    np.testing.assert_array_equal(
        images.take(order), expected[order], strict=True
    )
    np.testing.assert_array_equal(images.take(np.arange(41)), expected)
    images.close()
    (path,) = tmp_path.glob("*.h5")
    assert path.name.startswith("svhn-extra-")


def test_extra_in_blocks(tmp_path, extra, monkeypatch):
    monkeypatch.setattr(svhn, "_BLOCK", 16)
    images = load_svhn_extra(tmp_path, extra)
    np.testing.assert_array_equal(images.take(np.arange(41)), make(41, 2)[0])
    images.close()


def test_extra_is_converted_once(tmp_path, extra):
    load_svhn_extra(tmp_path, extra).close()
    # The source may go: its MD5 is in the name and inside of what was made.
    (tmp_path / "extra_32x32.mat").unlink()
    images = load_svhn_extra(tmp_path, extra)
    np.testing.assert_array_equal(images.take([7]), make(41, 2)[0][[7]])
    images.close()
    other = replace(extra, md5="0" * 32)
    with pytest.raises(DataError, match="Could not download extra_32x32.mat"):
        load_svhn_extra(tmp_path, other)


def test_extra_cut_short_is_converted_anew(tmp_path, extra):
    load_svhn_extra(tmp_path, extra).close()
    (path,) = tmp_path.glob("*.h5")
    path.write_bytes(path.read_bytes()[:-5000])
    images = load_svhn_extra(tmp_path, extra)
    np.testing.assert_array_equal(images.take(np.arange(41)), make(41, 2)[0])
    images.close()


def test_extra_notices_a_damaged_image(tmp_path, extra):
    load_svhn_extra(tmp_path, extra).close()
    (path,) = tmp_path.glob("*.h5")
    content = bytearray(path.read_bytes())
    content[content.index(make(41, 2)[0][20].tobytes())] ^= 1
    path.write_bytes(content)
    images = load_svhn_extra(tmp_path, extra)
    with pytest.raises(DataError, match="Delete the file and load"):
        images.take([20])
    images.close()


def test_extra_refuses_an_altered_file(tmp_path, extra):
    path = tmp_path / "extra_32x32.mat"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match="Received: md5="):
        load_svhn_extra(tmp_path, extra)
    assert not [*tmp_path.glob("*.h5"), *tmp_path.glob("*.tmp")]


def test_extra_behind_the_training_images(tmp_path, files, extra):
    data = load_svhn(tmp_path, **files)
    images = load_svhn_extra(tmp_path, extra)
    both = ConcatenatedImages(data.x_train, images)
    assert both.shape == (23 + 41, 32, 32, 3)
    np.testing.assert_array_equal(
        both.take([63, 22, 23]),
        np.stack([make(41, 2)[0][40], make(23, 0)[0][22], make(41, 2)[0][0]]),
    )
    images.close()


# The stand-in.


def grey(**changes):
    arrays = {}
    for part, m in (("train", 7), ("test", 4)):
        arrays[f"x_{part}"] = make(m, m)[0][..., :1]
        arrays[f"y_{part}"] = np.arange(m, dtype="uint8")
    return {**arrays, **changes}


def test_load_grey(tmp_path):
    np.savez(tmp_path / "svhn_grey_32.npz", **grey())
    data = load_svhn_grey(tmp_path)
    assert (data.name, data.title) == ("svhn-grey", "SVHN-grey")
    assert "not SVHN format 2" in data.source
    np.testing.assert_array_equal(data.x_train, grey()["x_train"], strict=True)
    np.testing.assert_array_equal(data.x_test, grey()["x_test"], strict=True)
    assert data.y_train.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert data.y_test.dtype == np.int64


@pytest.mark.parametrize(
    "key, change, message",
    [
        ("x_train", lambda a: a[1:], "y_train of 'svhn-grey' must have one"),
        ("x_train", lambda a: a.repeat(4000, 0), r"\(1..26032, 32, 32, 1\)"),
        ("x_test", lambda a: a / 255, "Received: float64"),
        ("x_test", lambda a: a[..., 0], "x_test must be uint8"),
        ("y_train", lambda a: a + 4, "Labels of 'svhn-grey' must lie in 0..9"),
        ("y_train", lambda a: a * 1.0, "must be integer .* Received: float64"),
        ("y_test", lambda a: a[:, None], "y_test"),
    ],
)
def test_load_grey_refuses(tmp_path, key, change, message):
    changes = {key: change(grey()[key])}
    np.savez(tmp_path / "svhn_grey_32.npz", **grey(**changes))
    with pytest.raises(DataError, match=message):
        load_svhn_grey(tmp_path)


def test_load_grey_refuses_a_truncated_or_missing_file(tmp_path):
    path = tmp_path / "svhn_grey_32.npz"
    with pytest.raises(DataError, match="svhn_grey_32.npz.*--data-dir"):
        load_svhn_grey(tmp_path)
    np.savez(path, **grey())
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(DataError, match="not a readable .npz file"):
        load_svhn_grey(tmp_path)
