"""The networks of the experiments."""

import keras

from gar_keras.layers import PerImageStandardization
from gar_keras.models import POLICIES, cnn6, cnn9, mlp


def build_model(experiment, input_shape, num_classes):
    """The network of an experiment, with new weights."""
    preprocessing = {
        "rescale": lambda: keras.layers.Rescaling(1 / 255, dtype="float32"),
        "standardize": lambda: PerImageStandardization(dtype="float32"),
        "none": lambda: None,
    }[experiment.preprocessing]()
    dtype = POLICIES[experiment.precision]
    options = {"preprocessing": preprocessing, "dtype": dtype}
    if experiment.network == "cnn6":
        return cnn6(input_shape, num_classes, **options)
    if experiment.network == "mlp":
        return mlp(input_shape, num_classes, **options)
    return cnn9(input_shape, num_classes, experiment.filters, **options)
