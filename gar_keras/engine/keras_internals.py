"""Every use of what Keras keeps to itself: private names, modules and calls.

All are there since Keras 3.0, and Keras may change them in any release. Each
function tells what breaks without it; the tests of this module run on the
oldest Keras that is allowed, on one that does not divide regularizers by the
batch size, and on the newest.
"""

import keras
from keras.src.backend.common.global_state import get_global_attribute
from keras.src.backend.common.stateless_scope import get_stateless_scope

from gar_keras.engine.backend import name


def flatten_layers(model):
    """The layers of a model at any depth, the model itself among them.

    Without it, GAR is not found in a model that holds it: it would be attached
    twice, and no callback would find its coefficients.
    """
    return list(model._flatten_layers())


def calls(model):
    """The calls of the layers of a graph, each after those that it needs.

    A list of nodes with `operation`, `input_tensors` and `output_tensors`.
    Without it, VAT cannot tell which layers the images go through first.
    """
    levels = model._nodes_by_depth
    return [node for depth in sorted(levels, reverse=True)
            for node in levels[depth]]  # fmt: skip


def operation_behind(tensor):
    """The operation that gave a symbolic tensor, or `None` if not known.

    Without it, nobody is warned of a softmax in front of GAR.
    """
    history = getattr(tensor, "_keras_history", None)
    return None if history is None else history.operation


def inputs_behind(tensor):
    """The tensors from which the operation behind a symbolic tensor made it.

    Without it, `ExtendedGAR` refuses models that end with GAR.
    """
    operation, index, _ = tensor._keras_history
    return operation._inbound_nodes[index].input_tensors


def stateless_scope():
    """The `keras.StatelessScope` that is open, or `None`.

    Without it, no layer on JAX can tell whether `fit` has its variables: the
    metrics of GAR would be lost, and its loss in layers that are called twice.
    """
    return get_stateless_scope()


class AssignmentScope(keras.StatelessScope):
    """A stateless scope that keeps which variables were `assigned` in it.

    The values of the scope `around` it, if any, hold in this one. Without it,
    VAT leaves tracers in the seeds of Dropout on JAX.
    """

    def __init__(self, around=None):
        super().__init__()
        self.assigned = []
        if around is not None:
            self.state_mapping.update(around.state_mapping)

    def add_update(self, update):
        super().add_update(update)
        self.assigned.append(update[0])


def is_taken(variable):
    """Whether `fit` has the value of a variable, to give it back later.

    So it is on JAX from the first step of an epoch to its end. Without it,
    `set_coefficients` within an epoch would do nothing.
    """
    return name() == "jax" and variable._value is None


def without_autocast(variable):
    """A variable that keeps its dtype within a layer of another dtype policy.

    Without it, a metric that a layer updates would count in float16.
    """
    variable._autocast = False
    return variable


def momentum_of(optimizer, variable):
    """The momentum that an SGD keeps of a weight.

    Without it, `optimizers.SGD` has no faster update.
    """
    return optimizer.momentums[optimizer._get_variable_index(variable)]


def step_counter(optimizer):
    """The variable that counts the steps of an optimizer.

    The public `iterations` is a part of it only where gradients are
    accumulated. Without it, the rate of `optimizers.SGD` would not decay.
    """
    return optimizer._iterations


def layer_in_call():
    """The innermost layer that Keras is calling, or `None`.

    Without it, nobody is warned of a softmax in front of an activity
    regularizer, and JAX counts only the last call of its layer in a step.
    """
    scopes = get_global_attribute("name_scope_stack") or [None]
    caller = getattr(scopes[-1], "caller", None)
    return caller if isinstance(caller, keras.Layer) else None


def is_rematerialized(x):
    """Whether a tensor is made in a function of `keras.remat`.

    Uses TensorFlow's sign of a stopped tape, and what a trace of JAX is for.
    Without them, the loss of GAR would have no gradient under
    rematerialization, in silence.
    """
    if name() == "tensorflow":
        from tensorflow.python import pywrap_tfe

        return pywrap_tfe.TFE_Py_TapeSetIsStopped()
    trace = getattr(x, "_trace", None)
    info = getattr(getattr(trace, "frame", None), "debug_info", None)
    scope = get_stateless_scope()
    values = scope.state_mapping.values() if scope else ()
    # Or in a function that is computed again as a whole, and returns the loss.
    whole = any(getattr(value, "_trace", None) is trace for value in values)
    return "remat" in getattr(info, "traced_for", "") and not whole


def may_be_shuffled(batches):
    """Whether a `tf.data.Dataset` may be in another order than its source.

    Its own class and those that it is made of tell, which TensorFlow keeps to
    itself. Without it, nobody is warned of data sorted by class.
    """
    changes = ("shuffle", "flatmap", "interleave")
    inputs = getattr(batches, "_inputs", None)
    return (
        inputs is None
        or any(word in type(batches).__name__.lower() for word in changes)
        or any(may_be_shuffled(part) for part in inputs())
    )
