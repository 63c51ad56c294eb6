"""What the rivals have in common that train the network of stage 1."""

from dataclasses import dataclass
from typing import ClassVar

import keras
from keras import ops

from gar_keras.callbacks import BestWeights
from gar_keras.callbacks import list_of
from gar_keras.engine.batches import Feed
from gar_keras.engine.fit import compile_options
from gar_keras.engine.fit import fit
from gar_keras.methods import losses
from gar_keras.models import check_linear
from gar_keras.models import detach
from gar_keras.models import ensure_built
from gar_keras.models import without_dropout
from gar_keras.paper import LABELED_PER_BATCH
from gar_keras.paper import UNLABELED_PER_BATCH
from gar_keras.training import check_epochs
from gar_keras.training import num_classes
from gar_keras.training import plan_stage_2
from gar_keras.training import sgd
from gar_keras.training import watch
from gar_keras.utils.validation import check_count
from gar_keras.utils.validation import check_labels


@dataclass(frozen=True)
class Rival:
    """A method that goes on after stage 1 with labels and a loss of its own.

    `loss = mean log loss of the labelled images + weight(t) * term`

    A method is a subclass whose fields are its hyper-parameters and whose
    `term` is its own part of the loss. The network, the labels, the batches,
    their order, the number of steps and the optimizer are those of GAR.

    Attributes:
        noise: Whether the Dropout layers of stage 1 stay in.
        supervised: Factor of the log loss.
    """

    noise: ClassVar[bool] = False
    # Without a type: a subclass may make a field of it, in its own order.
    supervised = 1.0

    def check(self, network, x_unlabeled):
        """Raises unless the method can train this network on these images.

        Args:
            network: A `keras.Model` from images to logits.
            x_unlabeled: X_U, an array or an image source.
        """

    def wrap(self, network, seed):
        """What is called in training: a model with the network in it."""
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

    def with_alarm(self, callbacks, network, validation_data, plan):
        """The callbacks, with those that warn when the method goes wrong."""
        return callbacks

    def feed(self, sampler, x_labeled, y_labeled, x_unlabeled):
        """The `Feed` of the training.

        By default batches of `x = [unlabelled; labelled]`, and `y`.
        """
        return Feed(sampler, x_unlabeled, x_labeled, y_labeled=y_labeled)

    def train(
        self,
        model,
        x_labeled,
        y_labeled,
        x_unlabeled,
        *,
        epochs=100,
        labeled_per_batch=LABELED_PER_BATCH,
        unlabeled_per_batch=UNLABELED_PER_BATCH,
        images_per_epoch=None,
        optimizer=None,
        validation_data=None,
        keep_best=True,
        initial_epoch=0,
        state=None,
        seed=0,
        callbacks=(),
        verbose="auto",
    ):
        """Stage 2 by this method; see `gar_keras.regularize`.

        Args:
            model: A pretrained `keras.Model` from images to logits
                `(batch, n)`, trained in place.
            x_labeled: X_L, `(m_L, ...)`.
            y_labeled: Class indices `(m_L,)`.
            x_unlabeled: X_U, `(m_U, ...)`, or an image source.
            epochs: Passes over X_U. Schedules are laid over all of them.
            labeled_per_batch: b_L, at least 1.
            unlabeled_per_batch: b_U.
            images_per_epoch: Images of X_U in an epoch, if not all of them.
            optimizer: A Keras optimizer. A new `sgd()` by default.
            validation_data: `(x, y)` whose error is measured, or `None`.
            keep_best: Whether the model ends with the weights of the epoch
                with the least validation error (the first of them).
            initial_epoch: Epochs that are done already, when training goes on
                with the optimizer of an earlier call.
            state: What that call left besides weights and optimizer, the
                values of `history.model.state`, or `None` at the beginning.
                The model has to have the weights that were in training then:
                not those that `keep_best` took, nor an average of them.
            seed: Seed of the order of the batches and of the method's noise.
            callbacks: As for `gar_keras.regularize`.
            verbose: As in `fit`.

        Returns:
            A `keras.callbacks.History` with `loss`, `supervised`,
            `unsupervised` (the term), `weight` (its factor) and, with
            `validation_data`, `val_error` and `val_accuracy`. Its `model` is
            the `Learner`.

        Raises:
            ValueError: if the data do not fit together or do not fit the
                model, or if the model gives no logits.
            FloatingPointError: if the loss becomes NaN or infinite.
        """
        check_epochs(epochs, initial_epoch)
        callbacks = list_of(callbacks)
        check_count("labeled_per_batch", labeled_per_batch, least=1)
        plan = plan_stage_2(
            x_labeled,
            x_unlabeled,
            labeled_per_batch,
            unlabeled_per_batch,
            images_per_epoch,
            seed,
        )
        ensure_built(model, x_labeled)
        plain = detach(model)
        check_linear(plain)
        classes = num_classes(plain, "x_labeled", x_labeled)
        y = check_labels("y_labeled", y_labeled, len(x_labeled), classes)
        watching = watch(
            validation_data, classes, like=("x_labeled", x_labeled)
        )
        if validation_data is not None and keep_best:
            watching.append(BestWeights())
        network = plain if self.noise else without_dropout(plain)
        self.check(network, x_unlabeled)
        learner = Learner(
            self, network, epochs * plan.steps, labeled_per_batch, seed
        )
        if state is not None:
            learner.restore(state)
        learner.compile(
            optimizer or sgd(), loss=None, **compile_options(plan.steps)
        )
        callbacks = self.with_alarm(callbacks, network, validation_data, plan)
        history = fit(
            learner,
            self.feed(plan, x_labeled, y, x_unlabeled),
            epochs=epochs,
            initial_epoch=initial_epoch,
            callbacks=[*watching, *callbacks],
            verbose=verbose,
        )
        if learner.evaluated is not network:
            network.set_weights(learner.evaluated.get_weights())
        return history


class Learner(keras.Model):
    """A network with a rival's loss on it, for `fit` on any backend.

    Schedules and averages are steps of the graph, on variables of this model:
    they hold for many steps in one call, and a saved state has them.

    Args:
        rival: A `Rival`.
        network: A `keras.Model` from images to logits, trained in place.
        steps: Steps of the whole training, for the schedules.
        labeled_per_batch: Labelled images at the end of each batch.
        seed: Seed of the method's own noise.

    Attributes:
        trained: What is called in training: the network, or a model around it.
        evaluated: The model whose predictions count: the network, or what the
            method puts in its place.
    """

    def __init__(self, rival, network, steps, labeled_per_batch, seed=0):
        super().__init__(name=network.name)
        self.rival = rival
        self.network = network
        self.trained = rival.wrap(network, seed)
        self.steps = steps
        self.labeled_per_batch = labeled_per_batch
        self.evaluated = network
        self.step = self.add_weight(
            shape=(),
            initializer="zeros",
            dtype="int32",
            trainable=False,
            name="step",
        )
        self.supervised = keras.metrics.Mean("supervised")
        self.unsupervised = keras.metrics.Mean("unsupervised")
        self.weight = keras.metrics.Mean("weight")
        rival.prepare(self, seed)
        self.built = True

    def call(self, inputs, training=None):
        if training:
            return self.trained(inputs, training=True)
        return self.evaluated(inputs, training=False)

    def compute_loss(
        self,
        x=None,
        y=None,
        y_pred=None,
        sample_weight=None,
        training=True,
    ):
        # Before the method calls the network again: e.g. weight decay.
        loss = sum(self.losses)
        supervised = losses.log_loss(y, y_pred)
        self.supervised.update_state(supervised)
        loss = loss + self.rival.supervised * supervised
        if not training:
            return loss
        weight, term = self.rival.term(self, x, y, y_pred)
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

    def restore(self, values):
        """Gives the variables of `state` their values from before."""
        variables = self.state
        if len(values) != len(variables):
            raise ValueError(
                f"The state of this method has {len(variables)} variables. "
                f"Received: state of {len(values)} values. Give the values of "
                "history.model.state of the same method and model."
            )
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)
