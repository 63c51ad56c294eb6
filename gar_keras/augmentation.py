"""Augmentation: layers that randomly change images, in training alone."""

import keras
from keras import ops

from gar_keras.utils.images import side_axes, standardize_data_format
from gar_keras.utils.validation import check_count, check_number, check_seed


class _RandomLayer(keras.layers.Layer):
    """A layer that draws random numbers in training, and keeps the dtype."""

    def __init__(self, seed, data_format, **kwargs):
        kwargs["autocast"] = False
        super().__init__(**kwargs)
        self.seed = None if seed is None else check_seed("seed", seed)
        self.seed_generator = keras.random.SeedGenerator(self.seed)
        self.data_format = standardize_data_format(data_format)

    def compute_output_spec(self, inputs, training=None):
        return keras.KerasTensor(inputs.shape, inputs.dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "seed": self.seed,
            "data_format": self.data_format,
        }


@keras.saving.register_keras_serializable(package="gar_keras")
class RandomShift(_RandomLayer):
    """Randomly shifts images by whole pixels during training.

    Up or down and left or right, each by a number from `-pixels` to `pixels`
    that is drawn for each image on its own; pixels at the edge are repeated.
    Values and dtype stay as they are. With `training=False` nothing happens.

    Args:
        pixels: The most that an image is shifted by, an integer of at least 0.
        seed: Integer seed, or `None` for another one each time.
        data_format: `"channels_last"` or `"channels_first"`: where the channels
            are. By default `keras.config.image_data_format()`.

    Input shape:
        `(batch, height, width, channels)`, of any dtype, or
        `(batch, channels, height, width)` with `"channels_first"`.

    Output shape:
        The same.

    Raises:
        ValueError: if `pixels` is not an integer of at least 0, or `seed` or
            `data_format` is not valid.

    Example:

    >>> layer = RandomShift(2, seed=0)
    >>> moved = layer(np.ones((3, 28, 28, 1), "uint8"), training=True)
    >>> tuple(moved.shape)
    (3, 28, 28, 1)
    """

    def __init__(
        self,
        pixels: int,
        seed: int | None = None,
        data_format: str | None = None,
        **kwargs,
    ):
        super().__init__(seed, data_format, **kwargs)
        self.pixels = check_count("pixels", pixels, least=0)

    def call(self, inputs, training=None):
        if not training or not self.pixels:
            return inputs
        x = inputs
        for axis in side_axes(self.data_format):
            x = ops.take_along_axis(x, self._indices(x, axis), axis=axis)
        return x

    def _indices(self, images, axis):
        """Where each row or column comes from, along this axis alone."""
        moves = keras.random.randint(
            (ops.shape(images)[0], 1),
            -self.pixels,
            self.pixels + 1,
            seed=self.seed_generator,
        )
        size = images.shape[axis]
        places = ops.arange(size, dtype="int32")[None, :]
        indices = ops.clip(places + moves, 0, size - 1)
        others = [other for other in (1, 2, 3) if other != axis]
        return ops.expand_dims(indices, others)

    def get_config(self):
        return {**super().get_config(), "pixels": self.pixels}


@keras.saving.register_keras_serializable(package="gar_keras")
class RandomAffine(_RandomLayer):
    """Randomly rotates, scales and shears images about their centre.

    The pixel at `x` is taken from `c + (I + E)(x - c)`, with `c` the centre
    and the four entries of `E` drawn for each image on its own, evenly from
    `-strength` to `strength`: 0.1 stands for turns of up to 6 degrees and for
    scales from 0.9 to 1.1. Between pixels values are linear, beyond the edge
    they are the edge's. With `training=False` nothing happens.

    Args:
        strength: The largest entry of `E`, a number of at least 0.
        seed: Integer seed, or `None` for another one each time.
        data_format: `"channels_last"` or `"channels_first"`: where the channels
            are. By default `keras.config.image_data_format()`.

    Input shape:
        `(batch, height, width, channels)`, of any real dtype, or
        `(batch, channels, height, width)` with `"channels_first"`. Integers
        are rounded and stay integers.

    Output shape:
        The same.

    Raises:
        ValueError: if `strength` is not a finite number of at least 0, or
            `seed` or `data_format` is not valid.

    Example:

    >>> layer = RandomAffine(0.1, seed=0)
    >>> moved = layer(np.ones((3, 28, 28, 1), "uint8"), training=True)
    >>> tuple(moved.shape)
    (3, 28, 28, 1)
    """

    def __init__(
        self,
        strength: float,
        seed: int | None = None,
        data_format: str | None = None,
        **kwargs,
    ):
        super().__init__(seed, data_format, **kwargs)
        self.strength = check_number("strength", strength)

    def call(self, inputs, training=None):
        if not training or not self.strength:
            return inputs
        dtype = keras.backend.standardize_dtype(inputs.dtype)
        moved = ops.image.affine_transform(
            ops.cast(inputs, "float32"),
            self._transforms(inputs),
            fill_mode="nearest",
            data_format=self.data_format,
        )
        if "int" in dtype:
            # What is between two pixels is never beyond both of them.
            moved = ops.round(moved)
        return ops.cast(moved, dtype)

    def _transforms(self, images):
        """Rows `a0 a1 a2 b0 b1 b2 0 0`, as Keras takes them, `(batch, 8)`."""
        E = keras.random.uniform(
            (ops.shape(images)[0], 4),
            -self.strength,
            self.strength,
            seed=self.seed_generator,
        )
        sides = (images.shape[axis] for axis in side_axes(self.data_format))
        middle_y, middle_x = ((size - 1) / 2 for size in sides)
        center = ops.convert_to_tensor([[middle_x], [middle_y]], "float32")
        moves_x = -ops.matmul(E[:, :2], center)
        moves_y = -ops.matmul(E[:, 2:], center)
        return ops.concatenate(
            [
                1 + E[:, :1], E[:, 1:2], moves_x,
                E[:, 2:3], 1 + E[:, 3:], moves_y,
                ops.zeros_like(E[:, :2]),
            ],
            axis=1,
        )  # fmt: skip

    def get_config(self):
        return {**super().get_config(), "strength": self.strength}


def random_augmentation(
    shift: int,
    affine: float,
    seed: int | None = None,
    data_format: str | None = None,
) -> list[keras.layers.Layer]:
    """Layers that shift and distort images at random in training; none for 0.

    Args:
        shift: `pixels` of a `RandomShift`.
        affine: `strength` of a `RandomAffine`.
        seed: Seed of both.
        data_format: As that of both.

    Returns:
        A list of layers, to be called one after the other.

    Example:

    >>> [layer.name for layer in random_augmentation(2, 0.0)]
    ['random_shift']
    """
    layers = []
    if shift:
        layers.append(
            RandomShift(shift, seed, data_format, name="random_shift")
        )
    if affine:
        layers.append(
            RandomAffine(affine, seed, data_format, name="random_affine")
        )
    return layers
