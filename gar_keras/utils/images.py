"""Where the height, the width and the channels of images are."""

import keras

from gar_keras.utils.validation import check_choice

# What an image is in each of Keras' formats.
LAYOUTS = {"channels_last": "(h, w, c)", "channels_first": "(c, h, w)"}


def standardize_data_format(data_format=None):
    """The format, by default Keras' global one; raises if there is no such."""
    if data_format is None:
        return keras.config.image_data_format()
    check_choice("data_format", data_format, LAYOUTS)
    return data_format


def side_axes(data_format=None):
    """The axes of height and width in a batch of images."""
    is_last = standardize_data_format(data_format) == "channels_last"
    return (1, 2) if is_last else (2, 3)


def channel_axis():
    """The axis of the channels in a batch of images."""
    return 3 if standardize_data_format() == "channels_last" else 1
