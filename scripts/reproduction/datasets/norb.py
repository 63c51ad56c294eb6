"""Small NORB: stereo pairs of toys, from the official files or a JPEG copy.

For pixels `p` in 0..255 and noise `u` from U(0, 1), the preprocessing is that
of the paper (section 4):

    x = (p + u) / 256
    x = x - mean of x over the training images, for each pixel and camera
    x = (x - mean(x)) / std(x), for each pair of images by itself

What the authors' code does otherwise is told in docs/differences.md.
"""

import gzip
import zlib

import numpy as np

from gar_keras.datasets.data_files import (
    ARRAYS,
    check_md5,
    data_folder,
    read_npz,
)
from gar_keras.datasets.dataset import DataError, Dataset

HOME = "https://cs.nyu.edu/~ylclab/data/norb-v1.0-small/"
COPY = "smallnorb_32.npz"
COPY_MD5 = "9d82b4d0a8c0d498b73f2d2948c2e886"

# The official files: images and labels of both parts.
_TRAINING = "smallnorb-5x46789x9x18x6x2x96x96-training"
_TESTING = "smallnorb-5x01235x9x18x6x2x96x96-testing"
# The MD5, unpacked, that several projects on the web have for them.
MD5 = {
    f"{_TRAINING}-dat.mat.gz": "8138a0902307b32dfa0025a36dfa45ec",
    f"{_TRAINING}-cat.mat.gz": "fd5120d3f770ad57ebe620eb61a0b633",
    f"{_TESTING}-dat.mat.gz": "e9920b7f7b2869a8f1a12e945b2c166c",
    f"{_TESTING}-cat.mat.gz": "fd5120d3f770ad57ebe620eb61a0b633",
}

# Element types by the numbers at the head of NORB's files.
MAGIC = {0x1E3D4C54: "<i4", 0x1E3D4C55: "u1"}

# Seed of the noise.
SEED = 0

# Images standardized at a time.
_BLOCK = 500


def load_norb(data_dir=None):
    """Loads small NORB from the official files, `.mat.gz` as published.

    The 96x96 images are reduced to 32x32 by taking rows and columns 1, 4, 7
    and so on, the middle of every three: the nearest neighbours.

    Args:
        data_dir: Folder that holds the files; see `data_folder`.

    Returns:
        A `Dataset` with float32 images `(24300, 32, 32, 2)`, whose channels
        are the left and the right camera.

    Raises:
        DataError: if a file is missing or damaged.
    """
    folder = data_folder(data_dir)
    arrays = []
    for name, md5 in MD5.items():
        array = read_matrix(folder / name, md5)
        if name.endswith("-dat.mat.gz"):
            nearest = array[:, :, 1::3, 1::3].transpose(0, 2, 3, 1)
            array = np.ascontiguousarray(nearest)
        arrays.append(array)
    return _preprocessed(
        "norb",
        "small NORB",
        *arrays,
        "small NORB, official files, 96x96 to 32x32 (nearest)",
    )


def load_norb_jpeg(data_dir=None):
    """The same from `smallnorb_32.npz`, a copy that was decoded from JPEG."""
    copy = read_npz(data_folder(data_dir) / COPY, ARRAYS, COPY_MD5)
    title = "small NORB (JPEG copy)"
    return _preprocessed(
        "norb-jpeg",
        title,
        *(copy[name] for name in ARRAYS),
        f"{title}: the official split at 32x32, decoded from JPEG, not "
        "lossless",
    )


def _preprocessed(name, title, x, y, x_test, y_test, source):
    """A `Dataset` of the pixels and labels of both parts."""
    x, x_test = preprocess(x, x_test)
    return Dataset(
        name,
        title,
        x,
        y.astype("int64"),
        x_test,
        y_test.astype("int64"),
        num_classes=5,
        source=f"{source}; U(0, 1) noise (seed {SEED}), the training images' "
        "mean subtracted from both sets feature by feature, each pair of "
        "images standardized",
    )


def read_matrix(path, md5):
    """The array of a gzipped file in NORB's binary matrix format.

    All numbers are little-endian: a magic number that names the element type,
    the number of dimensions, the dimensions (at least three are stored, even
    for a vector), and the elements, the last index changing fastest.
    """
    if not path.exists():
        raise DataError(
            f"{path} is missing. Put the four files of small NORB there, from "
            f"{HOME}. --data-dir names another folder."
        )
    content = path.read_bytes()
    try:
        content, what = gzip.decompress(content), f"{path}, unpacked,"
    except (OSError, EOFError, zlib.error) as error:
        # The bytes as they are have another MD5.
        what = f"{path} ({error})"
    check_md5(content, md5, what)
    magic, ndim = np.frombuffer(content, "<i4", 2)
    shape = np.frombuffer(content, "<i4", ndim, offset=8)
    begin = 8 + 4 * max(3, ndim)
    return np.frombuffer(content, MAGIC[magic], offset=begin).reshape(shape)


def preprocess(x_train, x_test):
    """The preprocessing, from uint8 pixels to float32; computed in float64."""
    rng = np.random.default_rng(SEED)

    def dequantized(pixels):
        x = rng.random(pixels.shape)
        x += pixels
        x /= 256
        return x

    def standardized(x):
        out = np.empty(x.shape, "float32")
        # In blocks, for memory: `x` is float64.
        for begin in range(0, len(x), _BLOCK):
            block = x[begin : begin + _BLOCK] - mean
            block -= block.mean(axis=(1, 2, 3), keepdims=True)
            block /= block.std(axis=(1, 2, 3), keepdims=True)
            out[begin : begin + _BLOCK] = block
        return out

    train = dequantized(x_train)
    mean = train.mean(axis=0)
    train = standardized(train)
    return train, standardized(dequantized(x_test))
