"""Small NORB: stereo pairs of toys, from the official files or a JPEG copy."""

import gzip
import itertools
import math
import zlib
from dataclasses import asdict, dataclass

import numpy as np

from gar_keras.datasets.base import DataError, Dataset
from gar_keras.datasets.files import (
    check_md5,
    data_folder,
    made_once,
    read_npz,
    sha256_of,
)
from gar_keras.utils.validation import check_choice, check_count

TITLE = "small NORB"
COPY_TITLE = "small NORB (JPEG copy)"
HOME = "https://cs.nyu.edu/~ylclab/data/norb-v1.0-small/"
COPY = "smallnorb_32.npz"
CLASSES = ("animal", "human", "airplane", "truck", "car")
SHAPE = (32, 32, 2)

# Numbers at the head of NORB's files, by the type of the elements.
MAGIC = {"int32": 0x1E3D4C54, "uint8": 0x1E3D4C55}

# To be raised when `preprocess` changes what it returns.
_VERSION = 1
_KEYS = ("x_train", "y_train", "x_test", "y_test")
# Images standardized at a time.
_BLOCK = 500


@dataclass(frozen=True)
class NorbPart:
    """The training or the test half of small NORB."""

    # What the names of its three files begin with.
    prefix: str
    # The toys of each class that are in this half.
    instances: tuple
    # Its stereo pairs, as many of each toy.
    images: int = 24_300
    # MD5 of the files, unpacked: dat, cat, info. Empty if unknown.
    md5: tuple = ("", "", "")

    @property
    def files(self):
        """Dtype and shape of the array in each file, by its name."""
        m = self.images
        forms = ("uint8", (m, 2, 96, 96)), ("int32", (m,)), ("int32", (m, 4))
        names = (f"{self.prefix}-{kind}.mat" for kind in ("dat", "cat", "info"))
        return dict(zip(names, forms, strict=True))


# The MD5 that several projects on the web have for the official files.
TRAINING = NorbPart(
    "smallnorb-5x46789x9x18x6x2x96x96-training",
    instances=(4, 6, 7, 8, 9),
    md5=(
        "8138a0902307b32dfa0025a36dfa45ec",
        "fd5120d3f770ad57ebe620eb61a0b633",
        "19faee774120001fc7e17980d6960451",
    ),
)
TESTING = NorbPart(
    "smallnorb-5x01235x9x18x6x2x96x96-testing",
    instances=(0, 1, 2, 3, 5),
    md5=(
        "e9920b7f7b2869a8f1a12e945b2c166c",
        "fd5120d3f770ad57ebe620eb61a0b633",
        "7c5b871cc69dcadec1bf6a18141f5edc",
    ),
)


@dataclass(frozen=True)
class NorbPreprocessing:
    """Settings of the preprocessing of the 32x32 images.

    Args:
        seed: Seed of the noise.
        test_mean: Which feature-wise mean is subtracted from the test images:
            `"training"`, that of the training images, or `"own"`, that of the
            test images. The paper's code did the latter, so that what it
            reports for one test image depended on all the others.
        stretch: Whether the grey levels of each camera's image are stretched
            to 0..255 by themselves first, as the paper's code did: over those
            of the 96x96 image, or of the 32x32 one in the JPEG copy.
    """

    seed: int = 0
    test_mean: str = "training"
    stretch: bool = False

    def __post_init__(self):
        check_count("seed", self.seed, least=0)
        check_choice("test_mean", self.test_mean, ("training", "own"))
        check_choice("stretch", self.stretch, (True, False))


DEFAULT = NorbPreprocessing()


def load_norb(data_dir=None, preprocessing=DEFAULT, parts=(TRAINING, TESTING)):
    """Loads small NORB at 32x32, preprocessed for training (paper, section 4).

    Reads the six official files, `.mat` or `.mat.gz`, or else
    `smallnorb_32.npz`, a copy of the images at 32x32 that was decoded from
    JPEG. The result is kept (400 MB; see `gar_keras.datasets.files` for
    where), so that only the first call works it out.

    For pixels `p` in 0..255 and noise `u` from U(0, 1), the preprocessing is

        x = (p + u) / 256
        x = x - mean of x over the training images, for each pixel and camera
        x = (x - mean(x)) / std(x), for each pair of images by itself

    In two points the paper's code did otherwise: see `NorbPreprocessing`.

    Args:
        data_dir: Folder that holds the files; see `data_folder`.
        preprocessing: `NorbPreprocessing`.
        parts: The training and the test `NorbPart` that the files must hold.

    Returns:
        A `Dataset` with float32 images `(24300, 32, 32, 2)`, whose channels
        are the left and the right camera, called `"norb"` if it was made from
        the official files, and `"norb-jpeg"` if it was made from the copy.

    Raises:
        DataError: if no files are there, or some only, or damaged ones.
    """
    paths = _find(data_folder(data_dir), parts)
    is_copy = paths[0].name == COPY
    name = "norb-jpeg" if is_copy else "norb"

    def make():
        read = read_copy if is_copy else read_official
        x, y, x_test, y_test = read(paths, parts, preprocessing.stretch)
        x, x_test = preprocess(x, x_test, preprocessing)
        return dict(zip(_KEYS, (x, y, x_test, y_test), strict=True))

    settings = {
        "version": _VERSION,
        "parts": [asdict(part) for part in parts],
        "preprocessing": asdict(preprocessing),
        "files": {path.name: sha256_of(path) for path in paths},
    }
    kept = made_once(name, settings, _KEYS, make)
    return Dataset(
        name=name,
        title=COPY_TITLE if is_copy else TITLE,
        num_classes=len(CLASSES),
        source=_describe(is_copy, preprocessing),
        # In memory, for speed.
        **{key: np.array(array) for key, array in kept.items()},
    )


def preprocess(x_train, x_test, preprocessing=DEFAULT):
    """The preprocessing of `load_norb`, from uint8 pixels to float32 inputs.

    All but the stretch, which needs the images before they are reduced.
    Computed in float64.

    Example:

    >>> pixels = np.random.default_rng(0).integers(0, 256, (9, 32, 32, 2))
    >>> x_train, x_test = preprocess(pixels, pixels)
    >>> x_train.dtype.name, bool(abs(x_train.mean(axis=(1, 2, 3))).max() < 1e-6)
    ('float32', True)
    """
    rng = np.random.default_rng(preprocessing.seed)
    train = _dequantized(x_train, rng)
    mean = train.mean(axis=0)
    train = _standardized(train, mean)
    test = _dequantized(x_test, rng)
    if preprocessing.test_mean == "own":
        mean = test.mean(axis=0)
    return train, _standardized(test, mean)


def read_matrix(path, dtype, shape, md5=""):
    """The array of a file in NORB's binary matrix format, or of one gzipped.

    All numbers are little-endian: a magic number that names the element type,
    the number of dimensions, the dimensions (at least three are stored, even
    for a vector), and the elements, the last index changing fastest.

    Raises:
        DataError: if it is not of this dtype and shape, or of another MD5.
    """
    content = _unpacked(path)
    begin = 4 * (2 + max(3, len(shape)))
    size = begin + math.prod(shape) * np.dtype(dtype).itemsize
    head = np.array([MAGIC[dtype], len(shape), *shape], "<i4").tobytes()
    if len(content) != size or not content.startswith(head):
        raise DataError(
            f"{path} is not the file it should be: it was truncated or "
            f"altered. Received: {len(content):,} bytes, the first "
            f"{content[: len(head)].hex()}; expected {size:,}, {head.hex()}. "
            f"Put a clean copy in its place, from {HOME}"
        )
    if md5:
        check_md5(content, md5, f"{path}, unpacked,")
    dtype = np.dtype(dtype).newbyteorder("<")
    return np.frombuffer(content, dtype, offset=begin).reshape(shape)


def stretched(pixels, low, high):
    """Grey levels on 0..255, as `scipy.misc.bytescale` puts float images.

        floor((p - low) * 255 / (high - low) + 1/2)

    Where `high` is `low`, all is 0.

    Example:

    >>> stretched(np.array([50, 99, 100, 150], "uint8"), 50, 150)
    array([  0, 125, 128, 255], dtype=uint8)
    """
    low, high = (np.asarray(level, "float32") for level in (low, high))
    # In float32, as there.
    out = pixels - low
    out *= 255 / np.maximum(high - low, 1)
    out += 0.5
    return out.astype("uint8")


def read_official(paths, parts, stretch=False):
    """Small NORB from its six official files: images and labels of both parts.

    The 96x96 images are reduced to 32x32 by taking rows and columns 1, 4, 7
    and so on, the middle of every three: the nearest neighbours.
    """
    arrays = []
    for part, its_paths in zip(parts, (paths[:3], paths[3:]), strict=True):
        images, labels, info = (
            read_matrix(path, *form, md5)
            for path, form, md5 in zip(
                its_paths, part.files.values(), part.md5, strict=True
            )
        )
        _check_toys(its_paths[2], labels, info[:, 0], part)
        nearest = images[:, :, 1::3, 1::3]
        if stretch:
            low = images.min(axis=(2, 3), keepdims=True)
            high = images.max(axis=(2, 3), keepdims=True)
            nearest = stretched(nearest, low, high)
        nearest = np.ascontiguousarray(nearest.transpose(0, 2, 3, 1))
        arrays += [nearest, labels.astype("int64")]
    return arrays


def read_copy(paths, parts, stretch=False):
    """The same from `smallnorb_32.npz`, the copy at 32x32 decoded from JPEG."""
    (path,) = paths
    arrays = []
    for name, part in zip(("train", "test"), parts, strict=True):
        names = [f"{kind}_{name}" for kind in ("x", "y", "instance")]
        images, labels, instances = read_npz(path, names).values()
        shape = (part.images, *SHAPE)
        if images.shape != shape or images.dtype != np.uint8:
            raise DataError(
                f"x_{name} in {path} must be uint8 {shape}. Received: "
                f"{images.dtype} {images.shape}"
            )
        _check_toys(path, labels, instances, part)
        if stretch:
            low = images.min(axis=(1, 2), keepdims=True)
            high = images.max(axis=(1, 2), keepdims=True)
            images = stretched(images, low, high)
        arrays += [images, labels.astype("int64")]
    return arrays


def _find(folder, parts):
    """The paths of the six official files, or that of the copy."""
    names = [name for part in parts for name in part.files]
    paths = tuple(_packed_or_not(folder / name) for name in names)
    missing = [path.name for path in paths if not path.exists()]
    if not missing:
        return paths
    if len(missing) < len(paths) or not (folder / COPY).exists():
        raise DataError(
            f"{folder} holds no small NORB, or only some of it. Missing: "
            f"{', '.join(missing)}. Put the files there, as they are or with "
            f".gz, from {HOME}, or {COPY}, the JPEG copy at 32x32, alone. "
            "--data-dir names another folder."
        )
    return (folder / COPY,)


def _packed_or_not(path):
    packed = path.with_name(f"{path.name}.gz")
    return packed if packed.exists() and not path.exists() else path


def _unpacked(path):
    try:
        with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as f:
            return f.read()
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(
            f"{path} cannot be read: {error}. Put a clean copy in its place, "
            f"from {HOME}"
        ) from error


def _check_toys(path, labels, instances, part):
    """Raises unless each toy of each class is there equally often."""
    toys = np.column_stack([labels, instances])
    found, counts = np.unique(toys, axis=0, return_counts=True)
    expected = itertools.product(range(len(CLASSES)), part.instances)
    if [*map(tuple, found)] != sorted(expected) or len(set(counts)) > 1:
        raise DataError(
            f"{path} does not hold the toys {part.instances} of "
            f"{len(CLASSES)} classes equally often. Put a clean copy in its "
            "place."
        )


def _dequantized(pixels, rng):
    x = rng.random(pixels.shape)
    x += pixels
    x /= 256
    return x


def _standardized(x, mean):
    out = np.empty(x.shape, "float32")
    # In blocks, for memory: `x` is float64.
    for begin in range(0, len(x), _BLOCK):
        block = x[begin : begin + _BLOCK] - mean
        block -= block.mean(axis=(1, 2, 3), keepdims=True)
        std = block.std(axis=(1, 2, 3), keepdims=True)
        if not std.all():
            raise ValueError(
                f"Image {begin + int(std.argmin())} has no contrast left "
                "without the mean over the images. Received: "
                f"{len(x)} images. Give more of them."
            )
        out[begin : begin + _BLOCK] = block / std
    return out


def _describe(is_copy, preprocessing):
    """Which files, and what was done to their images: for the records."""
    quality = "small NORB, official files, 96x96 to 32x32 (nearest)"
    if is_copy:
        quality = (
            "small NORB (JPEG copy): the official split at 32x32, decoded "
            "from JPEG, not lossless"
        )
    mean = "the training images' mean subtracted from both sets"
    if preprocessing.test_mean == "own":
        mean = "each set's own mean subtracted"
    stretch = ""
    if preprocessing.stretch:
        stretch = "each camera's image stretched to 0..255 by itself, "
    return (
        f"{quality}; {stretch}U(0, 1) noise (seed {preprocessing.seed}), "
        f"{mean} feature by feature, each pair of images standardized"
    )
