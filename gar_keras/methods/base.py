"""One step of stage 2, and what a method of it is."""

from dataclasses import dataclass
from typing import ClassVar

import keras
from keras import ops

from gar_keras.engine import replicas
from gar_keras.models import plain_network, stage_2_network
from gar_keras.utils.validation import check_seed


class Stage2(keras.Model):
    """A network in stage 2, with the loss of a method, for `fit`.

    What a method adds to a step, such as a running average, is of the step's
    graph, on variables of this model: it holds for many steps in one call, and
    a saved state has them.

    Attributes:
        method: The `Method`, as its `setup` returned it.
        network: What the gradient is of, from examples to logits.
        trained: What is called in training: `network`, or a model around it.
        evaluated: The model whose predictions count: the network as it was
            given, or what the method puts in its place.
        num_classes: n of the logits.
        steps: Steps of the whole training.
        labeled_per_batch: b_L.
        seed: Of what the method draws at random.
    """

    def __init__(
        self, method, network, num_classes, steps, labeled_per_batch, seed=0
    ):
        if not method.supports_replicas:
            replicas.check_one(type(method).__name__)
        # The network casts its inputs itself; a global policy would round
        # them before any layer that computes in float32.
        super().__init__(name=network.name, autocast=False)
        self.method = method
        self.network = self.trained = self.evaluated = network
        self.num_classes = num_classes
        self.steps = steps
        self.labeled_per_batch = labeled_per_batch
        self.seed = check_seed("seed", seed)
        self.step = self.add_weight(
            (), "zeros", "int32", trainable=False, name="step"
        )
        self.means = {name: keras.metrics.Mean(name) for name in method.terms}
        method.build(self)
        self.built = True

    def call(self, inputs, training=None):
        model = self.trained if training else self.evaluated
        return model(inputs, training=training)

    def compute_loss(
        self, x, y=None, y_pred=None, sample_weight=None, training=True
    ):
        """The sum of the method's terms and of what layers add to the loss.

        Without the method's terms outside of training.
        """
        loss = ops.zeros((), "float32")
        # Weight decay, for one. Before the method calls the network again.
        for added in self.losses:
            loss = loss + ops.sum(ops.cast(added, "float32"))
        if training:
            for name, term in self.method.losses(self, x, y, y_pred).items():
                loss = loss + term
                if name in self.means:
                    self.means[name].update_state(term)
            self.step.assign(self.step + 1)
        # TensorFlow sums the gradients of replicas.
        return loss / replicas.count() if replicas.is_inside() else loss

    def done(self):
        """The share of the training that is done, a float32 scalar."""
        return ops.cast(self.step, "float32") / self.steps

    @property
    def state(self):
        """The variables that are not the network's, seeds included."""
        its = {id(variable) for variable in self.network.variables}
        return [v for v in self.variables if id(v) not in its]


@dataclass(frozen=True)
class Method:
    """A way to go on after stage 1: here, with the labels alone.

    `loss = sum of the terms that losses gives`

    A method is a subclass whose fields are its hyper-parameters. What it may
    change are five functions, the hooks of `gar_keras.regularize`, in the order
    in which they are called: `network`, `check`, `setup`, `build`, `losses`.
    The labels, the batches, their order and the number of steps are those of
    GAR.

    Attributes:
        keeps_dropout: Whether the Dropout layers of stage 1 stay in.
        uses_labels: Whether the labels have a part in the loss.
        warns_of_collapse: Whether a `WarnOnCollapse` watches the training.
        restores_start: Whether a training without validation data that
            loses a class is taken back. Such a method has a `class_prior` and
            `start_weights`, as `gar_keras.SafeGAR`.
        largest_share_change: Factor by which such a training may change the
            share of the smaller classes and not be taken back, or `None`.
        supports_replicas: Whether it trains on replicas of `tf.distribute`.
        terms: Names of the terms, for the history.
        supervised: Factor of the cross-entropy.
        rate, warmup_steps, global_clipnorm: Of the default optimizer; see
            `gar_keras.methods.options.GAROptions`.
    """

    keeps_dropout: ClassVar[bool] = False
    uses_labels: ClassVar[bool] = True
    warns_of_collapse: ClassVar[bool] = False
    restores_start: ClassVar[bool] = False
    largest_share_change: ClassVar[float | None] = None
    supports_replicas: ClassVar[bool] = False
    terms = ("supervised",)
    # Without a type: a subclass may make fields of them, in its own order.
    supervised = 1.0
    rate = "inverse-time"
    warmup_steps = 0
    global_clipnorm = 0.0

    @property
    def learns_labels(self):
        """Whether the cross-entropy of the labels is in the loss."""
        return bool(self.uses_labels and self.supervised)

    def network(self, model):
        """What of a model is trained, from examples to logits."""
        plain = plain_network(model)
        return plain if self.keeps_dropout else stage_2_network(plain)

    def check(self, network, x_unlabeled):
        """Raises unless the method can train this network on such an X_U."""

    def setup(self, network, data, initial_epoch=0):
        """What follows from the network and the data, before the first step.

        Args:
            network: What `network` returned, with the weights of stage 1.
            data: The `gar_keras.engine.batches.TrainingData` of X_U and X_L.
            initial_epoch: Epochs that an earlier call has done.

        Returns:
            `(method, data)`: the method with all of its settings, and the
            `TrainingData` of the training.
        """
        return self, data

    def build(self, stage_2):
        """Gives a `Stage2` what the method needs besides the network.

        What draws at random draws from `stage_2.seed`, e.g. a
        `keras.random.SeedGenerator` that is made an attribute of `stage_2`.
        """

    def losses(self, stage_2, x, y, logits):
        """The terms of the loss of a batch, by name.

        Args:
            stage_2: The `Stage2` in training.
            x: Examples, the unlabelled ones first, as they were given: of any
                dtype, and for several inputs a dict or tuple. What moves them
                does it behind `gar_keras.methods.preprocessing.split`.
            y: Class indices, -1 for the unlabelled examples; `None` if
                `uses_labels` is `False`.
            logits: What the network gives for `x` in training, `(m, n)`.

        Returns:
            A dict of scalars, with their factors, by the names in `terms`.
        """
        return {"supervised": self.supervised * supervised_loss(y, logits)}


def supervised_loss(y, logits):
    """The mean cross-entropy of the examples whose `y` is not -1, or 0."""
    labeled = y >= 0
    each = keras.losses.sparse_categorical_crossentropy(
        ops.where(labeled, y, ops.zeros_like(y)),
        ops.cast(logits, "float32"),
        from_logits=True,
    )
    weights = ops.cast(labeled, each.dtype)
    return ops.sum(weights * each) / ops.maximum(ops.sum(weights), 1.0)
