"""Small NORB: the file format, the preprocessing, and what is refused."""

import gzip
import itertools
import shutil
import struct
from dataclasses import replace

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

# As the official halves, but with few conditions: 10 and 20 pairs.
TRAIN = replace(
    norb.TRAINING, instances=(4, 6), elevations=(3,), azimuths=(34,),
    lightings=(5,),
)  # fmt: skip
TEST = replace(
    norb.TESTING, instances=(0, 5), elevations=(0,), azimuths=(2, 4),
    lightings=(1,),
)  # fmt: skip
PARTS = (TRAIN, TEST)

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
    rows = np.array([*itertools.product(range(5), *part.conditions)], "int32")
    rng.shuffle(rows)
    dat = rng.integers(0, 256, (len(rows), 2, 96, 96), dtype="uint8")
    return dat, rows[:, 0].copy(), rows[:, 1:].copy()


ARRAYS = {part: make_part(part, seed) for seed, part in enumerate(PARTS)}


def write_official(folder):
    for part, arrays in ARRAYS.items():
        for name, array in zip(part.files, arrays, strict=True):
            (folder / name).write_bytes(matrix_bytes(array))


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
        read_matrix(path),
        np.array([[0, 1, -1], [256, -(2**31), 2**31 - 1]], "int32"),
        strict=True,
    )


@pytest.mark.parametrize("dtype", sorted(MAGIC))
@pytest.mark.parametrize("shape", [(5,), (2, 3), (2, 3, 4), (2, 1, 3, 2), (0,)])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_read_matrix_of_every_type(tmp_path, dtype, shape, suffix):
    array = np.random.default_rng(0).normal(0, 50, shape).astype(dtype)
    path = tmp_path / f"a.mat{suffix}"
    content = matrix_bytes(array)
    path.write_bytes(gzip.compress(content) if suffix else content)
    np.testing.assert_array_equal(read_matrix(path), array, strict=True)


SOUND = matrix_bytes(np.arange(6, dtype="int32").reshape(2, 3))


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "Received: 0 bytes, expected a whole header"),
        (SOUND[:7], "Received: 7 bytes, expected a whole header"),
        (SOUND[:19], "Received: 19 bytes, expected a whole header"),
        (SOUND[:-1], "Received: 43 bytes, expected 44"),
        (SOUND + b"\0", "Received: more than 44 bytes, expected 44"),
        (SOUND[:20], "Received: 20 bytes, expected 44"),
        (SOUND[3::-1] + SOUND[4:], "magic number 0x544C3D1E"),
        (b"\x52" + SOUND[1:], "magic number 0x1E3D4C52"),
        (b"\x55" + SOUND[1:], "more than 26 bytes, expected 26"),
        (SOUND[:4] + b"\0" + SOUND[5:], "Received: 0 dimensions"),
        (SOUND[:4] + b"\x09" + SOUND[5:], "Received: 9 dimensions"),
        (SOUND[:7] + b"\x80" + SOUND[8:], "Received: 2147483650 dimensions"),
        (SOUND[:8] + b"\x03" + SOUND[9:], "Received: 44 bytes, expected 56"),
        (SOUND[:11] + b"\x80" + SOUND[12:], "Received: 44 bytes, expected 25"),
    ],
)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_read_matrix_refuses(tmp_path, content, message, suffix):
    path = tmp_path / f"a.mat{suffix}"
    path.write_bytes(gzip.compress(content) if suffix else content)
    with pytest.raises(DataError, match=message):
        read_matrix(path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        SOUND,
        gzip.compress(SOUND, mtime=0)[:-1],
        gzip.compress(SOUND, mtime=0)[:30],
        gzip.compress(SOUND, mtime=0) + b"more",
        gzip.compress(SOUND, mtime=0)[:-8] + bytes(8),
    ],
    # Bytes as names of tests differ between processes if they hold a time.
    ids=["empty", "not packed", "cut", "cut early", "too long", "bad sum"],
)
def test_read_matrix_refuses_bad_gzip(tmp_path, content):
    path = tmp_path / "a.mat.gz"
    path.write_bytes(content)
    with pytest.raises(DataError, match="a.mat.gz"):
        read_matrix(path)


def test_read_matrix_refuses_no_file(tmp_path):
    with pytest.raises(DataError, match="cannot be read.*Put a clean copy"):
        read_matrix(tmp_path / "a.mat")


@pytest.mark.parametrize("m", [len(TRAIN), 10**6])
def test_a_packed_matrix_is_read_no_further_than_its_form(official, peak, m):
    path = official / next(iter(TRAIN.files))
    content = path.read_bytes()
    path.unlink()
    with gzip.open(f"{path}.gz", "wb") as file:
        file.write(content[:8] + m.to_bytes(4, "little") + content[12:])
        file.write(bytes(200 * len(content)))

    def read():
        with pytest.raises(DataError, match="dat.mat.gz .* expected"):
            read_official(official, TRAIN)

    assert peak(read) < 20 * len(content)


@settings(
    max_examples=40,
    deadline=None,
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
        array = read_matrix(path)
    except DataError:
        return
    np.testing.assert_array_equal(array, [[0, 1, 2], [3, 4, 5]])


# The official files.


def test_sizes_of_the_official_files():
    assert len(norb.TRAINING) == len(norb.TESTING) == 24_300
    sizes = [447_897_624, 97_220, 388_820]
    for part, name in (
        (norb.TRAINING, "smallnorb-5x46789x9x18x6x2x96x96-training"),
        (norb.TESTING, "smallnorb-5x01235x9x18x6x2x96x96-testing"),
    ):
        assert list(part.files.values()) == sizes
        kinds = ("dat", "cat", "info")
        assert list(part.files) == [f"{name}-{k}.mat" for k in kinds]


def test_sizes_agree_with_files_written_here(official):
    for part in PARTS:
        for name, size in part.files.items():
            assert (official / name).stat().st_size == size


@pytest.mark.parametrize("part", PARTS)
def test_read_official(official, part):
    images, labels = read_official(official, part)
    dat, expected, _ = ARRAYS[part]
    np.testing.assert_array_equal(images, nearest(dat), strict=True)
    np.testing.assert_array_equal(labels, expected.astype("int64"), strict=True)


def test_read_official_takes_the_middle_of_every_three(tmp_path):
    rows, columns = np.mgrid[:96, :96]
    dat = np.broadcast_to(np.stack([rows, columns + 100]), (10, 2, 96, 96))
    _, labels, info = ARRAYS[TRAIN]
    for name, array in zip(
        TRAIN.files, (dat.astype("uint8"), labels, info), strict=True
    ):
        (tmp_path / name).write_bytes(matrix_bytes(array))
    images, _ = read_official(tmp_path, TRAIN)
    # Left camera: 3 * row + 1. Right camera: 3 * column + 1 + 100.
    assert images[0, :3, 0, 0].tolist() == [1, 4, 7]
    assert images[9, 31, :, 0].tolist() == [94] * 32
    assert images[0, 5, :3, 1].tolist() == [101, 104, 107]
    assert images[0, :, 31, 1].tolist() == [194] * 32


def test_read_official_stretches_each_camera_over_its_96x96_pixels(tmp_path):
    part = replace(TRAIN, instances=(4,))
    dat, labels, info = make_part(part, 0)
    # Within 50..150 where it is read, and beyond that at one pixel.
    dat[:] = 100
    dat[:, :, 1, 1], dat[:, :, 1, 4] = 50, 150
    dat[0, 1, 0, 0] = 254
    arrays = (dat, labels, info)
    for name, array in zip(part.files, arrays, strict=True):
        (tmp_path / name).write_bytes(matrix_bytes(array))
    images, _ = read_official(tmp_path, part, stretch=True)
    left, right = np.moveaxis(images[0], 2, 0)
    # 50 / 100 of 255 is 127.5, and 50, 0 and 100 of 204 are 62.5, 0 and 125.
    assert (left[0, 0], left[0, 1], left[5, 5]) == (0, 255, 128)
    assert (right[0, 0], right[0, 1], right[5, 5]) == (0, 125, 63)
    assert (images[1, ..., 0] == images[1, ..., 1]).all()


def rewrite(folder, part, kind, array):
    (folder / f"{part.prefix}-{kind}.mat").write_bytes(matrix_bytes(array))


def changed(array, at, value):
    array = array.copy()
    array[at] = value
    return array


@pytest.mark.parametrize(
    "kind, change",
    [
        ("cat", lambda dat, cat, info: cat[::-1]),
        ("cat", lambda dat, cat, info: np.roll(cat, 1)),
        ("cat", lambda dat, cat, info: changed(cat, 0, (cat[0] + 1) % 5)),
        ("cat", lambda dat, cat, info: changed(cat, 0, 5)),
        ("cat", lambda dat, cat, info: changed(cat, 0, -1)),
        ("info", lambda dat, cat, info: info[:, ::-1]),
        ("info", lambda dat, cat, info: changed(info, (3, 0), 7)),
        ("info", lambda dat, cat, info: changed(info, (3, 1), 4)),
        ("info", lambda dat, cat, info: changed(info, (3, 2), 33)),
        ("info", lambda dat, cat, info: changed(info, (3, 3), 6)),
    ],
)
def test_read_official_refuses_labels_that_do_not_fit(official, kind, change):
    rewrite(official, TRAIN, kind, change(*ARRAYS[TRAIN]))
    with pytest.raises(DataError, match="do not name every class, instance"):
        read_official(official, TRAIN)


@pytest.mark.parametrize(
    "kind, change, message",
    [
        ("dat", lambda a: a[:-1], r"uint8 \(9, 2, 96, 96\), expected"),
        ("dat", lambda a: a[:, :1], r"uint8 \(10, 1, 96, 96\), expected"),
        ("dat", lambda a: a[:, :, 1:], r"uint8 \(10, 2, 95, 96\), expected"),
        ("dat", lambda a: a.astype("int32"), "int32 .*, expected uint8"),
        ("cat", lambda a: a[1:], r"int32 \(9,\), expected int32 \(10,\)"),
        ("cat", lambda a: a[:, None], r"int32 \(10, 1\), expected"),
        ("cat", lambda a: a.astype("uint8"), "uint8 .*, expected int32"),
        ("info", lambda a: a[:, :3], r"int32 \(10, 3\), expected"),
        ("info", lambda a: a.T, r"int32 \(4, 10\), expected"),
        ("info", lambda a: a.astype("uint8"), "uint8 .*, expected int32"),
    ],
)
def test_read_official_refuses_other_forms(official, kind, change, message):
    array = ARRAYS[TRAIN][("dat", "cat", "info").index(kind)]
    rewrite(official, TRAIN, kind, change(array))
    with pytest.raises(DataError, match=f"Received: {message}"):
        read_official(official, TRAIN)


def test_read_official_refuses_the_other_half(official):
    for name, other in zip(TRAIN.files, TEST.files, strict=True):
        shutil.copy(official / other, official / name)
    with pytest.raises(DataError, match=r"\(20, 2, 96, 96\), expected"):
        read_official(official, TRAIN)


# The JPEG copy.


def test_read_copy(jpeg):
    arrays = read_copy(jpeg / "smallnorb_32.npz", PARTS)
    assert list(arrays) == ["x_train", "y_train", "x_test", "y_test"]
    for key, array in arrays.items():
        expected = copy_arrays()[key]
        if key[0] == "y":
            expected = expected.astype("int64")
        np.testing.assert_array_equal(array, expected, strict=True)


@pytest.mark.parametrize(
    "key, change, message",
    [
        ("x_train", lambda a: a[1:], "x_train must be uint8"),
        ("x_test", lambda a: a[..., :1], "x_test must be uint8"),
        ("x_test", lambda a: a / 255, "Received: float64"),
        ("y_test", lambda a: a[1:], "y_test must be uint8"),
        ("y_train", lambda a: a.astype("int64"), "Received: int64"),
        ("instance_test", lambda a: a[:, None], "instance_test must be"),
        ("y_train", lambda a: a + 1, "do not hold the toys"),
        ("y_train", lambda a: changed(a, 0, (a[0] + 1) % 5), "do not hold"),
        ("instance_train", lambda a: a + 1, r"do not hold the toys \(4, 6\)"),
        ("instance_test", lambda a: changed(a, 0, 5 - a[0]), "equally often"),
    ],
)
def test_read_copy_refuses(jpeg, key, change, message):
    write_copy(jpeg, **{key: change(copy_arrays()[key])})
    with pytest.raises(DataError, match=message):
        read_copy(jpeg / "smallnorb_32.npz", PARTS)


def test_read_copy_stretches_each_camera(tmp_path):
    x = np.full_like(copy_arrays()["x_train"], 7)
    x[3, 4, 5, 0], x[3, 4, 5, 1] = 9, 47
    x[3, 0, 0, 1] = 27
    write_copy(tmp_path, x_train=x)
    path = tmp_path / "smallnorb_32.npz"
    arrays = read_copy(path, PARTS, stretch=True)
    assert (arrays["x_train"][3, 4, 5] == 255).all()
    assert arrays["x_train"][3, 0, 0].tolist() == [0, 128]
    # Nothing to stretch.
    assert not arrays["x_train"][0].any()
    plain = read_copy(path, PARTS)
    assert plain["x_train"][0, 0, 0, 0] == 7
    low, high = (
        level(axis=(1, 2), keepdims=True)
        for level in (plain["x_test"].min, plain["x_test"].max)
    )
    expected = (plain["x_test"].astype(float) - low) * 255 / (high - low)
    assert abs(arrays["x_test"] - expected).max() <= 0.5001


def test_read_copy_refuses_a_truncated_file(jpeg):
    path = jpeg / "smallnorb_32.npz"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match="not a readable .npz file"):
        read_copy(path, PARTS)


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
def test_preprocess_is_the_formula(seed, test_mean):
    received = preprocess(*PIXELS, NorbPreprocessing(seed, test_mean))
    expected = by_formula(*PIXELS, seed, test_mean == "own")
    for x, e in zip(received, expected, strict=True):
        assert x.dtype == np.float32
        np.testing.assert_allclose(x, e, rtol=0, atol=1e-6)


def test_preprocess_by_hand():
    # Two images of two pixels, once without noise. The mean over the images is
    # (20, 60) / 256; what is left of image 0 is (-20, 20) / 256, standard
    # deviation 20 / 256. For the test image (30, 40) - (20, 60) = (10, -20),
    # less its mean of -5, is (15, -15).
    train = np.array([[0, 80], [40, 40]], "uint8").reshape(2, 1, 1, 2)
    test = np.array([[30, 40]], "uint8").reshape(1, 1, 1, 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(norb.np.random, "default_rng", lambda seed: NoNoise())
        x_train, x_test = preprocess(train, test)
    assert x_train.ravel().tolist() == [-1, 1, 1, -1]
    assert x_test.ravel().tolist() == [1, -1]


class NoNoise:
    def random(self, shape):
        return np.zeros(shape)


def test_preprocess_in_blocks(monkeypatch):
    whole = preprocess(*PIXELS)
    monkeypatch.setattr(norb, "_BLOCK", 3)
    for x, e in zip(preprocess(*PIXELS), whole, strict=True):
        np.testing.assert_array_equal(x, e)


def test_test_images_do_not_depend_on_each_other_by_default():
    changed_test = PIXELS[1].copy()
    changed_test[1:] = 255 - changed_test[1:]
    for test_mean, same in (("training", True), ("own", False)):
        setting = NorbPreprocessing(test_mean=test_mean)
        _, a = preprocess(*PIXELS, setting)
        _, b = preprocess(PIXELS[0], changed_test, setting)
        assert np.array_equal(a[0], b[0]) == same


def test_preprocess_depends_on_the_seed():
    a, _ = preprocess(*PIXELS, NorbPreprocessing(seed=1))
    b, _ = preprocess(*PIXELS, NorbPreprocessing(seed=2))
    # Noise of one grey level moves values that have a deviation of 74 of them.
    assert 1e-4 < abs(a - b).max() < 0.1


def test_preprocess_refuses_a_single_image():
    # It is its own mean, and nothing is left of it.
    with pytest.raises(ValueError, match="image 0 has no contrast"):
        preprocess(PIXELS[0][:1], PIXELS[1])
    with pytest.raises(ValueError, match="Received: 1 images"):
        preprocess(*(x[:1] for x in PIXELS), NorbPreprocessing(0, "own"))


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": -1},
        {"seed": 0.5},
        {"seed": True},
        {"test_mean": "test"},
        {"test_mean": None},
        {"stretch": 1},
    ],
)
def test_preprocessing_refuses(changes):
    (name,) = changes
    with pytest.raises(ValueError, match=f"Received: {name}="):
        NorbPreprocessing(**changes)


# Loading.


def test_load_official(official):
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
    assert data.x_train.shape == (10, 32, 32, 2)


def test_load_copy(jpeg, official):
    data = load_norb(jpeg, parts=PARTS)
    assert (data.name, data.title) == ("norb-jpeg", "small NORB (JPEG copy)")
    assert "JPEG" in data.source and "not lossless" in data.source
    # The same pixels, so the same images.
    other = load_norb(official, parts=PARTS)
    for key in ("x_train", "y_train", "x_test", "y_test"):
        np.testing.assert_array_equal(getattr(data, key), getattr(other, key))


def test_load_packed(official):
    plain = load_norb(official, parts=PARTS)
    for part in PARTS:
        for name in part.files:
            content = (official / name).read_bytes()
            (official / f"{name}.gz").write_bytes(gzip.compress(content, 1))
            (official / name).unlink()
    packed = load_norb(official, parts=PARTS)
    np.testing.assert_array_equal(packed.x_test, plain.x_test)
    assert packed.title == "small NORB"


def test_load_with_the_paper_codes_mean(official):
    setting = NorbPreprocessing(seed=3, test_mean="own")
    data = load_norb(official, setting, PARTS)
    _, x_test = preprocess(*PIXELS, setting)
    np.testing.assert_array_equal(data.x_test, x_test)
    assert "each set's own mean" in data.source
    assert "seed 3" in data.source


def test_official_files_win(official):
    write_copy(official)
    assert load_norb(official, parts=PARTS).name == "norb"


def test_a_copy_does_not_stand_in_for_missing_files(official):
    write_copy(official)
    name = f"{TEST.prefix}-cat.mat"
    (official / name).unlink()
    with pytest.raises(DataError, match=f"only some of .*: {name}. Add"):
        load_norb(official, parts=PARTS)


def test_nothing_there(tmp_path, home, monkeypatch):
    with pytest.raises(DataError) as failure:
        load_norb(tmp_path)
    message = str(failure.value)
    for part in (
        str(tmp_path),
        "smallnorb-5x46789x9x18x6x2x96x96-training-dat.mat (447,897,624 bytes)",
        "smallnorb-5x01235x9x18x6x2x96x96-testing-info.mat (388,820 bytes)",
        "smallnorb_32.npz",
        "https://",
        "--data-dir",
    ):
        assert part in message
    monkeypatch.setenv("GAR_KERAS_DATA", str(tmp_path / "data"))
    with pytest.raises(DataError, match=str(tmp_path / "data")):
        load_norb()


def test_bad_files_leave_no_cache(official):
    rewrite(official, TEST, "cat", ARRAYS[TEST][1][::-1])
    for _ in range(2):
        with pytest.raises(DataError, match="do not name every"):
            load_norb(official, parts=PARTS)
    assert not list(official.glob("*.h5"))


@pytest.fixture
def runs(monkeypatch):
    """Counts how often the preprocessing is run."""
    runs = []
    original = norb.preprocess

    def counted(*args):
        runs.append(args)
        return original(*args)

    monkeypatch.setattr(norb, "preprocess", counted)
    return runs


def test_preprocessing_is_run_once(official, runs):
    first = load_norb(official, parts=PARTS)
    again = load_norb(official, parts=PARTS)
    assert len(runs) == 1
    for key in ("x_train", "y_train", "x_test", "y_test"):
        np.testing.assert_array_equal(
            getattr(first, key), getattr(again, key), strict=True
        )


def test_preprocessing_is_run_again_for_other_settings(official, runs):
    for setting in (
        NorbPreprocessing(),
        NorbPreprocessing(seed=1),
        NorbPreprocessing(test_mean="own"),
        NorbPreprocessing(stretch=True),
        NorbPreprocessing(),
    ):
        data = load_norb(official, setting, PARTS)
        assert ("stretched" in data.source) == setting.stretch
    assert len(runs) == 4


def test_files_made_before_the_stretch_could_be_chosen_stay_good(
    jpeg, monkeypatch
):
    received = []
    monkeypatch.setattr(
        norb, "fingerprint", lambda paths, s: received.append(s) or "0" * 64
    )
    load_norb(jpeg, parts=PARTS)
    assert received[0]["preprocessing"] == {"seed": 0, "test_mean": "training"}


def test_preprocessing_is_run_again_for_another_version(
    official, runs, monkeypatch
):
    load_norb(official, parts=PARTS)
    monkeypatch.setattr(norb, "_VERSION", norb._VERSION + 1)
    load_norb(official, parts=PARTS)
    assert len(runs) == 2


@pytest.mark.parametrize("kind", ["dat", "cat", "info"])
def test_a_change_of_any_file_is_noticed(official, runs, kind):
    load_norb(official, parts=PARTS)
    # Two pairs of one class change places in all three files, or a pixel does.
    dat, cat, info = (a.copy() for a in ARRAYS[TRAIN])
    if kind == "dat":
        dat[0, 0, 1, 1] ^= 1
    else:
        i, j = (0, 1) if kind == "cat" else np.flatnonzero(cat == cat[0])
        cat[[i, j]], info[[i, j]] = cat[[j, i]], info[[j, i]]
    for name, array in zip(TRAIN.files, (dat, cat, info), strict=True):
        (official / name).write_bytes(matrix_bytes(array))
    data = load_norb(official, parts=PARTS)
    assert len(runs) == 2
    assert data.y_train.tolist() == cat.tolist()


def test_other_parts_do_not_use_the_cache(official):
    load_norb(official, parts=PARTS)
    parts = (replace(TRAIN, azimuths=(32,)), TEST)
    with pytest.raises(DataError, match="do not name every"):
        load_norb(official, parts=parts)


def test_a_truncated_cache_is_made_anew(jpeg, runs):
    whole = load_norb(jpeg, parts=PARTS)
    (path,) = jpeg.glob("norb-jpeg-*.h5")
    path.write_bytes(path.read_bytes()[:-1000])
    again = load_norb(jpeg, parts=PARTS)
    np.testing.assert_array_equal(again.x_test, whole.x_test)
    assert len(runs) == 2


def test_a_cache_with_an_altered_value_is_made_anew(jpeg, runs):
    whole = load_norb(jpeg, parts=PARTS)
    (path,) = jpeg.glob("norb-jpeg-*.h5")
    content = bytearray(path.read_bytes())
    content[content.index(whole.x_test[3].tobytes())] ^= 1
    path.write_bytes(content)
    again = load_norb(jpeg, parts=PARTS)
    np.testing.assert_array_equal(again.x_test, whole.x_test)
    assert len(runs) == 2


def test_parts_are_described():
    part = NorbPart("a", (1, 2), (0, 1), (0, 2), (3,))
    assert part.conditions == ((1, 2), (0, 1), (0, 2), (3,))
    assert len(part) == 5 * 2 * 2 * 2 * 1
