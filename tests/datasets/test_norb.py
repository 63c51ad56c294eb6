"""Small NORB: the file format, the preprocessing, and what is refused."""

import gzip
import hashlib
import itertools
import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gar_keras.datasets import norb
from gar_keras.datasets.base import DataError
from gar_keras.datasets.norb import (
    NorbPart,
    NorbPreprocessing,
    load_norb,
    preprocess,
    read_copy,
    read_matrix,
    read_official,
)

# Halves as the official ones, of few pairs.
PARTS = (NorbPart("train", (4, 6), 10), NorbPart("test", (0, 5), 20))
TRAIN, TEST = PARTS
MAGIC = {"int32": 0x1E3D4C54, "uint8": 0x1E3D4C55}

pytestmark = pytest.mark.usefixtures("home")


def matrix_bytes(array):
    """The file in NORB's format, worked out apart from the reader."""
    dims = (*array.shape, 1, 1)[: max(3, array.ndim)]
    head = struct.pack("<Ii", MAGIC[array.dtype.name], array.ndim)
    head += struct.pack(f"<{len(dims)}i", *dims)
    return head + array.astype(array.dtype.newbyteorder("<")).tobytes()


def make_part(part, seed):
    """The three arrays of a half of small NORB, in a random order."""
    rng = np.random.default_rng(seed)
    each = range(part.images // 10)
    rows = [*itertools.product(range(5), part.instances, each, [2], [1])]
    rows = np.array(rows, "int32")
    rng.shuffle(rows)
    dat = rng.integers(0, 256, (len(rows), 2, 96, 96), dtype="uint8")
    return dat, rows[:, 0].copy(), rows[:, 1:].copy()


ARRAYS = {part: make_part(part, seed) for seed, part in enumerate(PARTS)}


def paths_in(folder):
    return [folder / name for part in PARTS for name in part.files]


def write_official(folder, changes=()):
    arrays = dict(zip(paths_in(folder), sum(ARRAYS.values(), ()), strict=True))
    for path, array in (arrays | dict(changes)).items():
        path.write_bytes(matrix_bytes(array))


def nearest(dat):
    """Rows and columns 1, 4, 7, ..., 94, with the cameras last."""
    picked = [3 * i + 1 for i in range(32)]
    return np.moveaxis(dat[:, :, picked][:, :, :, picked], 1, 3)


def copy_arrays():
    arrays = {}
    for name, (dat, labels, info) in zip(
        ("train", "test"), ARRAYS.values(), strict=True
    ):
        arrays[f"x_{name}"] = nearest(dat)
        arrays[f"y_{name}"] = labels.astype("uint8")
        arrays[f"instance_{name}"] = info[:, 0].astype("uint8")
    return arrays


def write_copy(folder, **changes):
    np.savez(folder / "smallnorb_32.npz", **{**copy_arrays(), **changes})


@pytest.fixture
def official(tmp_path):
    folder = tmp_path / "official"
    folder.mkdir()
    write_official(folder)
    return folder


@pytest.fixture
def jpeg(tmp_path):
    folder = tmp_path / "jpeg"
    folder.mkdir()
    write_copy(folder)
    return folder


# The binary matrix format.


def test_read_matrix_by_hand(tmp_path):
    path = tmp_path / "info.mat"
    path.write_bytes(
        bytes.fromhex(
            "544C3D1E 02000000"  # int32, two dimensions
            "02000000 03000000 01000000"  # 2 x 3, and one more that is stored
            "00000000 01000000 FFFFFFFF 00010000 00000080 FFFFFF7F"
        )
    )
    np.testing.assert_array_equal(
        read_matrix(path, "int32", (2, 3)),
        np.array([[0, 1, -1], [256, -(2**31), 2**31 - 1]], "int32"),
        strict=True,
    )


SOUND = matrix_bytes(np.arange(6, dtype="int32").reshape(2, 3))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        SOUND[:19],
        SOUND[:-1],
        SOUND + b"\0",
        b"\x55" + SOUND[1:],
        SOUND[:4] + b"\x03" + SOUND[5:],
        SOUND[:8] + b"\x03" + SOUND[9:],
        SOUND[:12] + b"\x02" + SOUND[13:],
    ],
)
def test_read_matrix_refuses(tmp_path, content):
    path = tmp_path / "a.mat"
    path.write_bytes(content)
    with pytest.raises(DataError, match="a.mat is not the file .*Received: "):
        read_matrix(path, "int32", (2, 3))


def test_read_matrix_refuses_another_md5_and_no_file(tmp_path):
    path = tmp_path / "a.mat"
    with pytest.raises(DataError, match="cannot be read.*Put a clean copy"):
        read_matrix(path, "int32", (2, 3))
    path.write_bytes(SOUND)
    md5 = hashlib.md5(SOUND, usedforsecurity=False).hexdigest()
    assert read_matrix(path, "int32", (2, 3), md5).sum() == 15
    with pytest.raises(DataError, match="expected md5=0"):
        read_matrix(path, "int32", (2, 3), "0" * 32)


@settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_gzip_with_a_flipped_bit_never_yields_other_values(tmp_path, data):
    content = bytearray(gzip.compress(SOUND, mtime=0))
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= 1 << data.draw(st.integers(0, 7))
    path = tmp_path / "a.mat.gz"
    path.write_bytes(content)
    try:
        array = read_matrix(path, "int32", (2, 3))
    except DataError:
        return
    np.testing.assert_array_equal(array, [[0, 1, 2], [3, 4, 5]])


# The official files.


def test_the_official_files():
    for part, name in (
        (norb.TRAINING, "smallnorb-5x46789x9x18x6x2x96x96-training"),
        (norb.TESTING, "smallnorb-5x01235x9x18x6x2x96x96-testing"),
    ):
        kinds = ("dat", "cat", "info")
        assert list(part.files) == [f"{name}-{k}.mat" for k in kinds]
        assert [shape for _, shape in part.files.values()] == [
            *((24300, 2, 96, 96), (24300,), (24300, 4))
        ]
        assert all(len(md5) == 32 for md5 in part.md5)


def test_read_official(official):
    arrays = read_official(paths_in(official), PARTS)
    for i, (dat, labels, _) in enumerate(ARRAYS.values()):
        images, y = arrays[2 * i : 2 * i + 2]
        np.testing.assert_array_equal(images, nearest(dat), strict=True)
        np.testing.assert_array_equal(y, labels.astype("int64"), strict=True)


def test_read_official_stretches_each_camera_over_its_96x96_pixels(official):
    dat = ARRAYS[TRAIN][0].copy()
    # Within 50..150 where it is read, and beyond that at one pixel.
    dat[:] = 100
    dat[:, :, 1, 1], dat[:, :, 1, 4] = 50, 150
    dat[0, 1, 0, 0] = 254
    paths = paths_in(official)
    write_official(official, {paths[0]: dat})
    images = read_official(paths, PARTS, stretch=True)[0]
    left, right = np.moveaxis(images[0], 2, 0)
    # 50 / 100 of 255 is 127.5, and 50, 0 and 100 of 204 are 62.5, 0 and 125.
    assert (left[0, 0], left[0, 1], left[5, 5]) == (0, 255, 128)
    assert (right[0, 0], right[0, 1], right[5, 5]) == (0, 125, 63)
    assert (images[1, ..., 0] == images[1, ..., 1]).all()


def changed(array, at, value):
    array = array.copy()
    array[at] = value
    return array


@pytest.mark.parametrize(
    ("file", "change"),
    [
        (1, lambda cat: changed(cat, 0, (cat[0] + 1) % 5)),
        (1, lambda cat: changed(cat, 0, 5)),
        (2, lambda info: info[:, ::-1]),
        (2, lambda info: changed(info, (3, 0), 7)),
        (0, lambda dat: dat[:-1]),
        (0, lambda dat: dat[:, :1]),
        (1, lambda cat: cat.astype("uint8")),
        (2, lambda info: info.T),
    ],
)
def test_read_official_refuses(official, file, change):
    paths = paths_in(official)
    write_official(official, {paths[file]: change(ARRAYS[TRAIN][file])})
    with pytest.raises(DataError, match="Put a clean copy"):
        read_official(paths, PARTS)


# The JPEG copy.


@pytest.mark.parametrize(
    ("key", "change"),
    [
        ("x_train", lambda a: a[1:]),
        ("x_test", lambda a: a / 255),
        ("y_train", lambda a: a + 1),
        ("y_train", lambda a: changed(a, 0, (a[0] + 1) % 5)),
        ("instance_train", lambda a: a + 1),
        ("instance_test", lambda a: changed(a, 0, 5 - a[0])),
    ],
)
def test_read_copy_refuses(jpeg, key, change):
    write_copy(jpeg, **{key: change(copy_arrays()[key])})
    with pytest.raises(DataError, match="smallnorb_32.npz"):
        read_copy([jpeg / "smallnorb_32.npz"], PARTS)


def test_read_copy_stretches_each_camera(tmp_path):
    x = np.full_like(copy_arrays()["x_train"], 7)
    x[3, 4, 5, 0], x[3, 4, 5, 1] = 9, 47
    x[3, 0, 0, 1] = 27
    write_copy(tmp_path, x_train=x)
    path = tmp_path / "smallnorb_32.npz"
    images = read_copy([path], PARTS, stretch=True)[0]
    assert (images[3, 4, 5] == 255).all()
    assert images[3, 0, 0].tolist() == [0, 128]
    # Nothing to stretch.
    assert not images[0].any()
    assert read_copy([path], PARTS)[0][0, 0, 0, 0] == 7


# The preprocessing.


def by_formula(x_train, x_test, seed, own):
    """The preprocessing, written image by image."""
    rng = np.random.default_rng(seed)
    train = (x_train + rng.random(x_train.shape)) / 256
    test = (x_test + rng.random(x_test.shape)) / 256
    mean = sum(train) / len(train)
    test_mean = sum(test) / len(test) if own else mean

    def scaled(x):
        return (x - np.mean(x)) / np.std(x)

    return (
        np.stack([scaled(image - mean) for image in train]),
        np.stack([scaled(image - test_mean) for image in test]),
    )


PIXELS = copy_arrays()["x_train"], copy_arrays()["x_test"]


@pytest.mark.parametrize("seed", [0, 7])
@pytest.mark.parametrize("test_mean", ["training", "own"])
def test_preprocess_is_the_formula(seed, test_mean, monkeypatch):
    monkeypatch.setattr(norb, "_BLOCK", 3)
    received = preprocess(*PIXELS, NorbPreprocessing(seed, test_mean))
    expected = by_formula(*PIXELS, seed, test_mean == "own")
    for x, e in zip(received, expected, strict=True):
        assert x.dtype == np.float32
        np.testing.assert_allclose(x, e, rtol=0, atol=1e-6)


def test_test_images_do_not_depend_on_each_other_by_default():
    changed_test = PIXELS[1].copy()
    changed_test[1:] = 255 - changed_test[1:]
    for test_mean, same in (("training", True), ("own", False)):
        setting = NorbPreprocessing(test_mean=test_mean)
        _, a = preprocess(*PIXELS, setting)
        _, b = preprocess(PIXELS[0], changed_test, setting)
        assert np.array_equal(a[0], b[0]) == same


def test_preprocess_refuses_a_single_image():
    # It is its own mean, and nothing is left of it.
    with pytest.raises(ValueError, match="Image 0 has no contrast"):
        preprocess(PIXELS[0][:1], PIXELS[1])


@pytest.mark.parametrize(
    "changes", [{"seed": -1}, {"test_mean": "test"}, {"stretch": "yes"}]
)
def test_preprocessing_refuses(changes):
    (name,) = changes
    with pytest.raises(ValueError, match=f"Received: {name}="):
        NorbPreprocessing(**changes)


# Loading.


def test_load_official(official):
    write_copy(official)  # The official files win.
    data = load_norb(official, parts=PARTS)
    assert (data.name, data.title) == ("norb", "small NORB")
    assert "official" in data.source
    assert "training images' mean" in data.source
    assert data.num_classes == 5
    x_train, x_test = preprocess(*PIXELS)
    np.testing.assert_array_equal(data.x_train, x_train, strict=True)
    np.testing.assert_array_equal(data.x_test, x_test, strict=True)
    assert data.y_train.tolist() == ARRAYS[TRAIN][1].tolist()
    assert data.y_test.tolist() == ARRAYS[TEST][1].tolist()
    assert type(data.x_train) is np.ndarray


def test_load_copy_and_packed_files(jpeg, official):
    data = load_norb(jpeg, parts=PARTS)
    assert (data.name, data.title) == ("norb-jpeg", "small NORB (JPEG copy)")
    assert "JPEG" in data.source and "not lossless" in data.source
    for path in paths_in(official):
        content = gzip.compress(path.read_bytes(), 1)
        path.with_name(f"{path.name}.gz").write_bytes(content)
        path.unlink()
    # The same pixels, so the same images.
    other = load_norb(official, parts=PARTS)
    assert other.title == "small NORB"
    for key in ("x_train", "y_train", "x_test", "y_test"):
        np.testing.assert_array_equal(getattr(data, key), getattr(other, key))


def test_load_with_the_paper_codes_mean_and_stretch(official):
    setting = NorbPreprocessing(seed=3, test_mean="own", stretch=True)
    data = load_norb(official, setting, PARTS)
    arrays = read_official(paths_in(official), PARTS, stretch=True)
    _, x_test = preprocess(arrays[0], arrays[2], setting)
    np.testing.assert_array_equal(data.x_test, x_test)
    for words in ("each set's own mean", "seed 3", "stretched"):
        assert words in data.source


def test_missing_files_are_named(official, tmp_path):
    write_copy(official)
    paths_in(official)[4].unlink()
    with pytest.raises(
        DataError, match="only some of it. Missing: test-cat.mat. Put"
    ):
        load_norb(official, parts=PARTS)
    with pytest.raises(DataError, match="training-dat.mat.*--data-dir"):
        load_norb(tmp_path)


def test_it_is_worked_out_again_only_for_other_settings_or_files(
    official, monkeypatch
):
    runs = []
    original = norb.preprocess
    monkeypatch.setattr(
        norb, "preprocess", lambda *args: runs.append(1) or original(*args)
    )
    for setting in (norb.DEFAULT, NorbPreprocessing(1), norb.DEFAULT):
        load_norb(official, setting, PARTS)
    assert len(runs) == 2
    dat = ARRAYS[TRAIN][0].copy()
    dat[0, 0, 1, 1] ^= 1
    write_official(official, {paths_in(official)[0]: dat})
    load_norb(official, parts=PARTS)
    assert len(runs) == 3
