"""SVHN: house numbers (format 2, cropped digits), its extra set, a stand-in."""

import functools
import zlib
from dataclasses import dataclass

import numpy as np

from gar_keras.datasets.base import DataError, Dataset
from gar_keras.datasets.cache import Cached, create_checked, fingerprint
from gar_keras.datasets.download import RemoteFile, data_folder, fetch
from gar_keras.datasets.npz import Form, read_arrays
from gar_keras.datasets.sources import HDF5Images
from gar_keras.utils.hdf5 import IMAGES_PER_CHUNK
from gar_keras.utils.optional import optional

HOME = "http://ufldl.stanford.edu/housenumbers/"
GREY = "svhn_grey_32.npz"

# Images converted at a time: a multiple of IMAGES_PER_CHUNK.
_BLOCK = 4096
# To be raised when what is written for the extra set changes.
_VERSION = 1


@dataclass(frozen=True)
class SvhnFile(RemoteFile):
    """A published file of SVHN.

    Args:
        name, bytes, md5, url: As in `RemoteFile`.
        images: Number of images in it.

    Example, the training file from another place:

    >>> from dataclasses import replace
    >>> mirror = replace(TRAIN, url="https://example.org/train_32x32.mat")
    >>> mirror.images
    73257
    """

    images: int


TRAIN = SvhnFile(
    name="train_32x32.mat",
    bytes=182_040_794,
    md5="e26dedcc434d2e4c54c9b2d4a06d8373",
    url=f"{HOME}train_32x32.mat",
    images=73_257,
)
TEST = SvhnFile(
    name="test_32x32.mat",
    bytes=64_275_384,
    md5="eb5a983be6a315427106f1b164d9cef3",
    url=f"{HOME}test_32x32.mat",
    images=26_032,
)
EXTRA = SvhnFile(
    name="extra_32x32.mat",
    bytes=1_329_278_602,
    md5="a93ce644f1a588dc4d68dda5feec44a7",
    url=f"{HOME}extra_32x32.mat",
    images=531_131,
)

# Its digits are among SVHN's test images.
_COUNTS = range(1, TEST.images + 1)
_GREY_FORMS = {
    "x_train": Form(np.uint8, (_COUNTS, 32, 32, 1)),
    "y_train": Form(np.integer, (_COUNTS,)),
    "x_test": Form(np.uint8, (_COUNTS, 32, 32, 1)),
    "y_test": Form(np.integer, (_COUNTS,)),
}


def load_svhn(data_dir=None, train=TRAIN, test=TEST):
    """Loads SVHN and checks both files against their MD5.

    Files that are not there are downloaded (182 and 64 MB). The pixels are as
    published. Scaling them, which the paper's code does for each image by
    itself, is for the model to do: see `gar_keras.layers`.

    Args:
        data_dir: Folder that holds the files; see `data_folder`.
        train: `SvhnFile` of the training images.
        test: `SvhnFile` of the test images.

    Returns:
        A `Dataset` with uint8 images `(m, 32, 32, 3)`, 73,257 for training
        and 26,032 for testing, and the digits 0 to 9 as classes.

    Raises:
        DataError: if a file cannot be downloaded, or is damaged.
        ImportError: if SciPy, which reads the files, is not installed.

    Example:

    >>> svhn = load_svhn("data")  # doctest: +SKIP
    >>> svhn.x_train.shape, svhn.x_train.dtype.name  # doctest: +SKIP
    ((73257, 32, 32, 3), 'uint8')
    """
    _scipy_io()
    paths = [fetch(file, data_dir) for file in (train, test)]
    x_train, y_train = _read_mat(paths[0], train)
    x_test, y_test = _read_mat(paths[1], test)
    return Dataset(
        name="svhn",
        title="SVHN",
        x_train=np.ascontiguousarray(x_train),
        y_train=y_train,
        x_test=np.ascontiguousarray(x_test),
        y_test=y_test,
        num_classes=10,
        source="SVHN, format 2, pixel- and label-exact (MD5 of both files)",
    )


def load_svhn_extra(data_dir=None, extra=EXTRA):
    """The 531,131 extra training images of SVHN, as a source on disk.

    They would fill 6.5 GB as float32. The first call downloads the file (1.3
    GB) if it is not there, checks its MD5, and converts it to uint8 HDF5 (1.6
    GB; see `gar_keras.datasets.cache` for where), for which it needs 2 GB of
    memory. Later calls open the HDF5 file only. The labels are left out: the
    paper uses these images without them (section 4.2).

    Args:
        data_dir: Folder that holds the file; see `data_folder`.
        extra: `SvhnFile` of the extra images.

    Returns:
        `HDF5Images` of shape `(531131, 32, 32, 3)`. `ConcatenatedImages` puts
        them behind the training images.

    Raises:
        DataError: if the file cannot be downloaded, or is damaged, or if
            there is no room to convert it.
        ImportError: if SciPy, which reads the file, is not installed.

    Example:

    >>> extra = load_svhn_extra("data")  # doctest: +SKIP
    >>> extra.take([531130, 0]).shape  # doctest: +SKIP
    (2, 32, 32, 3)
    """
    # The MD5 stands for the content: the file need not be read to know it.
    settings = {"version": _VERSION, "md5": extra.md5, "images": extra.images}
    cached = Cached(
        name="svhn-extra",
        fingerprint=fingerprint([], settings),
        write=functools.partial(_convert, extra, data_dir),
        read=HDF5Images,
    )
    return cached.load(data_dir)


def load_svhn_grey(data_dir=None):
    """Loads SVHN-grey, a small stand-in for SVHN. It is not SVHN format 2.

    Its digits were cut from SVHN's test images and are grey: errors on it say
    nothing about SVHN, and must not stand beside the paper's Table 3.

    Args:
        data_dir: Folder that holds `svhn_grey_32.npz`; see `data_folder`.

    Returns:
        A `Dataset` with uint8 images `(m, 32, 32, 1)` and the digits 0 to 9
        as classes.

    Raises:
        DataError: if the file is missing or damaged.

    Example:

    >>> grey = load_svhn_grey("data")  # doctest: +SKIP
    >>> grey.title, grey.x_train.shape  # doctest: +SKIP
    ('SVHN-grey', (14869, 32, 32, 1))
    """
    path = data_folder(data_dir) / GREY
    if not path.exists():
        raise DataError(
            f"No SVHN-grey. Received: {path}. Put the file {GREY} there "
            "(x_train, y_train, x_test, y_test; 12 MB). --data-dir names "
            "another folder."
        )
    arrays = read_arrays(path, _GREY_FORMS)
    for key in ("y_train", "y_test"):
        arrays[key] = arrays[key].astype("int64")
    return Dataset(
        name="svhn-grey",
        title="SVHN-grey",
        num_classes=10,
        source=(
            "SVHN-grey: house-number digits cut from SVHN's test images, in "
            "grey; a stand-in, not SVHN format 2"
        ),
        **arrays,
    )


def _convert(extra, data_dir, file):
    _scipy_io()
    images, _ = _read_mat(fetch(extra, data_dir), extra)
    stored = create_checked(
        file, "x", images.shape, images.dtype, IMAGES_PER_CHUNK
    )
    for begin in range(0, len(images), _BLOCK):
        stored[begin : begin + _BLOCK] = images[begin : begin + _BLOCK]


def _read_mat(path, file):
    """Images `(m, 32, 32, 3)`, a view, and digits `(m,)` of a `.mat` file."""
    scipy_io = _scipy_io()
    try:
        content = scipy_io.loadmat(path, variable_names=("X", "y"))
        x, y = content["X"], content["y"]
    except (
        OSError,
        ValueError,
        TypeError,
        LookupError,
        EOFError,
        NotImplementedError,
        zlib.error,
        scipy_io.matlab.MatReadError,
    ) as error:
        raise DataError(
            f"{path} is not a readable SVHN file: {error!r}. Put a clean copy "
            f"in its place, from {file.url}"
        ) from error
    shape = (32, 32, 3, file.images)
    if x.shape != shape or x.dtype != np.uint8:
        raise DataError(
            f"X in {path} must be uint8 {shape}. Received: {x.dtype} {x.shape}"
        )
    if y.shape != (file.images, 1):
        raise DataError(
            f"y in {path} must be {(file.images, 1)}. Received: shape={y.shape}"
        )
    if not np.isin(y, range(1, 11)).all():
        raise DataError(
            f"y in {path} must be labels 1 to 10 (10 is the digit 0). "
            f"Received: values from {y.min()} to {y.max()}"
        )
    return x.transpose(3, 0, 1, 2), y[:, 0].astype("int64") % 10


def _scipy_io():
    return optional("scipy.io", "Reading SVHN", extra="experiments")
