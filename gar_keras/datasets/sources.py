"""Image sources: images by index, of which memory holds few or none.

A source has a length, `shape` `(m, height, width, channels)`, `dtype` and
`take(indices)`. Training takes one in place of an array of unlabelled images.
"""

from pathlib import Path

import h5py
import numpy as np

from gar_keras.datasets.base import DataError
from gar_keras.utils.hdf5 import read_rows
from gar_keras.utils.validation import check_images, is_source

# Bytes that one stored byte can stand for at most: the limit of deflate.
_MAX_PACKING = 1032


class HDF5Images:
    """uint8 images in an HDF5 file, read when they are asked for.

    For sets too large for memory. The file is kept open for reading; a copy
    in another process opens it by itself.

    Args:
        path: Path of the file.
        key: Name of the data set inside, `(m, height, width, channels)`,
            uint8. Chunks of few images suit draws at random. Its images must
            lie in this file: a link to another one is not followed.

    Attributes:
        shape: `(m, height, width, channels)`.
        dtype: uint8.

    Raises:
        DataError: if the file is missing or damaged, or if the data set is of
            another form.

    Example:

    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp()) / "images.h5"
    >>> with h5py.File(path, "w") as file:
    ...     file["x"] = np.arange(3, dtype="uint8").reshape(3, 1, 1, 1)
    >>> images = HDF5Images(path)
    >>> images.take([2, 0, 2]).ravel().tolist()
    [2, 0, 2]
    >>> images.close()
    """

    def __init__(self, path, key="x"):
        self.path = Path(path)
        self.key = key
        try:
            self._file = h5py.File(self.path, "r")
        except OSError as error:
            raise DataError(self._damaged(error)) from error
        self._images = self._file.get(key)
        if not isinstance(self._images, h5py.Dataset):
            self.close()
            raise DataError(self._damaged(f"no data set {key!r} in it"))
        self.shape, self.dtype = self._images.shape, self._images.dtype
        if len(self.shape) != 4 or self.dtype != np.uint8:
            self.close()
            raise DataError(
                f"{key!r} in {self.path} must be uint8 (m, height, width, "
                f"channels). Received: {self.dtype} {self.shape}"
            )
        if wrong := _other_files(self._file, self._images) or _claim(
            self._images
        ):
            self.close()
            raise DataError(self._damaged(f"{key!r} {wrong}"))

    def __len__(self):
        return self.shape[0]

    def __repr__(self):
        return f"<HDF5Images: {len(self):,} images in {self.path}>"

    def __reduce__(self):
        return type(self), (self.path, self.key)

    def close(self):
        """Closes the file. No image can be taken after that."""
        self._file.close()

    def take(self, indices):
        """The images at these indices, in any order, repeats allowed.

        Args:
            indices: Integers in `[0, m)`, `(k,)`. Negative ones do not count
                from the end.

        Returns:
            A new uint8 array `(k, height, width, channels)`.

        Raises:
            ValueError: if `indices` are not integers in one dimension.
            IndexError: if one is out of bounds.
            DataError: if the file was damaged or closed.
        """
        indices = check_indices(indices, len(self))
        try:
            return read_rows(self._images, indices)
        except (OSError, RuntimeError, ValueError) as error:
            raise DataError(self._damaged(error)) from error

    def _damaged(self, reason):
        return (
            f"No images could be read from {self.path}: {reason}. Delete the "
            "file and load the data set again."
        )


def _other_files(file, images):
    """Fault of images that lie elsewhere: any file could be read so."""
    linked = images.file.filename != file.filename
    if linked or images.external or images.is_virtual:
        return "has its images in other files, which are not read"
    return None


def _claim(images):
    """Fault of a data set that claims more images than can be stored."""
    size, stored = images.nbytes, images.id.get_storage_size()
    if size > _MAX_PACKING * stored:
        return (
            f"claims {size:,} bytes {images.shape}, of which only {stored:,} "
            "are stored"
        )
    return None


class ConcatenatedImages:
    """Images in memory, followed by those of a source, as one source.

    Args:
        first: Array `(m1, height, width, channels)`.
        second: Image source of the same image shape and dtype, e.g.
            `HDF5Images`.

    Attributes:
        shape: `(m1 + m2, height, width, channels)`.
        dtype: That of both.

    Raises:
        ValueError: if they do not fit together.

    Example (paper, Table 3, SVHN with its extra set):

    >>> svhn = load_svhn("data")  # doctest: +SKIP
    >>> extra = load_svhn_extra("data")  # doctest: +SKIP
    >>> ConcatenatedImages(svhn.x_train, extra).shape  # doctest: +SKIP
    (604388, 32, 32, 3)
    """

    def __init__(self, first, second):
        if is_source(first) or not is_source(second):
            raise ValueError(
                "first must be a NumPy array, and second an image source with "
                "shape, dtype and take(indices). Received: first of type "
                f"{type(first).__name__}, second of type "
                f"{type(second).__name__}. Join two arrays with "
                "np.concatenate."
            )
        check_images("first", first)
        check_images("second", second, like=("first", first))
        self.first, self.second = first, second
        self.shape = (len(first) + len(second), *first.shape[1:])
        self.dtype = first.dtype

    def __len__(self):
        return self.shape[0]

    def __repr__(self):
        return (
            f"<ConcatenatedImages: {len(self.first):,} images in memory and "
            f"{self.second!r}>"
        )

    def take(self, indices):
        """The images at these indices, in any order, repeats allowed.

        Args:
            indices: Integers in `[0, m1 + m2)`, `(k,)`. Negative ones do not
                count from the end.

        Returns:
            A new array `(k, height, width, channels)`.

        Raises:
            ValueError: if `indices` are not integers in one dimension.
            IndexError: if one is out of bounds.
        """
        indices = check_indices(indices, len(self))
        images = np.empty((len(indices), *self.shape[1:]), self.dtype)
        inside = indices < len(self.first)
        images[inside] = self.first[indices[inside]]
        images[~inside] = self.second.take(indices[~inside] - len(self.first))
        return images


def check_indices(indices, size):
    """Returns `indices` as int64 `(k,)` if all lie in `[0, size)`.

    Raises:
        ValueError: if they are not integers in one dimension.
        IndexError: if one is out of bounds.

    Example:

    >>> check_indices([2, 0], 3)
    array([2, 0])
    """
    array = np.asarray(indices)
    if array.shape == (0,):
        array = array.astype(np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(
            "indices must be integers in one dimension. Received: indices of "
            f"{array.dtype} {array.shape}"
        )
    if array.size and (array.min() < 0 or array.max() >= size):
        raise IndexError(
            f"indices must lie in 0..{size - 1}. Received: indices from "
            f"{array.min()} to {array.max()}"
        )
    return array.astype(np.int64)
