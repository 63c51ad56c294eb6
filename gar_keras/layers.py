"""Layers: GAR behind a logit layer, and image standardization."""

import re

import keras
import numpy as np
from keras import ops

from gar_keras.engine import autodiff, replicas
from gar_keras.engine.keras_internals import (
    flatten_layers,
    is_taken,
    operation_behind,
)
from gar_keras.metrics import ClassesInUse, StepMean
from gar_keras.regularizers import (
    BalanceOf,
    FrobeniusOf,
    GraphActivityRegularizer,
    check_coefficient,
    gar_loss,
    warn_of_probabilities,
)
from gar_keras.utils.types import ClassPrior
from gar_keras.utils.validation import check_logits, check_number


@keras.saving.register_keras_serializable(package="gar_keras")
class GraphActivityRegularization(keras.layers.Layer):
    """Adds the loss of GAR on the logits that pass through (section 3.3).

    Put it behind the layer that gives the logits. It returns its input
    unchanged and adds, with `B = max(0, Z)` for the logits `Z`,

    `U(B) = affinity * α(B) + balance * (1 - β(B)) + frobenius * ‖B‖²_F`

    to the loss of the model. `fit`'s progress bar and history show the terms
    as `affinity` (α), `balance` (β) and `regularization` (U), and as
    `classes_in_use` how many classes the latest examples are given to, of n:
    see `gar_keras.metrics.ClassesInUse`. They are measured in `evaluate` too,
    but add nothing to the loss there. (A subclassed model must pass `training`
    on from its `call`: else its layers cannot tell.) A name that is given to
    the layer stands in front of theirs, as in `digits_affinity`: name the
    layers of a model that has several. `gar_keras.callbacks.WarnOnCollapse`
    names the classes which training loses.

    The coefficients are variables of the layer that are not trained:
    `set_coefficients` changes them between steps or epochs, and no function is
    traced again.

    On several devices, of `tf.distribute` or `keras.distribution`, the loss is
    that of the whole batch.

    Args:
        affinity, balance, frobenius, frobenius_of, class_prior, balance_of: As
            of `GraphActivityRegularizer`.
        balance_memory: ρ, from 0 to below 1. Above 0 the balance is of
            `ρ u + (1 - ρ) v / sum(v)`, with `u` what it was of in the batch
            before, without gradient; it begins with the class prior, and
            moves where the layer is called with `training=True`. For batches
            too small to show all classes. 0 in the paper.
        **kwargs: Arguments of `keras.layers.Layer`, e.g. `name`.

    A term whose coefficient is 0 here is left out, and stays out. A
    `GARWarning` comes if Keras knows that the layer is behind a softmax or
    sigmoid.

    The coefficients are part of the layer's config, and not among the weights
    of a model: those of a model without the layer fit one with it, in
    `load_weights` and `set_weights`, which change no coefficient.

    Attributes:
        num_classes: `n` of the logits; `None` before the layer has seen any.
        usage: The `gar_keras.metrics.ClassesInUse`, whose `unused()` are the
            classes that it misses. (Within an epoch on JAX, call
            `jax_state_sync()` of the model first.)

    A saved model with this layer loads in a program with `import gar_keras`.

    Raises:
        ValueError: as `GraphActivityRegularizer`; on several replicas of
            `tf.distribute`, with a Keras before 3.10.

    Input shape:
        `(batch, n)`: unrectified logits of a float dtype.

    Output shape:
        The same: the very same tensor.

    Example:

    >>> model = keras.Sequential([
    ...     keras.Input((4,)),
    ...     keras.layers.Dense(3),
    ...     GraphActivityRegularization(),
    ... ])
    >>> model.compile("sgd", loss=None)
    >>> history = model.fit(np.ones((8, 4)), verbose=0)
    >>> sorted(history.history)
    ['affinity', 'balance', 'classes_in_use', 'loss', 'regularization']
    """

    def __init__(
        self,
        affinity: float = 3.0,
        balance: float = 1.0,
        frobenius: float = 1e-6,
        frobenius_of: FrobeniusOf = "B",
        class_prior: ClassPrior = None,
        balance_of: BalanceOf = "diagonal",
        balance_memory: float = 0.0,
        **kwargs,
    ):
        # The logits pass as they are, whatever the dtype policy computes in.
        kwargs["autocast"] = False
        super().__init__(**kwargs)
        self._formula = GraphActivityRegularizer(
            affinity, balance, frobenius, frobenius_of, class_prior, balance_of
        )
        self.balance_memory = check_number(
            "balance_memory", balance_memory, high=1
        )
        self._shares = None
        self.num_classes = None
        self.supports_masking = True
        self.coefficient_weights = {
            name: self.add_weight(
                name=f"{name}_coefficient",
                shape=(),
                initializer=keras.initializers.Constant(value),
                dtype="float32",
                trainable=False,
                autocast=False,
            )
            for name, value in self._formula.coefficients.items()
            if value
        }
        self.means = {
            name: StepMean(self.metric_name(name), dtype="float32")
            for name in [*self.coefficient_weights, "regularization"]
            if name != "frobenius"
        }
        self.usage = ClassesInUse(
            self.metric_name("classes_in_use"), self.class_prior, "float32"
        )

    def metric_name(self, term):
        """Name of a term in the logs: `term`, or with the layer's in front."""
        # Keras numbers default names: the second model of a program has _1.
        if re.fullmatch(r"graph_activity_regularization(_\d+)?", self.name):
            return term
        return f"{self.name}_{term}"

    def build(self, input_shape):
        self._formula.check_shape(input_shape)
        n = self.num_classes = input_shape[-1]
        self.input_spec = keras.layers.InputSpec(ndim=2, axes={-1: n})
        self.usage.build(n)
        if self.balance_memory:
            replicas.check_one("A layer with balance_memory")
            self._shares = self.add_weight(
                name="shares",
                shape=(n,),
                initializer=keras.initializers.Constant(self._first_shares()),
                dtype="float32",
                trainable=False,
                autocast=False,
            )

    def call(self, inputs, training=None):
        check_logits(inputs)
        # Not known in a model that does not pass `training` on: better a loss
        # too many in its evaluation than none in its training.
        evaluating = training is not None and not training
        measured = self.measure(inputs, bool(training))
        for name, mean in self.means.items():
            mean.record(measured[name])
        self.usage.record(inputs)
        loss = measured["regularization"]
        # A loss of 0 lets a model without any other loss be evaluated.
        autodiff.add_loss(self, ops.zeros_like(loss) if evaluating else loss)
        return inputs

    def measure(self, Z, training=False):
        """The terms of logits `(m, n)`, and `U` as `"regularization"`.

        In training, shares that are remembered move by it.
        """
        memory = None
        if self.balance_memory:
            memory = self.balance_memory, self._shares
        U, measured = gar_loss(
            ops.cast(Z, "float32"),
            self.coefficient_weights,
            self._formula.frobenius_of,
            self._formula.balance_of,
            self._formula.class_prior,
            memory,
        )
        shares = measured.pop("shares", None)
        if memory is not None and shares is not None and training:
            self._shares.assign(ops.stop_gradient(shares))
        return measured | {"regularization": U}

    def reset_shares(self) -> None:
        """Has the shares of `balance_memory` begin with the prior again.

        `gar_keras.regularize` and `gar_keras.GARAfter` call it at epoch 0. In
        another `fit` of your own they go on from those of the training before.
        """
        if self._shares is not None:
            self._shares.assign(self._first_shares())

    def _first_shares(self):
        n = self.num_classes
        return np.array(self.class_prior or [1 / n] * n, "float32")

    def rematerialized_call(self, fn, *args, **kwargs):
        # Nothing here is worth computing twice, and the loss would be lost.
        return fn

    @property
    def weights(self):
        # State, as that of a seed: see the docstring of the class.
        return []

    # The config has the coefficients: a file of weights changes none.

    def save_own_variables(self, store):
        if self._shares is not None:
            store["shares"] = self._shares

    def load_own_variables(self, store):
        # A file of a model without this layer has nothing for it. The store of
        # Keras 3.6 knows its keys alone.
        if self._shares is not None and "shares" in store.keys():
            self._shares.assign(store["shares"])

    @property
    def class_prior(self):
        """The shares of the classes, a tuple of floats, or `None`."""
        return self._formula.class_prior

    @property
    def made_with(self):
        """The coefficients that the layer was made with, but for those of 0."""
        made_with = self._formula.coefficients
        return {name: made_with[name] for name in self.coefficient_weights}

    @property
    def coefficients(self):
        """The coefficients in force, as floats by the name of their term."""
        return {
            name: float(value.numpy())
            for name, value in self.coefficient_weights.items()
        }

    def set_coefficients(self, **coefficients: float) -> None:
        """Changes coefficients, from the next step on, without retracing.

        In `gar_keras.regularize`, a callback's hooks of a batch come once in
        many steps. On JAX, `fit` keeps all weights to itself until the
        end of an epoch: a callback that changes coefficients within one must
        call `model.jax_state_sync()` first.

        Args:
            **coefficients: New values by name: `affinity`, `balance`,
                `frobenius`. Those not named stay as they are.

        Raises:
            ValueError: if a value is not valid, or if the layer was made
                without that term.
            RuntimeError: if `fit` has the weights, on JAX.

        Example:

        >>> layer = GraphActivityRegularization()
        >>> layer.set_coefficients(affinity=1.5)
        >>> layer.coefficients["affinity"]
        1.5
        """
        values = {}
        for name, value in coefficients.items():
            if name not in self.coefficient_weights:
                raise ValueError(
                    f"This layer was made without a term {name!r}. It has: "
                    f"{', '.join(self.coefficient_weights) or 'none'}."
                )
            values[name] = check_coefficient(name, value)
            if is_taken(self.coefficient_weights[name]):
                raise RuntimeError(
                    "Within an epoch on JAX, fit has the weights of the layer. "
                    "Call jax_state_sync() of the model first."
                )
        for name, value in values.items():
            self.coefficient_weights[name].assign(value)

    def compute_output_shape(self, input_shape):
        return input_shape

    def compute_output_spec(self, inputs, training=None):
        operation = operation_behind(inputs)
        while isinstance(operation, keras.Model) and operation.outputs:
            # A model called like a layer: its last layer counts.
            operation = operation_behind(operation.outputs[0])
        if operation is not None:
            warn_of_probabilities(operation)
        return keras.KerasTensor(inputs.shape, inputs.dtype)

    def get_config(self):
        config = {
            **super().get_config(),
            **self._formula.get_config(),
            "balance_memory": self.balance_memory,
        }
        # Within an epoch on JAX, fit has them.
        if not any(map(is_taken, self.coefficient_weights.values())):
            its, made_with = self.coefficients, self.made_with
            if any(its[name] != np.float32(made_with[name]) for name in its):
                config["in_force"] = self.coefficients
        return config

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        in_force = config.pop("in_force", {})
        layer = super().from_config(config)
        layer.set_coefficients(**in_force)
        return layer


def regularization_layers(model):
    """The `GraphActivityRegularization` layers of a model, at any depth."""
    return [
        layer
        for layer in flatten_layers(model)
        if isinstance(layer, GraphActivityRegularization)
    ]


@keras.saving.register_keras_serializable(package="gar_keras")
class PerImageStandardization(keras.layers.Layer):
    """Scales each image to mean 0 and standard deviation 1.

    `(x - mean(x)) / std(x)`, over all pixels and channels of the image, in
    float32. An image of one value becomes zeros. The SVHN input of the paper's
    code is this (a factor such as 1/255 before it changes nothing).

    Input shape:
        `(batch, ...)`, of any real dtype and any order of the axes.

    Output shape:
        The same, in float32.

    Example:

    >>> layer = PerImageStandardization()
    >>> x = np.array([0, 0, 255, 255], "uint8").reshape(1, 2, 2, 1)
    >>> np.array(layer(x)).ravel().tolist()
    [-1.0, -1.0, 1.0, 1.0]
    """

    def __init__(self, **kwargs):
        kwargs["autocast"] = False
        super().__init__(**kwargs)

    def call(self, inputs):
        x = ops.cast(inputs, "float32")
        axes = tuple(range(1, len(x.shape)))
        largest = ops.max(x, axis=axes, keepdims=True)
        least = ops.min(x, axis=axes, keepdims=True)
        x = x - ops.mean(x, axis=axes, keepdims=True)
        # The mean is rounded: what it leaves of one value is not always 0.
        x = ops.where(ops.equal(largest, least), ops.zeros_like(x), x)
        std = ops.sqrt(ops.mean(ops.square(x), axis=axes, keepdims=True))
        return x / ops.where(std > 0, std, ops.ones_like(std))
