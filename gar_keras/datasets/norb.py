"""Small NORB: stereo pairs of toys, from the official files or a JPEG copy."""

import contextlib
import functools
import gzip
import itertools
import math
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass

import h5py
import numpy as np

from gar_keras.datasets.base import DataError, Dataset
from gar_keras.datasets.cache import Cached, create_checked, fingerprint
from gar_keras.datasets.download import data_folder
from gar_keras.datasets.npz import Form, read_arrays
from gar_keras.utils.validation import check_count

HOME = "https://cs.nyu.edu/~ylclab/data/norb-v1.0-small/"
COPY = "smallnorb_32.npz"
CLASSES = ("animal", "human", "airplane", "truck", "car")
IMAGE_SHAPE = (32, 32, 2)

# Element types of NORB's files in the binary matrix format, little-endian.
DTYPES = {
    0x1E3D4C54: np.dtype("<i4"),
    0x1E3D4C55: np.dtype("u1"),
}
_MAX_NDIM = 8

# To be raised when `preprocess` changes what it returns.
_VERSION = 1
_PARTS = ("x_train", "y_train", "x_test", "y_test")
# Images worked on, and kept in a chunk of the cache, at a time.
_BLOCK = 500
# Bytes of a matrix read at a time.
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class NorbPart:
    """The training or the test half of small NORB.

    Every class, instance, elevation, azimuth and lighting is there once.

    Args:
        prefix: What the names of its three files begin with.
        instances: The toys of each class that are in this half.
        elevations: Camera elevations, 0 for 30 degrees, then steps of 5.
        azimuths: Turns of the toy, in units of 10 degrees.
        lightings: Numbers of the lighting conditions.

    Example:

    >>> len(TRAINING)
    24300
    """

    prefix: str
    instances: tuple
    elevations: tuple = tuple(range(9))
    azimuths: tuple = tuple(range(0, 36, 2))
    lightings: tuple = tuple(range(6))

    def __len__(self):
        return len(CLASSES) * math.prod(map(len, self.conditions))

    @property
    def conditions(self):
        """The values that the columns of the info file take."""
        return self.instances, self.elevations, self.azimuths, self.lightings

    @property
    def files(self):
        """Names and sizes in bytes of the files, unpacked: dat, cat, info."""
        sizes = (2 * 96 * 96 * len(self) + 24, 4 * len(self) + 20)
        sizes = (*sizes, 4 * 4 * len(self) + 20)
        kinds = ("dat", "cat", "info")
        names = (f"{self.prefix}-{kind}.mat" for kind in kinds)
        return dict(zip(names, sizes, strict=True))


TRAINING = NorbPart(
    "smallnorb-5x46789x9x18x6x2x96x96-training", (4, 6, 7, 8, 9)
)
TESTING = NorbPart("smallnorb-5x01235x9x18x6x2x96x96-testing", (0, 1, 2, 3, 5))


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
            of the 96x96 image, or of the 32x32 one in the JPEG copy, which
            has no other.

    Raises:
        ValueError: if a setting is none of these.
    """

    seed: int = 0
    test_mean: str = "training"
    stretch: bool = False

    def __post_init__(self):
        check_count("seed", self.seed, least=0)
        if self.test_mean not in ("training", "own"):
            raise ValueError(
                "test_mean must be 'training' or 'own'. Received: "
                f"test_mean={self.test_mean!r}"
            )
        if not isinstance(self.stretch, bool):
            raise ValueError(
                "stretch must be True or False. Received: "
                f"stretch={self.stretch!r}"
            )


@dataclass(frozen=True)
class _Source:
    """Files found in the folder, and the way to read them."""

    name: str
    title: str
    quality: str
    paths: tuple
    read: Callable


DEFAULT = NorbPreprocessing()


def load_norb(data_dir=None, preprocessing=DEFAULT, parts=(TRAINING, TESTING)):
    """Loads small NORB at 32x32, preprocessed for training (paper, section 4).

    Reads the six official files, `.mat` or `.mat.gz`, or else
    `smallnorb_32.npz`, a copy of the images at 32x32 that was decoded from
    JPEG. The result is kept as HDF5 (400 MB; see `gar_keras.datasets.cache`
    for where), so that only the first call works it out.

    For pixels `p` in 0..255 and noise `u` from U(0, 1), the preprocessing is

        x = (p + u) / 256
        x = x - mean of x over the training images, for each pixel and camera
        x = (x - mean(x)) / std(x), for each pair of images by itself

    The paper's code subtracts from the test images *their own* feature-wise
    mean; here both sets lose that of the training images unless
    `preprocessing` says otherwise. It also stretched each camera's image to
    0..255 before all else, which is an option here.

    Args:
        data_dir: Folder that holds the files; see `data_folder`.
        preprocessing: `NorbPreprocessing`.
        parts: The training and the test `NorbPart` that the files must hold.

    Returns:
        A `Dataset` with float32 images `(24300, 32, 32, 2)`, whose channels
        are the left and the right camera. It is called `"norb"`, "small
        NORB", if it was made from the official files, and `"norb-jpeg"`,
        "small NORB (JPEG copy)", if it was made from the copy.

    Raises:
        DataError: if no files are there, or some only, or damaged ones.

    Example:

    >>> norb = load_norb("data")  # doctest: +SKIP
    >>> norb.title, norb.x_train.shape  # doctest: +SKIP
    ('small NORB', (24300, 32, 32, 2))
    """
    folder = data_folder(data_dir)
    source = _find(folder, parts)
    settings = {
        "version": _VERSION,
        "parts": [asdict(part) for part in parts],
        "preprocessing": asdict(preprocessing),
    }
    if not preprocessing.stretch:
        # Files made before this could be chosen stay good.
        del settings["preprocessing"]["stretch"]
    cached = Cached(
        name=source.name,
        fingerprint=fingerprint(source.paths, settings),
        write=functools.partial(_write, source, preprocessing),
        read=_read,
    )
    arrays = cached.load(data_dir)
    return Dataset(
        name=source.name,
        title=source.title,
        num_classes=len(CLASSES),
        source=_describe(source, preprocessing),
        **arrays,
    )


def preprocess(x_train, x_test, preprocessing=DEFAULT):
    """The preprocessing of `load_norb`, from pixels to inputs.

    All but the stretch, which needs the images before they are reduced.

    Args:
        x_train: Training images `(m, 32, 32, 2)`, uint8.
        x_test: Test images, likewise.
        preprocessing: `NorbPreprocessing`.

    Returns:
        Both as float32. Computed in float64.

    Raises:
        ValueError: if an image is left without any contrast, as happens where
            there is only one.

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


def read_matrix(path):
    """Reads a file in the binary matrix format of NORB, or one gzipped.

    All numbers are little-endian: a magic number that names the element type,
    the number of dimensions, the dimensions (at least three are stored, even
    for a vector), and the elements, the last index changing fastest.

    Args:
        path: `Path` of the file. It is unpacked if it ends in `.gz`.

    Returns:
        A read-only array.

    Raises:
        DataError: if the file is not of this format, or has bytes too few or
            too many.

    Example:

    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp()) / "cat.mat"
    >>> header = [0x1E3D4C54, 1, 2, 1, 1]
    >>> _ = path.write_bytes(np.array([*header, 7, 8], "<i4").tobytes())
    >>> read_matrix(path)
    array([7, 8], dtype=int32)
    """
    with _opened(path) as stream:
        return _elements(path, stream, *_form(path, stream))


def stretched(pixels, low, high):
    """Grey levels on 0..255, as `scipy.misc.bytescale` puts float images.

        floor((p - low) * 255 / (high - low) + 1/2)

    Args:
        pixels: uint8 array.
        low: The level that becomes 0; broadcast against `pixels`.
        high: The level that becomes 255, likewise.

    Returns:
        A new uint8 array. Where `high` is `low`, all is 0.

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


def read_official(folder, part, stretch=False):
    """Reads one half of small NORB from its official files, and reduces it.

    The 96x96 images are reduced to 32x32 by taking rows and columns 1, 4, 7
    and so on, the middle of every three: the nearest neighbours.

    Args:
        folder: `Path` of the folder that holds the files.
        part: `NorbPart`.
        stretch: As in `NorbPreprocessing`.

    Returns:
        `(images, labels)`: uint8 `(m, 32, 32, 2)` and int64 `(m,)`.

    Raises:
        DataError: if a file is damaged, or if they do not fit together.
    """
    paths = [_packed_or_not(folder / name) for name in part.files]
    m = len(part)
    forms = (("uint8", (m, 2, 96, 96)), ("int32", (m,)), ("int32", (m, 4)))
    images, labels, info = (
        _read_as(path, *form) for path, form in zip(paths, forms, strict=True)
    )
    expected = itertools.product(range(len(CLASSES)), *part.conditions)
    received = np.column_stack([labels, info])
    order = np.lexsort(received.T[::-1])
    if not np.array_equal(received[order], sorted(expected)):
        raise DataError(
            f"{paths[1].name} and {paths[2].name} in {folder} do not name "
            "every class, instance, elevation, azimuth and lighting once. "
            "They are damaged, or not of one set: put clean copies of both "
            f"there, from {HOME}"
        )
    nearest = images[:, :, 1::3, 1::3]
    if stretch:
        low, high = (
            level(axis=(2, 3), keepdims=True)
            for level in (images.min, images.max)
        )
        nearest = stretched(nearest, low, high)
    nearest = nearest.transpose(0, 2, 3, 1)
    return np.ascontiguousarray(nearest), labels.astype("int64")


def read_copy(path, parts=(TRAINING, TESTING), stretch=False):
    """Reads `smallnorb_32.npz`, the copy at 32x32 decoded from JPEG.

    Args:
        path: `Path` of the file.
        parts: The training and the test `NorbPart` that it must hold.
        stretch: As in `NorbPreprocessing`.

    Returns:
        A dict: `x_train`, uint8 `(m, 32, 32, 2)`, `y_train`, int64 `(m,)`,
        `x_test` and `y_test`.

    Raises:
        DataError: if it is damaged, or holds something else.
    """
    shapes = {"x": IMAGE_SHAPE, "y": (), "instance": ()}
    parts = dict(zip(("train", "test"), parts, strict=True))
    forms = {
        f"{key}_{name}": Form(np.uint8, (len(part), *shape))
        for name, part in parts.items()
        for key, shape in shapes.items()
    }
    arrays = read_arrays(path, forms)
    for name, part in parts.items():
        toys, counts = np.unique(
            np.column_stack([arrays[f"y_{name}"], arrays[f"instance_{name}"]]),
            axis=0,
            return_counts=True,
        )
        expected = itertools.product(range(len(CLASSES)), part.instances)
        if [*map(tuple, toys)] != sorted(expected) or len(set(counts)) > 1:
            raise DataError(
                f"y_{name} and instance_{name} in {path} do not hold the toys "
                f"{part.instances} of {len(CLASSES)} classes equally often. "
                "Put a clean copy in its place."
            )
    for key in ("x_train", "x_test") if stretch else ():
        x = arrays[key]
        low, high = (
            level(axis=(1, 2), keepdims=True) for level in (x.min, x.max)
        )
        arrays[key] = stretched(x, low, high)
    labels = {key: arrays[key].astype("int64") for key in ("y_train", "y_test")}
    return {key: labels.get(key, arrays[key]) for key in _PARTS}


def _find(folder, parts):
    files = {k: v for part in parts for k, v in part.files.items()}
    paths = tuple(_packed_or_not(folder / name) for name in files)
    missing = [path.name for path in paths if not path.exists()]
    if not missing:
        return _Source(
            name="norb",
            title="small NORB",
            quality="small NORB, official files, 96x96 to 32x32 (nearest)",
            paths=paths,
            read=functools.partial(_read_both, folder, parts),
        )
    if len(missing) < len(files):
        raise DataError(
            f"{folder} holds only some of the official small NORB files. "
            f"Missing (as they are, or with .gz): {', '.join(missing)}. Add "
            f"them from {HOME}, or remove the others."
        )
    copy = folder / COPY
    if copy.exists():
        return _Source(
            name="norb-jpeg",
            title="small NORB (JPEG copy)",
            quality=(
                "small NORB (JPEG copy): the official split at 32x32, decoded "
                "from JPEG, not lossless"
            ),
            paths=(copy,),
            read=functools.partial(read_copy, copy, parts),
        )
    listed = "\n".join(f"  {k} ({v:,} bytes)" for k, v in files.items())
    raise DataError(
        f"No small NORB in {folder}. Put the official files there, as they "
        f"are or with .gz, from {HOME}\n{listed}\nor {COPY}, the JPEG copy at "
        "32x32. --data-dir names another folder."
    )


def _packed_or_not(path):
    packed = path.with_name(f"{path.name}.gz")
    return packed if packed.exists() and not path.exists() else path


def _read_both(folder, parts, stretch):
    train, test = (read_official(folder, part, stretch) for part in parts)
    return dict(zip(_PARTS, (*train, *test), strict=True))


def _read_as(path, name, shape):
    """`read_matrix`, of one form alone: no other one takes up memory."""
    with _opened(path) as stream:
        dtype, received = _form(path, stream)
        if dtype.name != name or received != shape:
            raise _bad(path, f"{dtype.name} {received}", f"{name} {shape}")
        return _elements(path, stream, dtype, shape)


@contextlib.contextmanager
def _opened(path):
    try:
        with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as f:
            yield f
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(
            f"{path} cannot be read: {error}. Put a clean copy in its place, "
            f"from {HOME}"
        ) from error


def _form(path, stream):
    """Dtype and shape, from the header."""
    magic, ndim = _header(path, stream, 2)
    if magic not in DTYPES:
        raise _bad(
            path, f"magic number 0x{magic:08X}", "one of a NORB matrix file"
        )
    if not 1 <= ndim <= _MAX_NDIM:
        raise _bad(path, f"{ndim} dimensions", f"1 to {_MAX_NDIM}")
    return DTYPES[magic], tuple(_header(path, stream, max(ndim, 3))[:ndim])


def _header(path, stream, count):
    content = stream.read(4 * count)
    if len(content) < 4 * count:
        raise _bad(path, f"{stream.tell()} bytes", "a whole header")
    return np.frombuffer(content, "<u4").tolist()


def _elements(path, stream, dtype, shape):
    """Elements behind the header, if neither more nor fewer."""
    begin, size = stream.tell(), dtype.itemsize * math.prod(shape)
    content = bytearray()
    # In blocks, and one byte more: the size is only what the header claims.
    while block := stream.read(min(_BLOCK_BYTES, size + 1 - len(content))):
        content += block
    if len(content) != size:
        more = len(content) > size
        received = min(begin + len(content), begin + size)
        raise _bad(
            path,
            f"{'more than ' if more else ''}{received:,} bytes",
            f"{begin + size:,} for {dtype.name} {shape}",
        )
    read_only = memoryview(content).toreadonly()
    return np.frombuffer(read_only, dtype).reshape(shape)


def _bad(path, received, expected):
    return DataError(
        f"{path} is not the file it should be: it was truncated or altered. "
        f"Received: {received}, expected {expected}. Put a clean copy in its "
        f"place, from {HOME}"
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
                "After the mean over the images is taken away, image "
                f"{begin + int(std.argmin())} has no contrast left, so it "
                "cannot be scaled to standard deviation 1. Received: "
                f"{len(x)} images. Give more of them."
            )
        out[begin : begin + _BLOCK] = block / std
    return out


def _write(source, preprocessing, file):
    arrays = source.read(stretch=preprocessing.stretch)
    arrays["x_train"], arrays["x_test"] = preprocess(
        arrays["x_train"], arrays["x_test"], preprocessing
    )
    for key, array in arrays.items():
        create_checked(file, key, array.shape, array.dtype, _BLOCK)[:] = array


def _read(path):
    with h5py.File(path, "r") as file:
        return {key: file[key][()] for key in _PARTS}


def _describe(source, preprocessing):
    mean = "the training images' mean subtracted from both sets"
    if preprocessing.test_mean == "own":
        mean = "each set's own mean subtracted"
    stretch = ""
    if preprocessing.stretch:
        stretch = "each camera's image stretched to 0..255 by itself, "
    return (
        f"{source.quality}; {stretch}U(0, 1) noise (seed "
        f"{preprocessing.seed}), {mean} feature by feature, each pair of "
        "images standardized"
    )
