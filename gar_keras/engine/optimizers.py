"""The authors' optimizer, with a faster update than that of Keras."""

import numbers
from typing import Any

import keras
from keras import ops

from gar_keras.engine import replicas
from gar_keras.engine.keras_internals import flatten_layers, save_with
from gar_keras.utils.validation import check_count, check_number

# The paper's optimizer, with Nesterov momentum. The rate of step t is
# LEARNING_RATE / (1 + DECAY * t).
LEARNING_RATE = 0.01
MOMENTUM = 0.95
DECAY = 1e-6

# The loss of GAR does not change with the scale of the logits: while they
# shrink, in the first steps, its gradient grows, and can empty the output of a
# class. See notebooks/02 and the study first-epoch.
GLOBAL_CLIPNORM = 1.0
WARMUP_STEPS = 100
LARGEST_WARMUP = 0.2


@keras.saving.register_keras_serializable(package="gar_keras")
class SGD(keras.optimizers.SGD):
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
            no integer of at least 0, or the rate or the decay no number of
            at least 0.

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
        super().__init__(learning_rate, momentum, nesterov, **kwargs)
        self.decay = check_number("decay", decay)
        self.warmup_steps = check_count("warmup_steps", warmup_steps, least=0)

    def update_step(self, gradient, variable, learning_rate):
        rate = learning_rate
        if self.decay or self.warmup_steps:
            rate = ops.convert_to_tensor(rate)
            # float16 has no steps beyond 65,504.
            dtype = keras.backend.result_type(rate.dtype, "float32")
            rate = ops.cast(rate, dtype)
            # All steps count, also where gradients accumulate.
            step = ops.cast(self._iterations, dtype)
        if self.decay:
            # The operations of `InverseTimeDecay`, for the same rounding.
            decay = ops.cast(self.decay, dtype)
            rate = rate / (ops.ones((), dtype) + decay * step)
        if self.warmup_steps:
            rate = rate * ops.minimum((step + 1) / self.warmup_steps, 1)
        if not self.momentum or keras.backend.backend() != "tensorflow":
            super().update_step(gradient, variable, rate)
            return
        import tensorflow as tf

        # The gradient of an embedding has no such kernel.
        if not isinstance(gradient, tf.Tensor):
            super().update_step(gradient, variable, rate)
            return
        moment = self.momentums[self._get_variable_index(variable)]
        if isinstance(variable, keras.Variable):
            variable = variable.value
        tf.raw_ops.ResourceApplyKerasMomentum(
            var=variable.handle,
            accum=moment.value.handle,
            lr=tf.cast(rate, variable.dtype),
            grad=tf.cast(gradient, variable.dtype),
            momentum=tf.cast(self.momentum, variable.dtype),
            use_nesterov=self.nesterov,
        )

    # Gradients are summed over replicas once, and before they are clipped:
    # Keras clips what each replica has of a gradient, which is not to clip
    # their sum. Not where there is one replica: TensorFlow never lets go of a
    # graph that went through its all-reduce.

    def _clip_gradients(self, grads):
        if replicas.context() is not None and self._clips():
            pairs = [(gradient, None) for gradient in grads]
            grads = [g for g, _ in super()._all_reduce_sum_gradients(pairs)]
        return super()._clip_gradients(grads)

    def _all_reduce_sum_gradients(self, grads_and_vars):
        if replicas.context() is None or self._clips():
            return grads_and_vars
        return super()._all_reduce_sum_gradients(grads_and_vars)

    def _clips(self):
        return bool(self.clipnorm or self.global_clipnorm or self.clipvalue)

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
    return SGD(learning_rate, momentum, nesterov=True, decay=decay, **kwargs)


def compile_saved(model, optimizer, loss, **options):
    """Compiles a model that Keras alone can load: with its SGD for this one."""
    optimizer = with_loss_scale(model, optimizer)
    # Without a list Keras would keep the metrics of an earlier compile.
    model.compile(optimizer, loss, metrics=[], **options)
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    if type(inner) is SGD:
        # The same settings, but for decay and warm-up.
        config = keras.optimizers.SGD.get_config(inner)
        of_keras = keras.optimizers.SGD.from_config(config)
        save_with(model, with_loss_scale(model, of_keras))


def with_loss_scale(model, optimizer):
    """The optimizer, with a scaled loss if a layer computes in float16.

    Keras looks at the policy of the model as a whole, which is the global one
    of when the model was made of its layers.
    """
    optimizer = keras.optimizers.get(optimizer)
    is_half = any(x.compute_dtype == "float16" for x in flatten_layers(model))
    scaling = keras.optimizers.LossScaleOptimizer
    if is_half and not isinstance(optimizer, scaling):
        return scaling(optimizer, name="loss_scale_optimizer")
    return optimizer


def stage_2_optimizer(method, steps, learning_rate=LEARNING_RATE):
    """`sgd` for so many steps of stage 2, by the terms of the method.

    Where their first steps can lose a class, it clips and warms up.
    """
    if not any(term.can_collapse for term in method):
        return sgd(learning_rate)
    return sgd(
        learning_rate,
        warmup_steps=min(WARMUP_STEPS, int(LARGEST_WARMUP * steps)),
        global_clipnorm=GLOBAL_CLIPNORM,
    )
