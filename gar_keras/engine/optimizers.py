"""The authors' optimizer, with a faster update than that of Keras."""

import numbers
from typing import Any

import keras
from keras import ops

from gar_keras.engine import backend
from gar_keras.engine.keras_internals import momentum_of, step_counter
from gar_keras.engine.replicas import SumsOverReplicas
from gar_keras.utils.validation import check_count, check_number

# Of the paper, with Nesterov momentum. The rate of step t is
# LEARNING_RATE / (1 + DECAY * t).
LEARNING_RATE = 0.01
MOMENTUM = 0.95
DECAY = 1e-6

# Arguments of Keras' that are numbers of at least 0.
NUMBERS = ("clipnorm", "clipvalue", "global_clipnorm", "weight_decay")


@keras.saving.register_keras_serializable(package="gar_keras")
class SGD(SumsOverReplicas, keras.optimizers.SGD):
    """Keras' SGD, with each weight's update in one kernel where there is one.

    Keras writes the update as five operations; on TensorFlow one kernel does it
    in a single pass. The formula is the same, up to rounding:

    `m = momentum * m - rate * gradient`, and `w += m`, or, with Nesterov
    momentum, `w += momentum * m - rate * gradient`. The rate of step `t`,
    counted from 0, is `learning_rate / (1 + decay * t)`.

    Args:
        learning_rate: As in `keras.optimizers.SGD`. It stays as it is while
            the rate decays, and callbacks such as
            `keras.callbacks.ReduceLROnPlateau` can set it.
        momentum, nesterov: As in `keras.optimizers.SGD`.
        decay: Decay of the rate per step, a finite number of at least 0. A
            `weight_decay` does not decay with it.
        warmup_steps: Steps over which the rate rises to what it is without:
            that of step `t` is `(t + 1) / warmup_steps` of it.
        **kwargs: Other arguments of `keras.optimizers.SGD`.

    Raises:
        ValueError: if `momentum` is not a number from 0 to 1, `warmup_steps`
            no integer of at least 0, or another number none of at least 0.

    Example:

    >>> optimizer = SGD(0.01, momentum=0.9, decay=1e-6)
    >>> isinstance(optimizer, keras.optimizers.SGD)
    True
    """

    def __init__(
        self,
        learning_rate=0.01,
        momentum=0.0,
        nesterov=False,
        decay=0.0,
        warmup_steps=0,
        **kwargs,
    ):
        # Anything else is a schedule or a function, or Keras refuses it.
        if isinstance(learning_rate, numbers.Real):
            learning_rate = check_number("learning_rate", learning_rate)
        momentum = check_number("momentum", momentum, high=1, closed="both")
        for name in NUMBERS:
            if kwargs.get(name) is not None:
                check_number(name, kwargs[name])
        super().__init__(learning_rate, momentum, nesterov, **kwargs)
        self.decay = check_number("decay", decay)
        self.warmup_steps = check_count("warmup_steps", warmup_steps, least=0)

    def update_step(self, gradient, variable, learning_rate):
        learning_rate = self._rate(learning_rate)
        if not self.momentum or not backend.updates_in_place(gradient):
            super().update_step(gradient, variable, learning_rate)
            return
        backend.apply_momentum(
            variable,
            momentum_of(self, variable),
            gradient,
            learning_rate,
            self.momentum,
            self.nesterov,
        )

    def _rate(self, learning_rate):
        """The rate of this step."""
        if not self.decay and not self.warmup_steps:
            return learning_rate
        rate = ops.convert_to_tensor(learning_rate)
        # float16 has no steps beyond 65,504.
        dtype = keras.backend.result_type(rate.dtype, "float32")
        rate = ops.cast(rate, dtype)
        step = ops.cast(step_counter(self), rate.dtype)
        if self.decay:
            # The operations of `InverseTimeDecay`, for the same rounding.
            decay = ops.cast(self.decay, rate.dtype)
            rate = rate / (ops.ones((), rate.dtype) + decay * step)
        if self.warmup_steps:
            rate = rate * ops.minimum((step + 1) / self.warmup_steps, 1)
        return rate

    def get_config(self):
        return {
            **super().get_config(),
            "decay": self.decay,
            "warmup_steps": self.warmup_steps,
        }


def sgd(
    learning_rate: float = LEARNING_RATE,
    momentum: float = MOMENTUM,
    decay: float = DECAY,
    **kwargs: Any,
) -> SGD:
    """SGD with Nesterov momentum as in the paper, for both stages.

    Args:
        learning_rate: Initial learning rate. Callbacks can set it.
        momentum: Nesterov momentum.
        decay: Decay of the rate per step.
        **kwargs: Other arguments of `SGD`.

    Returns:
        A new `gar_keras.engine.optimizers.SGD`.

    Raises:
        ValueError: if a number is not valid.

    Example:

    >>> optimizer = sgd()
    >>> round(optimizer.momentum, 2), optimizer.nesterov
    (0.95, True)
    """
    rate = check_number("learning_rate", learning_rate)
    return SGD(rate, momentum=momentum, nesterov=True, decay=decay, **kwargs)


def stage_2_optimizer(
    options,
    steps,
    learning_rate=LEARNING_RATE,
    momentum=MOMENTUM,
    decay=DECAY,
):
    """`sgd` with the `GAROptions` for so many steps of stage 2."""
    rate = learning_rate
    if options.rate == "cosine":
        rate, decay = keras.optimizers.schedules.CosineDecay(rate, steps), 0.0
    return SGD(
        learning_rate=rate,
        momentum=momentum,
        nesterov=True,
        decay=decay,
        warmup_steps=options.warmup_of(steps),
        global_clipnorm=options.global_clipnorm or None,
    )
