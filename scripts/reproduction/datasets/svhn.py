"""SVHN: house numbers (format 2, cropped digits), its extra set, a stand-in.

The pixels are as published. Scaling them, which the paper's code does for each
image by itself, is for the model to do: see `gar_keras.layers`.
"""

import io

import numpy as np

from gar_keras.datasets.data_files import (
    ARRAYS,
    check_md5,
    data_folder,
    read_npz,
)
from gar_keras.datasets.dataset import Dataset
from gar_keras.utils.optional import optional
from reproduction.files import writing

GREY_TITLE = "SVHN-grey"
HOME = "http://ufldl.stanford.edu/housenumbers/"
GREY = "svhn_grey_32.npz"
GREY_MD5 = "64d8fba771444667892bcecb9c31619a"

# The MD5 of the published files.
MD5 = {
    "train_32x32.mat": "e26dedcc434d2e4c54c9b2d4a06d8373",
    "test_32x32.mat": "eb5a983be6a315427106f1b164d9cef3",
    "extra_32x32.mat": "a93ce644f1a588dc4d68dda5feec44a7",
}


def load_svhn(data_dir=None):
    """Loads SVHN; files that are not there are downloaded (182 and 64 MB).

    Args:
        data_dir: Folder that holds the files; see `data_folder`.

    Returns:
        A `Dataset` with uint8 images `(m, 32, 32, 3)`, 73,257 for training
        and 26,032 for testing, and the digits 0 to 9 as classes.

    Raises:
        DataError: if a file is damaged.
    """
    arrays = []
    for name in ("train_32x32.mat", "test_32x32.mat"):
        images, labels = _read(name, data_dir)
        arrays += [np.ascontiguousarray(images), labels]
    return Dataset(
        "svhn",
        "SVHN",
        *arrays,
        num_classes=10,
        source="SVHN, format 2, pixel- and label-exact (MD5 of both files)",
    )


def load_svhn_with_extra(data_dir=None):
    """SVHN's training images and the 531,131 extra ones, as an array on disk.

    The first call writes the images as uint8 beside the files (1.9 GB, for
    which it needs 4 GB of memory). Later calls open what was written,
    memory-mapped, `(604388, 32, 32, 3)`. The paper uses the extra images
    without their labels (section 4.2).
    """
    path = data_folder(data_dir) / "svhn_train_and_extra.npy"
    if not path.exists():
        names = "train_32x32.mat", "extra_32x32.mat"
        images = np.concatenate([_read(name, data_dir)[0] for name in names])
        with writing(path, "wb") as file:
            np.save(file, images)
    return np.lib.format.open_memmap(path, mode="r")


def load_svhn_grey(data_dir=None):
    """Loads SVHN-grey, a small stand-in for SVHN. It is not SVHN format 2.

    Its digits were cut from SVHN's test images and are grey: errors on it say
    nothing about SVHN, and must not stand beside the paper's Table 3.
    """
    arrays = read_npz(data_folder(data_dir) / GREY, ARRAYS, GREY_MD5)
    return Dataset(
        "svhn-grey",
        GREY_TITLE,
        x_train=arrays["x_train"],
        y_train=arrays["y_train"].astype("int64"),
        x_test=arrays["x_test"],
        y_test=arrays["y_test"].astype("int64"),
        num_classes=10,
        source="SVHN-grey: house-number digits cut from SVHN's test images, in "
        "grey; a stand-in, not SVHN format 2",
    )


def _read(name, data_dir):
    """Images `(m, 32, 32, 3)`, a view, and digits `(m,)` of a published file.

    It is downloaded if it is not there. A file that is there is left alone.
    """
    matlab = optional("scipy.io", "Reading SVHN", "experiments")
    folder = data_folder(data_dir)
    path = folder / name
    if not path.exists():
        pooch = optional("pooch", f"The download of {name}", "experiments")
        pooch.retrieve(HOME + name, f"md5:{MD5[name]}", name, folder)
    data = path.read_bytes()
    check_md5(data, MD5[name], path)
    content = matlab.loadmat(io.BytesIO(data), variable_names=("X", "y"))
    # 10 is the digit 0.
    labels = content["y"][:, 0].astype("int64") % 10
    return content["X"].transpose(3, 0, 1, 2), labels
