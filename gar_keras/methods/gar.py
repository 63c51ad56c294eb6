"""GAR, as in the paper and with additions.

The paper's stage 2 sees each image as it is, knows no label and has no other
loss; it names augmentation and ensembles as ways to go on (section 4.2). Here
each addition is a number that is 0 in the paper. They can be combined.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from keras import ops

from gar_keras.augmentation import random_augmentation
from gar_keras.engine.graphs import has_graph
from gar_keras.engine.optimizers import stage_2_optimizer
from gar_keras.layers import GraphActivityRegularization
from gar_keras.methods import losses
from gar_keras.methods.base import Method
from gar_keras.methods.mean_teacher import average, copy_of
from gar_keras.methods.options import GAROptions
from gar_keras.methods.vat import VirtualAdversarialTraining, split
from gar_keras.models import (
    attached,
    check_can_be_augmented,
    check_layer,
    image_format_of,
    is_regularized,
    stage_2_network,
    with_augmentation,
)
from gar_keras.utils.documented import documented
from gar_keras.utils.validation import check_class_prior


@dataclass(frozen=True)
class GAR(Method):
    """Graph-based activity regularization: stage 2 as in the paper.

    `loss = U(B)`, with `B` the logits of a batch of X_U and X_L, rectified
    (Algorithm 1, second loop).

    Args:
        layer: A `GraphActivityRegularization`, for `U(B)`. By default the one
            that the model holds, and else one with the coefficients of the
            paper.
    """

    uses_labels: ClassVar[bool] = False
    warns_of_collapse: ClassVar[bool] = True

    layer: GraphActivityRegularization | None = None

    def __post_init__(self):
        check_layer(self.layer)

    def network(self, model):
        return attached(stage_2_network(model), self.layer)

    def optimizer(self, steps):
        return stage_2_optimizer(GAROptions(), steps)

    def trainer(self, network, steps, labeled_per_batch, seed):
        """The network itself: its layer has the loss."""
        return network


@documented(GAROptions)
@dataclass(frozen=True, kw_only=True)
class ExtendedGAR(GAROptions, Method):
    """Stage 2 with GAR and more: `regularize(..., method=ExtendedGAR(...))`.

    `loss = U(B) + supervised * cross-entropy of X_L
          + consistency * mean (p - p')^2 + vat * mean LDS`

    where `p` and `p'` are the predictions for two views of an image, and LDS
    is the term of `gar_keras.methods.vat`. With all at 0 the loss is that of
    `gar_keras.regularize`.

    Args:
        layer: A `GraphActivityRegularization`, for `U(B)`. By default one with
            the coefficients of the paper.
        {settings}

    Raises:
        ValueError: if a value is not valid, or if `consistency` is wanted of
            images that are not augmented; in training, as
            `gar_keras.regularize`, if what is to be augmented are not images,
            or if the model holds the loss of GAR already.

    Warns:
        GARWarning: as `gar_keras.regularize`.

    Example:

    >>> method = ExtendedGAR(supervised=1.0, shift=2, average=0.999)
    """

    warns_of_collapse: ClassVar[bool] = True

    layer: Any = field(default=None, kw_only=False)

    def __post_init__(self):
        super().__post_init__()
        check_layer(self.layer)

    def network(self, model):
        if is_regularized(model):
            raise ValueError(
                f"The model {model.name!r} already holds a GAR layer. Give "
                "ExtendedGAR the model without it, and the layer as "
                "ExtendedGAR(layer=...); see gar_keras.detach."
            )
        return super().network(model)

    def optimizer(self, steps):
        return stage_2_optimizer(self, steps)

    def check(self, network, x_unlabeled):
        if not has_graph(network):
            raise ValueError(
                "ExtendedGAR puts layers around the model, but Keras does not "
                "know the graph of a subclassed one. Received: "
                f"model={network.name!r}. Give a Functional or Sequential "
                "model, or take method='gar', which uses no labels."
            )
        if self.layer is not None and self.layer.class_prior:
            n = network.output_shape[-1]
            check_class_prior(self.layer.class_prior, n)
        if self.shift or self.affine:
            check_can_be_augmented(network)
        if self.vat:
            split(network)

    def wrap(self, network, seed):
        """The network, with augmented images and the loss of GAR behind it."""
        augmentation = self._augmentation(network, seed)
        return attached(with_augmentation(network, augmentation), self.layer)

    def _augmentation(self, network, seed):
        return random_augmentation(
            self.shift, self.affine, seed, image_format_of(network)
        )

    def prepare(self, learner, seed):
        learner.views = self._augmentation(learner.network, seed + 1)
        for layer in learner.views:
            layer.build(learner.network.inputs[0].shape)
        if self.vat:
            learner.adversary = VirtualAdversarialTraining(
                weight=self.vat, epsilon=self.vat_radius
            )
            learner.adversary.prepare(learner, seed)
        if self.average:
            learner.teacher = copy_of(learner.evaluated, seed)
            learner.evaluated = learner.teacher

    def term(self, learner, x, y, logits):
        """Consistency and VAT, with their factors; GAR is in the layer."""
        if self.average:
            average(learner.teacher, learner.network, self.average)
        total = ops.zeros((), "float32")
        again = logits
        if self.consistency or (self.vat and learner.views):
            for layer in learner.views:
                x = layer(x, training=True)
            again = learner.network(x, training=True)
        if self.consistency:
            distance = ops.mean(losses.squared_distance(logits, again))
            total = total + self.consistency * distance
        if self.vat:
            # On the images that the logits are of.
            weight, lds = learner.adversary.term(learner, x, y, again)
            total = total + weight * lds
        return 1.0, total


def with_options(options, layer=None):
    """GAR with what `GAROptions` add to it: plain `GAR` if that is nothing."""
    if not options.has_additions:
        return GAR(layer)
    names = GAROptions.__dataclass_fields__
    return ExtendedGAR(layer, **{n: getattr(options, n) for n in names})
