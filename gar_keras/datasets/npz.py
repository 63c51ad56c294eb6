"""Arrays of `.npz` files, read in the form that a data set must have."""

import zipfile
from dataclasses import dataclass

import numpy as np

from gar_keras.datasets.base import DataError
from gar_keras.utils.files import NPZ_DAMAGE


@dataclass(frozen=True)
class Form:
    """Dtype and shape that an array of a file must have.

    Args:
        dtype: NumPy type, which may be an abstract one such as `np.integer`.
        shape: Length of each axis; a `range` where several are allowed.

    Example:

    >>> form = Form(np.integer, (range(4), 2))
    >>> print(form, form.fits(np.dtype("int8"), (3, 2)))
    integer (0..3, 2) True
    """

    dtype: type
    shape: tuple

    def __str__(self):
        lengths = [
            f"{n[0]}..{n[-1]}" if isinstance(n, range) else str(n)
            for n in self.shape
        ]
        comma = "," if len(lengths) == 1 else ""
        return f"{self.dtype.__name__} ({', '.join(lengths)}{comma})"

    def fits(self, dtype, shape):
        """Whether an array of this dtype and shape has the form."""
        return (
            np.issubdtype(dtype, self.dtype)
            and len(shape) == len(self.shape)
            and all(
                n in wanted if isinstance(wanted, range) else n == wanted
                for n, wanted in zip(shape, self.shape, strict=True)
            )
        )


def read_arrays(path, forms):
    """Reads arrays from an `.npz` file.

    The header of an array is checked before memory is taken for it, so a
    damaged or crafted file cannot ask for more than its data set needs.

    Args:
        path: `Path` of the file.
        forms: Dict of `Form` by name of the array.

    Returns:
        A dict of arrays.

    Raises:
        DataError: if the file is damaged, lacks one of them or holds it in
            another form.
    """
    try:
        with open(path, "rb") as stream, zipfile.ZipFile(stream) as archive:
            return {k: _read_member(archive, k, f) for k, f in forms.items()}
    except (*NPZ_DAMAGE, MemoryError) as error:
        raise DataError(
            f"{path} is not a readable .npz file with {', '.join(forms)}: "
            f"{error}. Put a clean copy in its place."
        ) from error


def _read_member(archive, key, form):
    with archive.open(f"{key}.npy") as stream:
        version = np.lib.format.read_magic(stream)
        if version != (1, 0):
            raise ValueError(
                f"{key} must be of version (1, 0) of the format. Received: "
                f"{version}"
            )
        shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
        if not form.fits(dtype, shape):
            raise ValueError(f"{key} must be {form}. Received: {dtype} {shape}")
        stream.seek(0)
        array = np.lib.format.read_array(stream)
        # At the end, and not before, the checksum is compared.
        if stream.read(1):
            raise ValueError(f"{key} has bytes behind its {dtype} {shape}")
    return array
