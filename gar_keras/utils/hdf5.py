"""Rows of a data set in an HDF5 file."""

import numpy as np

# Few images in a chunk: a batch drawn at random reads a chunk for each image.
IMAGES_PER_CHUNK = 16


def read_rows(dataset, indices):
    """The rows of an `h5py.Dataset` at these indices, in any order.

    Args:
        dataset: An `h5py.Dataset` `(m, ...)`.
        indices: int64 array `(k,)` in `[0, m)`, repeats allowed.

    Returns:
        A new array `(k, ...)`, in the byte order of this machine.
    """
    # A contiguous data set has no chunks: any number serves.
    chunk = (dataset.chunks or (IMAGES_PER_CHUNK,))[0]
    unique, position = np.unique(indices, return_inverse=True)
    dtype = dataset.dtype.newbyteorder("=")
    rows = np.empty((len(unique), *dataset.shape[1:]), dtype)
    # One plain slice for each chunk. A list of indices, which h5py takes too,
    # is over ten times slower.
    begins = np.flatnonzero(np.diff(unique // chunk, prepend=-1))
    ends = [*begins[1:], len(unique)]
    for begin, end in zip(begins, ends, strict=False):
        wanted = unique[begin:end]
        first = wanted[0]
        block = dataset[first : wanted[-1] + 1]
        rows[begin:end] = block[wanted - first]
    return rows[position]
