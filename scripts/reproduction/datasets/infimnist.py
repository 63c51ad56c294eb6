"""InfiMNIST: an endless stream of slightly deformed MNIST digits.

The paper's Table 2 trains on 8 million of them, 60,000 new ones per epoch.
Loosli, Canu and Bottou (2007) number the images: 0 to 9,999 are MNIST's test
images, 10,000 to 69,999 its training images, and all later ones deform a
training image by two smooth random fields and move it by at most one pixel.
Their C code has a plus instead of the first minus of the formula where `k1 +
k2` is even, but it never is: 1522 is even, so `k2` has the parity of `k1 + 1`.

Generated fields and tangents are integers: multiples of 1/256 pixel and whole
grey levels per pixel, so that no float32 operation of the formula ever rounds
and every machine yields the same bytes.
"""

import math

import numpy as np

from gar_keras.datasets.data_files import data_folder
from gar_keras.datasets.dataset import DataError
from gar_keras.datasets.mnist import load_mnist

SIDE = 28
PIXELS = SIDE * SIDE
NUM_TEST = 10_000
NUM_TRAIN = 60_000
NUM_FIELDS = 1522
LENGTH = 8_000_000

FIELDS_FILE = "fields_float_1522x28x28.bin"
TANGENTS_FILE = "tangVec_float_60000x28x28.bin"

# (down, right) for each value of k1 mod 9, in pixels.
SHIFTS = (
    (-1, 0), (1, 0), (0, -1), (0, 1),
    (-1, -1), (-1, 1), (1, -1), (1, 1), (0, 0),
)  # fmt: skip

# Images deformed at a time: the float32 work arrays stay near the L2 cache.
_CHUNK = 128

# Generated fields: noise smoothed by this many passes of a box this wide.
_SEED = 2007
_BOX = 7
_PASSES = 4
# The root mean square of the smoothed noise: one pixel.
_PIXEL = 58_908_418
_STEPS_PER_PIXEL = 256


class InfiMNIST:
    """InfiMNIST images with random access; the test images are left out.

    Indices 0 to 59,999 are the MNIST training images as they are. An image
    depends on its index alone.

    Formula (Loosli, Canu & Bottou 2007), for index `i - 10000 >= 60000`:

        a  = (i - 10000) mod 60000
        k1 = (131071 * i mod 2**32) mod 1521
        k2 = (k1 + 1 + 2 * i) mod 1522
        z  = clip(x[a] - (F[k1] * tx[a] - F[k2] * ty[a]), 0, 255)
        image = shift(floor(z), SHIFTS[k1 mod 9])

    `F` are 1,522 smooth random fields (a displacement in pixels at every
    pixel), `tx` and `ty` the horizontal and vertical derivatives of the
    smoothed image (grey levels per pixel).

    Where the folder `data_dir` has none of the two original files, fields and
    tangents are generated: other images of the same kind. The attribute
    `source` says which.

    Example (paper, Table 2):

    >>> images = InfiMNIST()
    >>> images.shape, images.take([7_999_999, 0]).dtype.name
    ((8000000, 28, 28, 1), 'uint8')
    """

    dtype = np.dtype(np.uint8)
    # Images side by side are of all classes: epochs may take piece after piece.
    in_random_order = True

    shape = (LENGTH, SIDE, SIDE, 1)

    def __init__(self, data_dir=None):
        x_train = load_mnist().x_train
        folder = data_folder(data_dir)
        names = FIELDS_FILE, TANGENTS_FILE
        if any((folder / name).exists() for name in names):
            fields = _original(folder / FIELDS_FILE, NUM_FIELDS)
            tangents = _original(folder / TANGENTS_FILE, NUM_TRAIN, 2)
            kind = "the fields and tangents of the original files"
        else:
            fields, tangents = make_fields(), make_tangents(x_train)
            kind = "generated fields and tangents"
        self.source = f"InfiMNIST with {kind}"
        # Each image a row of 784 pixels.
        self._x = x_train.reshape(NUM_TRAIN, PIXELS)
        self._fields = fields.reshape(NUM_FIELDS, PIXELS)
        self._tangents = tangents.reshape(NUM_TRAIN, 2, PIXELS)

    def __len__(self):
        return LENGTH

    def take(self, indices):
        """The images at indices in `[0, length)`, in any order.

        Args:
            indices: Integers `(k,)`, repeats allowed.

        Returns:
            A new uint8 array `(k, 28, 28, 1)`.
        """
        indices = np.asarray(indices, np.int64)
        origins = indices % NUM_TRAIN
        images = self._x[origins]
        later = np.flatnonzero(indices >= NUM_TRAIN)
        for start in range(0, len(later), _CHUNK):
            at = later[start : start + _CHUNK]
            k1, k2 = _keys(indices[at] + NUM_TEST)
            tangents = self._tangents[origins[at]]
            across = self._fields[k1]
            across *= tangents[:, 0]
            z = self._fields[k2]
            z *= tangents[:, 1]
            z -= across
            z += images[at]
            np.clip(z, 0, 255, out=z)
            images[at] = _shifted(z, k1 % len(SHIFTS))
        return images.reshape(-1, SIDE, SIDE, 1)


def _original(path, *shape):
    """An original file, memory-mapped."""
    shape = *shape, SIDE, SIDE
    size = path.stat().st_size if path.exists() else 0
    expected = 4 * math.prod(shape)
    if size != expected:
        raise DataError(
            f"{path} is missing, truncated or another file. Received: {size} "
            f"bytes, expected {expected}. Put both original files there, "
            "unpacked, or neither, to have fields and tangents generated."
        )
    return np.memmap(path, "<f4", "r", shape=shape)


def make_fields():
    """1,522 smooth random fields, the same on every machine.

    White noise, smoothed by a box of 7 pixels four times each way (close to a
    Gaussian of 4 pixels, as Simard, Steinkraus & Platt 2003 use for MNIST) and
    scaled to a root mean square of 1 pixel. The noise is the bare stream of
    PCG64, which NumPy keeps the same for good.
    """
    side = SIDE + _PASSES * (_BOX - 1)
    count = NUM_FIELDS * side * side
    words = np.random.PCG64(_SEED).random_raw(-(-count // 8))
    noise = words.astype("<u8").view(np.int8)[:count]
    # Odd integers from -255 to 255, since they have a mean of 0.
    field = 2 * noise.reshape(-1, side, side).astype(np.int64) + 1
    # Each pass sums up neighbours along one axis, and turns the images.
    for _ in range(2 * _PASSES):
        sums = np.cumsum(np.pad(field, ((0, 0), (1, 0), (0, 0))), axis=1)
        field = (sums[:, _BOX:] - sums[:, :-_BOX]).swapaxes(1, 2)
    steps = (2 * _STEPS_PER_PIXEL * field + _PIXEL) // (2 * _PIXEL)
    return np.ascontiguousarray(steps, np.float32) / _STEPS_PER_PIXEL


def make_tangents(x_train):
    """Horizontal and vertical derivatives of the smoothed images.

    One correlation each, close to the derivative of a Gaussian of 1 pixel,
    with zeros outside of the image and halves rounded up:

        tx = round((1, 4, 6, 4, 1)' (-1, -2, 0, 2, 1) * x / 128)

    and `ty` with the kernel transposed. No derivative exceeds 96.
    """
    images = x_train[..., 0]
    tangents = np.empty((len(images), 2, SIDE, SIDE), np.int8)

    def slope(x):
        """Smooths down axis 1, smooths and differentiates along axis 2."""
        # Sums reach 255 * 2**4 * 2**3 = 32640: just within int16.
        for _ in range(4):
            x = x[:, 1:] + x[:, :-1]
        for _ in range(3):
            x = x[:, :, 1:] + x[:, :, :-1]
        return (np.diff(x) + 64) >> 7

    for start in range(0, len(images), _CHUNK):
        at = slice(start, start + _CHUNK)
        x = np.pad(images[at], ((0, 0), (2, 2), (2, 2))).astype(np.int16)
        tangents[at, 0] = slope(x)
        tangents[at, 1] = slope(x.swapaxes(1, 2)).swapaxes(1, 2)
    return tangents


def _keys(numbers):
    """k1 and k2 of the InfiMNIST images with these numbers, both int64."""
    # uint32 on purpose: with wider integers k1 would be another one, and the
    # images would differ from those of the published eight million.
    k1 = numbers.astype(np.uint32) * np.uint32(131071)
    k1 = (k1 % np.uint32(NUM_FIELDS - 1)).astype(np.int64)
    return k1, (k1 + 1 + 2 * numbers) % NUM_FIELDS


def _shifted(z, ways):
    """Cuts images `(k, 784)` to uint8 and moves each as `ways` says.

    An image moves as one row of 784 pixels, and column 0 (to the left) or 1
    (to the right) is blanked, as in the C code: a pixel from the outermost
    columns may reappear on the other side.
    """
    margin = SIDE + 1
    padded = np.zeros((len(z), PIXELS + 2 * margin), np.uint8)
    padded[:, margin:-margin] = z
    images = np.empty((len(z), PIXELS), np.uint8)
    for way, (down, right) in enumerate(SHIFTS):
        at = np.flatnonzero(ways == way)
        first = margin - SIDE * down - right
        moved = padded[at, first : first + PIXELS]
        if right:
            moved[:, (right + 1) // 2 :: SIDE] = 0
        images[at] = moved
    return images
