"""Every use of what Keras keeps to itself: private names, modules and calls.

Keras may change them in any release: the tests of this module run on the
oldest Keras that is allowed, on one that does not divide regularizers by the
batch size, and on the newest.
"""

import keras
from keras.src.backend.common.global_state import get_global_attribute
from keras.src.backend.common.stateless_scope import get_stateless_scope

from gar_keras.engine.backend import name


def flatten_layers(model):
    """The layers of a model at any depth, the model itself among them."""
    return list(model._flatten_layers())


def clear_losses(layer):
    """Drops what a layer has added to the loss in this pass."""
    layer._clear_losses()


def calls(model):
    """The calls of the layers of a graph, each after those that it needs."""
    levels = sorted(model._nodes_by_depth.items(), reverse=True)
    return [node for _, nodes in levels for node in nodes]


def operation_behind(tensor):
    """The operation that gave a symbolic tensor, or `None` if not known."""
    history = getattr(tensor, "_keras_history", None)
    return None if history is None else history.operation


def call_behind(layer, tensor):
    """What a layer gives for a tensor of a graph, which keeps no hold on it.

    Keras notes the call in the operation in front, as long as that lives.
    """
    outputs = layer(tensor)
    operation_behind(tensor)._outbound_nodes.pop()
    return outputs


def stateless_scope():
    """The `keras.StatelessScope` that is open, as by `fit` on JAX."""
    return get_stateless_scope()


class AssignmentScope(keras.StatelessScope):
    """A stateless scope that knows what was assigned in it, in order.

    Args:
        around: The scope that it is within, whose values it begins with.
        state: Pairs of a variable and the value that it begins with.
    """

    def __init__(self, around=None, state=()):
        super().__init__()
        self._updates = []
        self.state_mapping |= getattr(around, "state_mapping", {})
        self.state_mapping |= {id(variable): x for variable, x in state}

    def add_update(self, update):
        super().add_update(update)
        self._updates.append(update)

    @property
    def assigned(self):
        """The variables, one for each time."""
        return [variable for variable, _ in self._updates]

    def values(self, variable):
        """What a variable was assigned, one value after the other."""
        return [value for own, value in self._updates if own is variable]


def is_taken(variable):
    """Whether `fit` on JAX has the value of a variable, within an epoch."""
    return name() == "jax" and variable._value is None


def is_lost(variable):
    """Whether a variable has no value, after a step on JAX that failed."""
    if name() != "jax":
        return False
    return is_taken(variable) or variable._value.is_deleted()


def without_autocast(variable):
    """A variable that keeps its dtype in a layer of another dtype policy."""
    variable._autocast = False
    return variable


def layer_in_call():
    """The innermost layer that Keras is calling, or `None`."""
    scopes = get_global_attribute("name_scope_stack") or [None]
    caller = getattr(scopes[-1], "caller", None)
    return caller if isinstance(caller, keras.Layer) else None


def save_with(model, optimizer):
    """Has a compiled model saved as if it were compiled with this optimizer."""
    model._compile_config.config["optimizer"] = optimizer


def is_weight(x):
    """Whether a tensor is a variable, or on JAX the value of one in `fit`."""
    scope = get_stateless_scope()
    values = scope.state_mapping.values() if scope else ()
    return isinstance(x, keras.Variable) or any(own is x for own in values)


def is_evaluated():
    """Whether Keras calls a layer within a call that is not of training."""
    training = getattr(
        get_global_attribute("current_call_ctx"), "training", None
    )
    return training is not None and not training


def may_be_shuffled(examples, batched=0):
    """Whether a `tf.data.Dataset` may have examples in an order of its own.

    A shuffle counts where its elements become parts of batches: one of batches
    leaves the examples of each together. `batched` says how many times the
    elements are put into batches later on, less those that are taken apart.
    """
    inputs = getattr(examples, "_inputs", None)
    if inputs is None:
        return True
    name = type(examples).__name__.lower()
    changes = ("flatmap", "interleave", "groupby")
    if any(change in name for change in changes):
        return True
    if "shuffle" in name and batched > 0:
        return True
    if "unbatch" in name:
        batched -= 1
    elif "batch" in name:
        batched += 1
    return any(may_be_shuffled(part, batched) for part in inputs())
