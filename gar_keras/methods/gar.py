"""GAR as in the paper: its loss alone, without labels."""

from dataclasses import dataclass
from typing import ClassVar

from gar_keras.engine.graphs import has_graph
from gar_keras.layers import (
    GraphActivityRegularization,
    warn_behind_probabilities,
)
from gar_keras.methods.base import Term
from gar_keras.models import (
    check_can_be_regularized,
    check_layer,
    is_regularized,
)
from gar_keras.utils.validation import check_class_prior


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

    >>> from gar_keras import CrossEntropy
    >>> layer = GraphActivityRegularization(class_prior=[0.7, 0.3])
    >>> method = [GAR(layer=layer), CrossEntropy()]
    """

    name: ClassVar[str] = "regularization"
    can_collapse: ClassVar[bool] = True
    supports_replicas: ClassVar[bool] = True
    # Those of the layer.
    has_metrics: ClassVar[bool] = True

    layer: GraphActivityRegularization | None = None

    def __post_init__(self):
        super().__post_init__()
        check_layer(self.layer)

    def network(self, model):
        check_can_be_regularized(model, self.layer)
        if is_regularized(model):
            if self.weight != 1:
                raise ValueError(
                    f"The model {model.name!r} already holds a GAR layer, "
                    "which adds the loss by its own coefficients. Received: "
                    f"weight={self.weight:g}. Give the model without it; see "
                    "gar_keras.detach."
                )
        elif has_graph(model):
            warn_behind_probabilities(model.outputs[0])
        return model

    def check(self, network, x_unlabeled):
        if self.layer is not None and self.layer.class_prior:
            if has_graph(network):
                n = network.output_shape[-1]
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
