"""Augmentation: a layer that randomly moves images, in training alone."""

import keras
from keras import ops

from gar_keras.utils.images import side_axes, standardize_data_format
from gar_keras.utils.validation import check_count, check_number, check_seed


@keras.saving.register_keras_serializable(package="gar_keras")
class RandomAffine(keras.layers.Layer):
    """Randomly rotates, scales, shears and shifts images during training.

    The pixel at `x` is taken from `c + (I + E)(x - c) + t`, with `c` the
    centre, the four entries of `E` drawn for each image on its own, evenly from
    `-strength` to `strength`, and `t` of two whole numbers from `-shift` to
    `shift`. A strength of 0.1 stands for turns of up to 6 degrees and for
    scales from 0.9 to 1.1. Between pixels values are linear, beyond the edge
    they are the edge's. Only with `training=True` does anything happen.

    Put it into a model, in front of the layers that are trained: both stages
    and `GARClassifier` then train on images that are moved, and what is saved
    and evaluated is the same model. Move images only as far as their class
    stays the same. A program that loads a saved model with this layer needs
    `import gar_keras`.

    Args:
        strength: The largest entry of `E`, a number of at least 0.
        shift: The most pixels, up or down and left or right, an integer of at
            least 0.
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
        ValueError: if an argument is not valid.

    Example:

    >>> model = keras.Sequential([
    ...     keras.Input((28, 28, 1)),
    ...     RandomAffine(0.2, shift=2, seed=0),
    ...     keras.layers.Flatten(),
    ...     keras.layers.Dense(10),
    ... ])
    """

    def __init__(
        self,
        strength: float,
        shift: int = 0,
        seed: int | None = None,
        data_format: str | None = None,
        **kwargs,
    ):
        kwargs["autocast"] = False
        super().__init__(**kwargs)
        self.strength = check_number("strength", strength)
        self.shift = check_count("shift", shift, least=0)
        self.seed = None if seed is None else check_seed("seed", seed)
        self.seed_generator = keras.random.SeedGenerator(self.seed)
        self.data_format = standardize_data_format(data_format)

    def call(self, inputs, training=None):
        if not training or not (self.strength or self.shift):
            return inputs
        dtype = keras.backend.standardize_dtype(inputs.dtype)
        moved = ops.image.affine_transform(
            ops.cast(inputs, "float32"),
            self._transforms(inputs),
            fill_mode="nearest",
            data_format=self.data_format,
        )
        if "int" in dtype:
            # A value between two pixels is never beyond both of them.
            moved = ops.round(moved)
        return ops.cast(moved, dtype)

    def _transforms(self, images):
        """Rows `a0 a1 a2 b0 b1 b2 0 0`, as Keras takes them, `(batch, 8)`."""
        m, seed = ops.shape(images)[0], self.seed_generator
        E = keras.random.uniform(
            (m, 4), -self.strength, self.strength, "float32", seed
        )
        t = keras.random.randint((m, 2), -self.shift, self.shift + 1, seed=seed)
        # The size of an image may be known in the step alone.
        y_axis, x_axis = side_axes(self.data_format)
        sides = [ops.shape(images)[axis] for axis in (x_axis, y_axis)]
        center = [[(ops.cast(size, "float32") - 1) / 2] for size in sides]
        center = ops.convert_to_tensor(center)
        t = ops.cast(t, "float32")
        moves_x = t[:, :1] - ops.matmul(E[:, :2], center)
        moves_y = t[:, 1:] - ops.matmul(E[:, 2:], center)
        return ops.concatenate(
            [
                1 + E[:, :1], E[:, 1:2], moves_x,
                E[:, 2:3], 1 + E[:, 3:], moves_y,
                ops.zeros_like(E[:, :2]),
            ],
            axis=1,
        )  # fmt: skip

    def get_config(self):
        return {
            **super().get_config(),
            "strength": self.strength,
            "shift": self.shift,
            "seed": self.seed,
            "data_format": self.data_format,
        }
