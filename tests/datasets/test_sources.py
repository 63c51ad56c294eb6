"""Image sources: what they take is what an array in memory would give."""

import pickle

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gar_keras.datasets.base import DataError
from gar_keras.datasets.sources import (
    ConcatenatedImages,
    HDF5Images,
    check_indices,
)
from gar_keras.utils.validation import is_source

M = 37
IMAGES = np.random.default_rng(0).integers(0, 256, (M, 2, 3, 1), dtype="uint8")
FIRST = 255 - IMAGES[:5]


@pytest.fixture(scope="module", params=[(1,), (4,), (16,), (37,), None])
def path(request, tmp_path_factory):
    """A file of IMAGES, in chunks of 1, 4, 16 or all images, or without."""
    path = tmp_path_factory.mktemp("images") / "images.h5"
    chunks = None if request.param is None else (*request.param, 2, 3, 1)
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=IMAGES, chunks=chunks)
        file["y"] = np.zeros((3, 2, 3, 1))
        file["flat"] = np.zeros((3, 2), "uint8")
        file.create_group("group")
    return path


@pytest.fixture(scope="module")
def images(path):
    images = HDF5Images(path)
    yield images
    images.close()


@pytest.fixture(scope="module")
def both(images):
    return ConcatenatedImages(FIRST, images)


def test_hdf5_images_look_like_an_array(images):
    assert is_source(images)
    assert len(images) == M
    assert images.shape == IMAGES.shape
    assert images.dtype == np.uint8
    assert "37 images" in repr(images)


@settings(max_examples=25, deadline=None)
@given(indices=st.lists(st.integers(0, M - 1), max_size=60))
def test_hdf5_images_take(images, indices):
    taken = images.take(indices)
    expected = IMAGES[np.array(indices, int)]
    np.testing.assert_array_equal(taken, expected, strict=True)


@settings(max_examples=25, deadline=None)
@given(indices=st.lists(st.integers(0, M + 4), max_size=60))
def test_concatenated_images_take(both, indices):
    taken = both.take(indices)
    expected = np.concatenate([FIRST, IMAGES])[np.array(indices, int)]
    np.testing.assert_array_equal(taken, expected, strict=True)


def test_concatenated_images_look_like_an_array(both):
    assert is_source(both)
    assert len(both) == M + 5
    assert both.shape == (M + 5, 2, 3, 1)
    assert both.dtype == np.uint8
    assert "5 images in memory and <HDF5Images: 37" in repr(both)


def test_concatenated_images_nest(both):
    nested = ConcatenatedImages(IMAGES[:2], both)
    np.testing.assert_array_equal(
        nested.take([43, 2, 0]), np.stack([IMAGES[36], FIRST[0], IMAGES[0]])
    )


@pytest.mark.parametrize("dtype", ["uint8", "int32", "uint64", "int64"])
def test_indices_of_any_integer_dtype(both, dtype):
    indices = np.array([41, 0, 5], dtype)
    np.testing.assert_array_equal(
        both.take(indices), np.stack([IMAGES[36], FIRST[0], IMAGES[0]])
    )


@pytest.mark.parametrize("size", [37, 42])
def test_taken_images_are_new(images, both, size):
    source = {37: images, 42: both}[size]
    before = source.take([0])
    source.take([0])[:] = 7
    np.testing.assert_array_equal(source.take([0]), before)


@pytest.mark.parametrize("indices", [[-1], [0, 37], [2**40], [-(2**40)]])
def test_hdf5_images_refuse_indices_out_of_bounds(images, indices):
    with pytest.raises(IndexError, match=r"must lie in 0..36. Received"):
        images.take(indices)


def test_concatenated_images_refuse_indices_out_of_bounds(both):
    with pytest.raises(IndexError, match="must lie in 0..41. Received.* 42$"):
        both.take([0, 42])
    with pytest.raises(IndexError, match="indices from -1 to 0"):
        both.take([0, -1])


@pytest.mark.parametrize(
    "indices", [[0.0], [True, False], [[0, 1]], 3, ["0"], np.zeros((0, 2), int)]
)
def test_indices_refused(images, both, indices):
    for source in (images, both):
        with pytest.raises(ValueError, match="integers in one dimension"):
            source.take(indices)


def test_check_indices_of_nothing():
    assert check_indices([], 0).dtype == np.int64
    with pytest.raises(IndexError):
        check_indices([0], 0)


def test_hdf5_images_in_another_process(images):
    copy = pickle.loads(pickle.dumps(images))
    images_of_copy = copy.take([36, 1])
    copy.close()
    np.testing.assert_array_equal(images_of_copy, IMAGES[[36, 1]])
    np.testing.assert_array_equal(images.take([3]), IMAGES[[3]])


def test_hdf5_images_refuse_other_files(path, tmp_path):
    with pytest.raises(DataError, match="No images could be read"):
        HDF5Images(tmp_path / "missing.h5")
    (tmp_path / "short.h5").write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match="truncated"):
        HDF5Images(tmp_path / "short.h5")
    for key in ("z", "group"):
        with pytest.raises(DataError, match=f"no data set '{key}'"):
            HDF5Images(path, key)
    with pytest.raises(DataError, match="Received: float64"):
        HDF5Images(path, "y")
    with pytest.raises(DataError, match=r"Received: uint8 \(3, 2\)"):
        HDF5Images(path, "flat")


def test_hdf5_images_refuse_what_is_not_stored(tmp_path):
    path = tmp_path / "images.h5"
    with h5py.File(path, "w") as file:
        shape = (1, 10**6, 10**6, 3)
        x = file.create_dataset("x", shape, "uint8", chunks=(1, 64, 64, 3))
        x[0, :64, :64] = 1
    with pytest.raises(
        DataError, match=f"{path}: 'x' claims 3,000.* only 12,288 are stored"
    ):
        HDF5Images(path)


def test_hdf5_images_read_no_other_file(path, tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(IMAGES.tobytes())
    virtual = h5py.VirtualLayout(IMAGES.shape, "uint8")
    virtual[:] = h5py.VirtualSource(path, "x", IMAGES.shape)
    whole = tmp_path / "whole.h5"
    with h5py.File(whole, "w") as file:
        file["link"] = h5py.ExternalLink(path, "x")
        file.create_virtual_dataset("virtual", virtual)
        file.create_dataset(
            "external",
            IMAGES.shape,
            "uint8",
            external=[(str(secret), 0, IMAGES.nbytes)],
        )
    for key in ("link", "virtual", "external"):
        with pytest.raises(DataError, match=f"'{key}' has .* in other files"):
            HDF5Images(whole, key)


def test_hdf5_images_refuse_a_damaged_chunk(tmp_path):
    path = tmp_path / "images.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset(
            "x", data=IMAGES, chunks=(4, 2, 3, 1), fletcher32=True
        )
    content = bytearray(path.read_bytes())
    content[content.index(IMAGES[9].tobytes())] ^= 1
    path.write_bytes(content)
    images = HDF5Images(path)
    np.testing.assert_array_equal(images.take([7, 12]), IMAGES[[7, 12]])
    with pytest.raises(DataError, match="Delete the file and load"):
        images.take([7, 8])
    images.close()


def test_hdf5_images_refuse_when_closed(path):
    images = HDF5Images(path)
    images.close()
    with pytest.raises(DataError, match="No images could be read"):
        images.take([0])


class Source:
    """The least that an image source is."""

    def __init__(self, array):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype

    def __len__(self):
        return len(self.array)

    def take(self, indices):
        return self.array[indices]


@pytest.mark.parametrize(
    "first, second, message",
    [
        (IMAGES, IMAGES, "Join two arrays"),
        (Source(IMAGES), Source(IMAGES), "first must be a NumPy array"),
        (IMAGES.tolist(), Source(IMAGES), "first must be a NumPy array"),
        (IMAGES, Source(IMAGES[:, :1]), "same shape and dtype"),
        (IMAGES, Source(IMAGES.astype("float32")), "same shape and dtype"),
        (IMAGES[:0], Source(IMAGES), "first must hold at least one"),
        (IMAGES, Source(IMAGES[:0]), "second must hold at least one"),
    ],
)
def test_concatenated_images_refuse(first, second, message):
    with pytest.raises(ValueError, match=message):
        ConcatenatedImages(first, second)
