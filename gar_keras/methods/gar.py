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
from gar_keras.engine.optimizers import GLOBAL_CLIPNORM
from gar_keras.layers import (
    GraphActivityRegularization,
    warn_behind_probabilities,
)
from gar_keras.methods import losses
from gar_keras.methods.base import Method, supervised_loss
from gar_keras.methods.mean_teacher import average, copy_of
from gar_keras.methods.options import GAROptions
from gar_keras.methods.preprocessing import split
from gar_keras.methods.vat import VAT, VirtualAdversarialTraining
from gar_keras.models import (
    check_can_be_augmented,
    check_can_be_regularized,
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
    supports_replicas: ClassVar[bool] = True
    # The layer has metrics of its own.
    terms = ()
    warmup_steps = None
    global_clipnorm = GLOBAL_CLIPNORM

    layer: GraphActivityRegularization | None = None

    def __post_init__(self):
        check_layer(self.layer)

    def network(self, model):
        network = stage_2_network(model)
        check_can_be_regularized(network, self.layer)
        if has_graph(network) and not is_regularized(network):
            warn_behind_probabilities(network.outputs[0])
        return network

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

    def losses(self, stage_2, x, y, logits):
        """`U(B)`; nothing where a layer inside the network adds it."""
        layer = stage_2.regularization
        if layer is None:
            return {}
        measured = layer.measure(logits, training=True)
        for name, mean in layer.means.items():
            mean.update_state(measured[name])
        layer.usage.update_state(logits)
        return {"regularization": measured["regularization"]}


@documented(GAROptions)
@dataclass(frozen=True, kw_only=True)
class ExtendedGAR(GAROptions, GAR):
    """Stage 2 with GAR and more: `regularize(..., method=ExtendedGAR(...))`.

    `loss = U(B) + supervised * cross-entropy of X_L
          + consistency * mean (p - p')^2 + vat * mean LDS`

    where `p` and `p'` are the predictions for two views of an image, and LDS
    is the term of `gar_keras.methods.vat`. With all at 0 the loss is that of
    `method="gar"`.

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

    uses_labels: ClassVar[bool] = True
    supports_replicas: ClassVar[bool] = False

    layer: Any = field(default=None, kw_only=False)

    def __post_init__(self):
        super().__post_init__()
        check_layer(self.layer)

    @property
    def terms(self):
        factors = {
            "supervised": self.supervised,
            "consistency": self.consistency,
            "lds": self.vat,
        }
        return tuple(name for name, factor in factors.items() if factor)

    def network(self, model):
        if is_regularized(model):
            raise ValueError(
                f"The model {model.name!r} already holds a GAR layer. Give "
                "ExtendedGAR the model without it, and the layer as "
                "ExtendedGAR(layer=...); see gar_keras.detach."
            )
        return super().network(model)

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
            split(network, VAT)

    def build(self, stage_2):
        super().build(stage_2)
        network, seed = stage_2.network, stage_2.seed
        augmentation = self._augmentation(network, seed)
        stage_2.trained = with_augmentation(network, augmentation)
        stage_2.views = self._augmentation(network, seed + 1)
        for layer in stage_2.views:
            layer.build(network.inputs[0].shape)
        if self.vat:
            stage_2.adversary = VirtualAdversarialTraining(
                weight=self.vat, epsilon=self.vat_radius
            )
            stage_2.adversary.build(stage_2)
        if self.average:
            stage_2.teacher = copy_of(stage_2.evaluated, seed)
            stage_2.evaluated = stage_2.teacher

    def _augmentation(self, network, seed):
        return random_augmentation(
            self.shift, self.affine, seed, image_format_of(network)
        )

    def losses(self, stage_2, x, y, logits):
        if self.average:
            average(stage_2.teacher, stage_2.network, self.average)
        terms = super().losses(stage_2, x, y, logits)
        if self.supervised:
            terms["supervised"] = self.supervised * supervised_loss(y, logits)
        again = logits
        if self.consistency or (self.vat and stage_2.views):
            for layer in stage_2.views:
                x = layer(x, training=True)
            again = stage_2.network(x, training=True)
        if self.consistency:
            distance = ops.mean(losses.squared_distance(logits, again))
            terms["consistency"] = self.consistency * distance
        if self.vat:
            # On the images that the logits are of.
            terms["lds"] = stage_2.adversary.lds(stage_2, x, again)
        return terms


def with_options(options, layer=None):
    """GAR with what `GAROptions` add to it: plain `GAR` if that is nothing."""
    if not options.has_additions:
        return GAR(layer)
    names = GAROptions.__dataclass_fields__
    return ExtendedGAR(layer, **{n: getattr(options, n) for n in names})
