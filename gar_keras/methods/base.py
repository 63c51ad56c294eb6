"""What all methods share that train the network of stage 1."""

from dataclasses import dataclass
from typing import ClassVar

import keras
import numpy as np
from keras import ops

from gar_keras.engine import replicas
from gar_keras.engine.optimizers import sgd
from gar_keras.methods import losses
from gar_keras.models import plain_network, stage_2_network
from gar_keras.utils.validation import check_count


@dataclass(frozen=True)
class Method:
    """A way to go on after stage 1, by default with the labels and a term.

    `loss = mean cross-entropy of the labelled images + weight(t) * term`

    A method is a subclass whose fields are its hyper-parameters and whose
    `term` is its own part of the loss. The network, the labels, the batches,
    their order, the number of steps and the optimizer are those of GAR.

    Attributes:
        noise: Whether the Dropout layers of stage 1 stay in.
        uses_labels: Whether the labels have a part in the loss.
        warns_of_collapse: Whether a `WarnOnCollapse` watches the training.
        if_lost: What `finish` does where a class is lost, as a sentence.
        supervised: Factor of the cross-entropy.
    """

    noise: ClassVar[bool] = False
    uses_labels: ClassVar[bool] = True
    warns_of_collapse: ClassVar[bool] = False
    if_lost: ClassVar[str] = ""
    # Without a type: a subclass may make a field of it, in its own order.
    supervised = 1.0

    def network(self, model):
        """What of a model is trained, from images to logits."""
        plain = plain_network(model)
        return plain if self.noise else stage_2_network(plain)

    def check(self, network, x_unlabeled):
        """Raises unless the method can train this network on such an X_U."""

    def begin(self, network, feed):
        """Prepares the network before the first step of all.

        Returns the method with the settings that follow from network and data.
        """
        return self

    def go_on(self, network, feed):
        """The method for a training that goes on after `initial_epoch`."""
        return self

    def scaled(self, network):
        """The network with the logits that the loss is of."""
        return network

    @property
    def learns_labels(self):
        """Whether the cross-entropy of the labels is in the loss."""
        return bool(self.uses_labels and self.supervised)

    def finish(self, network, feed, weights, watch=None):
        """Looks at the trained network, where there is no validation data.

        `weights` are those that this training began with, `watch` is its
        `WarnOnCollapse`, if it has one.
        """

    def optimizer(self, steps):
        """A new optimizer for so many steps, where none is given."""
        return sgd()

    def check_batches(self, labeled_per_batch):
        """Raises unless the method can train on batches with so many labels."""
        if self.uses_labels:
            check_count("labeled_per_batch", labeled_per_batch, least=1)

    def trainer(self, network, steps, labeled_per_batch, seed):
        """The model that `fit` is called of, with the method's loss in it."""
        return Learner(self, network, steps, labeled_per_batch, seed)

    def evaluated(self, trained, network):
        """The model whose predictions count while another is trained."""
        return evaluated_by(trained, network)

    def wrap(self, network, seed):
        """What a `Learner` calls in training: a model with the network."""
        return network

    def prepare(self, learner, seed):
        """Gives the learner what the method needs besides the network."""

    def term(self, learner, x, y, logits):
        """The method's own part of the loss of a batch.

        Args:
            learner: The `Learner` in training.
            x: Images, the unlabelled ones first.
            y: Class indices, -1 for the unlabelled images.
            logits: What the network gives for `x` in training, `(m, n)`.

        Returns:
            `(weight, term)`, scalars: the factor at this step, and the term.
        """
        raise NotImplementedError

    def feed(self, feed):
        """The `Feed` of the training, made of that of X_U and X_L."""
        return feed


def evaluated_by(trained, network):
    """The model whose predictions count while another is trained."""
    return trained.evaluated if isinstance(trained, Learner) else network


def state_of(trained):
    """The variables of what `Method.trainer` made, but for the network's."""
    return trained.state if isinstance(trained, Learner) else []


def check_values(variables, values):
    """Raises unless saved values are of the shapes and dtypes of variables."""
    wanted = [(tuple(v.shape), np.dtype(v.dtype)) for v in variables]
    if wanted != [(value.shape, value.dtype) for value in values]:
        raise ValueError("it has other variables")


def assign_all(variables, values):
    """Gives each variable its saved value, or none if one does not fit."""
    check_values(variables, values)
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)


class RestoreState(keras.callbacks.Callback):
    """Gives the variables of `state_of` their values of an earlier training.

    The model has to have the weights that were in training then. The path is
    that of the file which the values are from.
    """

    def __init__(self, values, path):
        super().__init__()
        self._values = values
        self._path = path

    def on_train_begin(self, logs=None):
        try:
            assign_all(state_of(self.model), self._values)
        except ValueError as e:
            raise ValueError(
                f"{self._path} does not fit the method ({e}). Delete it to "
                "begin this run again."
            ) from None


class Learner(keras.Model):
    """A network with a method's loss on it, for `fit` on any backend.

    Schedules and averages are steps of the graph, on variables of this model:
    they hold for many steps in one call, and a saved state has them.

    `trained` is what it calls in training, the network or a model around it,
    with logits as the method scales them; `evaluated` is the model whose
    predictions count, the network or what the method puts in its place.
    """

    def __init__(self, method, network, steps, labeled_per_batch, seed=0):
        replicas.check_one(type(method).__name__)
        # The network casts its inputs itself; a global policy would round
        # them before any layer that computes in float32.
        super().__init__(name=network.name, autocast=False)
        self.method = method
        self.network = method.scaled(network)
        self.trained = method.wrap(self.network, seed)
        self.steps = steps
        self.labeled_per_batch = labeled_per_batch
        self.evaluated = network
        self.step = self.add_weight(
            (), "zeros", "int32", trainable=False, name="step"
        )
        self.supervised = keras.metrics.Mean("supervised")
        self.unsupervised = keras.metrics.Mean("unsupervised")
        self.weight = keras.metrics.Mean("weight")
        method.prepare(self, seed)
        self.built = True

    def call(self, inputs, training=None):
        if training:
            return self.trained(inputs, training=True)
        return self.evaluated(inputs, training=False)

    def compute_loss(
        self, x, y=None, y_pred=None, sample_weight=None, training=True
    ):
        # Before the method calls the network again: e.g. weight decay.
        loss = sum(ops.cast(each, "float32") for each in self.losses)
        supervised = losses.log_loss(y, y_pred)
        self.supervised.update_state(supervised)
        loss = loss + self.method.supervised * supervised
        if not training:
            return loss
        weight, term = self.method.term(self, x, y, y_pred)
        self.step.assign(self.step + 1)
        self.unsupervised.update_state(term)
        self.weight.update_state(weight)
        return loss + weight * term

    def done(self):
        """The share of the training that is done, a float32 scalar."""
        return ops.cast(self.step, "float32") / self.steps

    @property
    def state(self):
        """The variables that are not the network's, seeds included."""
        its = {id(variable) for variable in self.network.variables}
        return [v for v in self.variables if id(v) not in its]
