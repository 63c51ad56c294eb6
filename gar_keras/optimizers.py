"""Optimizers of Keras with a faster update."""

import keras

from gar_keras import backend


@keras.saving.register_keras_serializable(package="gar_keras")
class SGD(keras.optimizers.SGD):
    """Keras' SGD, with each weight's update in one kernel where there is one.

    Keras writes the update as five operations, which read and write the
    weights, momenta and gradients again and again. On TensorFlow one kernel
    does it in a single pass; on the other backends, which compile the step as
    a whole, nothing changes. The formula is the same, up to rounding:

    `m = momentum * m - rate * gradient`, and `w += m`, or, with Nesterov
    momentum, `w += momentum * m - rate * gradient`.

    Args:
        learning_rate: As in `keras.optimizers.SGD`.
        momentum: As in `keras.optimizers.SGD`.
        nesterov: As in `keras.optimizers.SGD`.
        **kwargs: Other arguments of `keras.optimizers.SGD`.

    Example:

    >>> optimizer = SGD(0.01, momentum=0.9)
    >>> isinstance(optimizer, keras.optimizers.SGD)
    True
    """

    def __init__(
        self, learning_rate=0.01, momentum=0.0, nesterov=False, **kwargs
    ):
        super().__init__(learning_rate, momentum, nesterov, **kwargs)

    def update_step(self, gradient, variable, learning_rate):
        if not self.momentum or not backend.updates_in_place(gradient):
            super().update_step(gradient, variable, learning_rate)
            return
        backend.apply_momentum(
            variable,
            self.momentums[self._get_variable_index(variable)],
            gradient,
            learning_rate,
            self.momentum,
            self.nesterov,
        )
