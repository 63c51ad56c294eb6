"""One step of stage 2, what a term of its loss is, GAR's and the labels'."""

from dataclasses import dataclass
from typing import ClassVar

import keras
from keras import ops

from gar_keras.callbacks import WarnOfOrder, WarnOnCollapse
from gar_keras.engine import replicas
from gar_keras.engine.graphs import has_graph
from gar_keras.engine.streams import Stream
from gar_keras.layers import GraphActivityRegularization
from gar_keras.methods import losses
from gar_keras.models import (
    check_can_be_regularized,
    check_layer,
    is_regularized,
    plain_network,
    stage_2_network,
)
from gar_keras.utils.validation import (
    check_class_prior,
    check_fields,
    check_number,
    check_seed,
)


class Stage2(keras.Model):
    """A network in stage 2, with the loss of a method, for `fit`.

    `loss = sum of weight * loss(...) of the terms`, and what layers add to it.

    What a term adds to a step, such as a running average, is of the step's
    graph, on variables of this model: it holds for many steps in one call, and
    a saved state has them.

    Attributes:
        method: The terms, a list, as their `setup` returned them.
        network: What is trained, from examples to logits.
        evaluated: The model whose predictions count: the network as it was
            given, or what a term puts in its place.
        num_classes: n of the logits.
        steps: Steps of the whole training.
        labeled_per_batch: b_L.
        seed: Of what the terms draw at random.
    """

    def __init__(
        self,
        method,
        network,
        num_classes,
        steps,
        labeled_per_batch,
        seed=0,
        evaluated=None,
    ):
        for term in method:
            if not term.supports_replicas:
                replicas.check_one(type(term).__name__)
        # The network casts its inputs itself; a global policy would round
        # them before any layer that computes in float32.
        super().__init__(name=network.name, autocast=False)
        self.method = method
        self.network = network
        self.evaluated = network if evaluated is None else evaluated
        self.num_classes = num_classes
        self.steps = steps
        self.labeled_per_batch = labeled_per_batch
        self.seed = check_seed("seed", seed)
        self.step = self.add_weight(
            (), "zeros", "int32", trainable=False, name="step"
        )
        self.means = {
            # A mean in bfloat16 would stop counting at 256 steps.
            term.name: keras.metrics.Mean(term.name, dtype="float32")
            for term in method
            if not term.has_metrics
        }
        for term in method:
            term.build(self)
        self.built = True

    def call(self, inputs, training=None):
        model = self.network if training else self.evaluated
        return model(inputs, training=training)

    def compute_loss(
        self, x, y=None, y_pred=None, sample_weight=None, training=True
    ):
        """The loss of a batch; outside of training without the terms."""
        loss = ops.zeros((), "float32")
        # Weight decay, for one. Before a term calls the network again.
        for added in self.losses:
            loss = loss + ops.sum(ops.cast(added, "float32"))
        if training:
            if y is None:
                y = ops.full(ops.shape(y_pred)[:1], -1, "int32")
            for term in self.method:
                value = term.weight * term.loss(self, x, y, y_pred)
                loss = loss + value
                if term.name in self.means:
                    self.means[term.name].update_state(value)
            self.step.assign(self.step + 1)
        # TensorFlow sums the gradients of replicas.
        replica = replicas.context()
        return loss if replica is None else loss / replica.num_replicas_in_sync

    def evaluate(self, *args, **options):
        """Refuses: outside of training the terms are left out of the loss."""
        raise ValueError(
            "The model in training has no loss outside of it. Evaluate your "
            "own, which has the same weights, or take gar_keras.error_rate."
        )

    def done(self):
        """The share of the training that is done, a float32 scalar."""
        return ops.cast(self.step, "float32") / self.steps

    @property
    def state(self):
        """The variables that are not the network's, seeds included."""
        its = {id(variable) for variable in self.network.variables}
        return [v for v in self.variables if id(v) not in its]


@dataclass(frozen=True)
class Term:
    """A term of the loss of stage 2: `weight * loss(...)`.

    A method of stage 2 is a list of terms, each with another `name`. A term is
    a frozen dataclass, whose fields are its settings; it must have a `name`
    and a `loss`. The hooks that it may have beside are called in this order:
    `network`, `check`, `setup`, `build`, `callbacks`. Each of them is called
    for all terms of a list before the next one.

    Args:
        weight: Factor of the term, a finite number of at least 0.

    Attributes:
        name: Its name in the history.
        uses_labels: Whether it looks at the labels. If no term of a list does,
            `regularize` needs none.
        uses_unlabeled: Whether it looks at the unlabelled examples. If no term
            of a list does, a batch has labelled ones alone.
        keeps_dropout: Whether the Dropout layers of the model stay in. They do
            if one term of a list says so.
        can_collapse: Whether its first steps can lose a class. If those of one
            term of a list can, the default optimizer clips the gradient and
            warms up.
        supports_replicas: Whether it trains on replicas of `tf.distribute`.
            All terms of a list must.
        has_metrics: Whether it has metrics of its own under its name.

    Raises:
        ValueError: if `weight` is not valid.

    Example: logits should be small.

    >>> from gar_keras import CrossEntropy, regularize
    >>> @dataclass(frozen=True)
    ... class Small(Term):
    ...     name = "small"
    ...
    ...     def loss(self, stage_2, x, y, logits):
    ...         return ops.mean(ops.square(logits))
    >>> model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)])
    >>> x = np.eye(2)
    >>> history = regularize(
    ...     model, x, x, y_labeled=[0, 1], labeled_per_batch=2,
    ...     unlabeled_per_batch=2, epochs=2, verbose=0,
    ...     method=[CrossEntropy(), Small(0.01)],
    ... )
    >>> sorted(history.history)
    ['loss', 'small', 'supervised']
    """

    name: ClassVar[str]
    uses_labels: ClassVar[bool] = False
    uses_unlabeled: ClassVar[bool] = True
    can_collapse: ClassVar[bool] = False
    supports_replicas: ClassVar[bool] = False
    has_metrics: ClassVar[bool] = False
    # Without a type: a subclass may make `keeps_dropout` a field.
    keeps_dropout = False

    weight: float = 1.0

    def __post_init__(self):
        check_fields(self, check_number, "weight")

    def network(self, model):
        """What of a model it is of, from examples to logits."""
        return plain_network(model)

    def check(self, network, x_unlabeled):
        """Raises unless it can train this network on such an X_U."""

    def setup(self, network, data, initial_epoch=0):
        """What follows from the network and the data, before the first step.

        Args:
            network: What is trained, with the weights of stage 1.
            data: The `gar_keras.engine.batches.TrainingData` of X_U and X_L.
            initial_epoch: Epochs that an earlier call has done.

        Returns:
            `(term, network, data)`: the term with all of its settings, and
            what is trained, on what.
        """
        return self, network, data

    def build(self, stage_2):
        """Gives a `Stage2` what the term needs besides the network.

        What draws at random draws from `stage_2.seed`, e.g. a
        `keras.random.SeedGenerator` that is made an attribute of `stage_2`.
        """

    def callbacks(self, evaluated, data, has_validation, class_names):
        """Keras callbacks of the training.

        They come in front of the user's, and their `on_train_end` behind.

        Args:
            evaluated: The model whose predictions count.
            data: The `gar_keras.engine.batches.TrainingData` of X_U and X_L.
            has_validation: Whether there are validation data.
            class_names: What warnings call the classes; `None` for indices.
        """
        return []

    def loss(self, stage_2, x, y, logits):
        """The term for a batch, without its weight: a float32 scalar.

        Args:
            stage_2: The `Stage2` in training.
            x: Examples, the unlabelled ones first, as they were given: of any
                dtype, and for several inputs a dict or tuple. What moves them
                does it behind `gar_keras.methods.preprocessing.split`.
            y: Class indices, -1 for the examples without a label.
            logits: What the network gives for `x` in training, `(m, n)`.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class CrossEntropy(Term):
    """`weight * mean of -log p_y over the labelled examples of a batch`.

    It is 0 for a batch without a label. In the history it is `supervised`.

    By itself it is the control of the comparison: stage 1 goes on for as many
    steps as GAR takes, with the labelled images of GAR's batches alone, and
    without dropout.

    Args:
        weight: Factor of the term.

    Example:

    >>> CrossEntropy(0.5)
    CrossEntropy(weight=0.5)
    """

    name: ClassVar[str] = "supervised"
    uses_labels: ClassVar[bool] = True
    uses_unlabeled: ClassVar[bool] = False

    def loss(self, stage_2, x, y, logits):
        labeled = y >= 0
        each = keras.losses.sparse_categorical_crossentropy(
            ops.where(labeled, y, ops.zeros_like(y)),
            ops.cast(logits, "float32"),
            from_logits=True,
        )
        return losses.mean_over(labeled, each)


@dataclass(frozen=True)
class GAR(Term):
    """Graph-based activity regularization: `U(B)` of Algorithm 1, second loop.

    `B` are the logits of a batch of X_U and X_L, rectified. By itself it is the
    paper's stage 2. In the history it is `regularization`.

    Args:
        weight: Factor of `U(B)`, beside the coefficients of the layer.
        layer: A `GraphActivityRegularization`, for `U(B)`. By default the one
            that the model holds, and else one with the coefficients of the
            paper.

    Raises:
        ValueError: if a value is not valid; in training, if the model has no
            logits, or holds a layer of GAR and a weight other than 1 or a
            layer is given.

    Example:

    >>> layer = GraphActivityRegularization(class_prior=[0.7, 0.3])
    >>> method = [GAR(layer=layer), CrossEntropy()]
    """

    name: ClassVar[str] = "regularization"
    can_collapse: ClassVar[bool] = True
    supports_replicas: ClassVar[bool] = True
    # The layer has metrics.
    has_metrics: ClassVar[bool] = True

    layer: GraphActivityRegularization | None = None

    def __post_init__(self):
        super().__post_init__()
        check_layer(self.layer)

    def network(self, model):
        check_can_be_regularized(model)
        return model

    def check(self, network, x_unlabeled):
        if self.layer is None or not has_graph(network):
            return
        n = network.output_shape[-1]
        if self.layer.num_classes not in (None, n):
            raise ValueError(
                "A layer is for one number of classes. Received: a layer that "
                f"was built for {self.layer.num_classes} of them, and a model "
                f"of {n}. Make a new layer for each model."
            )
        if self.layer.class_prior is not None:
            check_class_prior(self.layer.class_prior, n)

    def build(self, stage_2):
        """Gives it the layer, which is not called: its loss is a term."""
        stage_2.regularization = None
        if not is_regularized(stage_2.network):
            layer = self.layer or GraphActivityRegularization(
                name="graph_activity_regularization"
            )
            if not layer.built:
                layer.build((None, stage_2.num_classes))
            stage_2.regularization = layer

    def callbacks(self, evaluated, data, has_validation, class_names):
        m = data.sampler.images_per_step
        return [WarnOnCollapse(m, class_names), *checks_of_order(data)]

    def loss(self, stage_2, x, y, logits):
        """`U(B)`; 0 where a layer inside the network adds it."""
        layer = stage_2.regularization
        if layer is None:
            return 0.0
        measured = layer.measure(logits, training=True)
        U = measured["regularization"]
        shown = measured | {"regularization": self.weight * U}
        for name, mean in layer.means.items():
            mean.update_state(shown[name])
        layer.usage.update_state(logits)
        return U


def checks_of_order(data):
    """A look at the order of a data set; others are read in random order."""
    if not isinstance(data.images, Stream):
        return []
    return [WarnOfOrder(data.sampler.images_per_step)]


def needs_labels(method):
    """Whether a term of a list looks at the labels."""
    return any(term.uses_labels for term in method)


def network_of(method, model):
    """What the terms of a method train of a model, from examples to logits."""
    networks = [term.network(model) for term in method]
    if any(map(is_regularized, networks)) and method != [GAR()]:
        raise ValueError(
            f"The model {model.name!r} already holds a GAR layer, which adds "
            "the loss by its own settings, and no other term. Received: "
            f"method={method}. Give the model without it, and the layer as "
            "GAR(layer=...); see gar_keras.detach."
        )
    if any(term.keeps_dropout for term in method):
        return networks[0]
    return stage_2_network(networks[0])
