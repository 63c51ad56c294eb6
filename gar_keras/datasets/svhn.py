"""SVHN: house numbers (format 2, cropped digits), its extra set, a stand-in."""

from dataclasses import dataclass

import numpy as np

from gar_keras.datasets.base import DataError, Dataset
from gar_keras.datasets.files import data_folder, fetch, made_once, read_npz
from gar_keras.utils.optional import optional
from gar_keras.utils.validation import check_labels

TITLE = "SVHN"
GREY_TITLE = "SVHN-grey"
HOME = "http://ufldl.stanford.edu/housenumbers/"
GREY = "svhn_grey_32.npz"


@dataclass(frozen=True)
class SvhnFile:
    """A published file of SVHN, and how to know it."""

    name: str
    md5: str
    images: int
    home: str = HOME


TRAIN = SvhnFile(
    "train_32x32.mat", "e26dedcc434d2e4c54c9b2d4a06d8373", images=73_257
)
TEST = SvhnFile(
    "test_32x32.mat", "eb5a983be6a315427106f1b164d9cef3", images=26_032
)
EXTRA = SvhnFile(
    "extra_32x32.mat", "a93ce644f1a588dc4d68dda5feec44a7", images=531_131
)


def load_svhn(data_dir=None, train=TRAIN, test=TEST):
    """Loads SVHN and checks both files against their MD5.

    Files that are not there are downloaded (182 and 64 MB). The pixels are as
    published. Scaling them, which the paper's code does for each image by
    itself, is for the model to do: see `gar_keras.layers`.

    Args:
        data_dir: Folder that holds the files; see `data_folder`.
        train, test: `SvhnFile` of the training and of the test images.

    Returns:
        A `Dataset` with uint8 images `(m, 32, 32, 3)`, 73,257 for training
        and 26,032 for testing, and the digits 0 to 9 as classes.

    Raises:
        DataError: if a file cannot be downloaded, or is damaged.
        ImportError: if SciPy, which reads the files, is not installed.
    """
    x_train, y_train = _read(train, data_dir)
    x_test, y_test = _read(test, data_dir)
    return Dataset(
        name="svhn",
        title=TITLE,
        x_train=np.ascontiguousarray(x_train),
        y_train=y_train,
        x_test=np.ascontiguousarray(x_test),
        y_test=y_test,
        num_classes=10,
        source="SVHN, format 2, pixel- and label-exact (MD5 of both files)",
    )


def load_svhn_with_extra(data_dir=None, train=TRAIN, extra=EXTRA):
    """SVHN's training images and the 531,131 extra ones, as an array on disk.

    They would fill 7.4 GB as float32. The first call downloads the files (1.5
    GB) if they are not there, checks their MD5, and writes the images as uint8
    (1.9 GB; see `gar_keras.datasets.files` for where), for which it needs 4 GB
    of memory. Later calls open what was written. The labels are left out: the
    paper uses the extra images without them (section 4.2).

    Args:
        data_dir: Folder that holds the files; see `data_folder`.
        train, extra: `SvhnFile` of the training and of the extra images.

    Returns:
        A memory-mapped array `(604388, 32, 32, 3)`.

    Raises:
        DataError, ImportError: as `load_svhn`.
    """

    def make():
        parts = [_read(file, data_dir)[0] for file in (train, extra)]
        return {"x": np.concatenate(parts)}

    # The MD5 stand for the content: no file need be read to know it.
    settings = {"md5": [train.md5, extra.md5]}
    return made_once("svhn-extra", settings, ["x"], make)["x"]


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
    """
    path = data_folder(data_dir) / GREY
    if not path.exists():
        raise DataError(
            f"No SVHN-grey. Received: {path}. Put the file {GREY} there "
            "(x_train, y_train, x_test, y_test; 12 MB). --data-dir names "
            "another folder."
        )
    arrays = read_npz(path, ("x_train", "y_train", "x_test", "y_test"))
    for part in ("train", "test"):
        x = arrays[f"x_{part}"]
        _check_images(path, x, (len(x), 32, 32, 1))
        name = f"y_{part}"
        arrays[name] = check_labels(name, arrays[name], len(x), 10)
    return Dataset(
        name="svhn-grey",
        title=GREY_TITLE,
        num_classes=10,
        source=(
            "SVHN-grey: house-number digits cut from SVHN's test images, in "
            "grey; a stand-in, not SVHN format 2"
        ),
        **arrays,
    )


def _read(file, data_dir):
    """Images `(m, 32, 32, 3)`, a view, and digits `(m,)` of a `.mat` file."""
    io = optional("scipy.io", "Reading SVHN")
    path = fetch(file.name, file.home + file.name, file.md5, data_dir)
    # Its MD5 is known: it can be read.
    content = io.loadmat(path, variable_names=("X", "y"))
    x = content["X"].transpose(3, 0, 1, 2)
    _check_images(path, x, (file.images, 32, 32, 3))
    # 10 is the digit 0.
    return x, check_labels("y", content["y"] % 10, file.images, 10)


def _check_images(path, x, shape):
    if x.dtype != np.uint8 or x.shape != shape:
        raise DataError(
            f"Images in {path} must be uint8 {shape}. Received: {x.dtype} "
            f"{x.shape}"
        )
