"""GAR set up by what the pretrained network predicts, to do little harm.

The paper's stage 2 expects classes of equal size, batches that show all of
them, and logits as large as its own pretraining leaves them; it knows no
label. The term of this module replaces the first three by what the data show;
the labels are those of the `CrossEntropy` beside it.
"""

from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

import numpy as np

from gar_keras.callbacks import LOOKED_AT, CheckShares, warn_of_idle
from gar_keras.engine.batches import BATCH_SIZE
from gar_keras.engine.data import some_of
from gar_keras.engine.fit import predict
from gar_keras.engine.graphs import has_graph
from gar_keras.layers import GraphActivityRegularization
from gar_keras.methods.base import GAR, checks_of_order
from gar_keras.metrics import counts_of_classes
from gar_keras.models import plain_head, scaled
from gar_keras.regularizers import check_coefficient, class_prior_of
from gar_keras.utils.types import ClassPrior
from gar_keras.utils.validation import (
    check_choice,
    check_class_prior,
    check_flag,
    check_number,
)

PRIORS = ("predicted", "uniform", "labeled")
# Images of a class in the paper's batches, those of 10 classes.
IMAGES_PER_CLASS = BATCH_SIZE / 10
# The errors of a network that is right on most examples make predicted shares
# of equal classes vary by up to a fifth.
LARGEST_VARIATION = 0.2
# Above it a class is rare: of two classes, one of less than a quarter.
RARE_VARIATION = 0.5
# By how much a training may change the share of the smaller classes together:
# those that changed it by more, mostly to make them more frequent, raised the
# error. Where a class is rare, its share is small, and its changes are larger.
LARGEST_CHANGE = 1.25
LARGEST_CHANGE_OF_RARE = 1.4


@dataclass(frozen=True, kw_only=True)
class SafeGAR(GAR):
    """GAR that is set up by the pretrained network, to do little harm.

    `regularize` with labels is `[SafeGAR(), CrossEntropy()]`, by name
    `"safe-gar"`: the cross-entropy is part of what makes it safe, and is not in
    this term. It is `U(B)`, with

    - a class prior in the balance, where the predictions of the pretrained
      network over X_U are uneven: see `class_prior`;
    - a running balance, where the batch has fewer than 12.8 examples a class,
      as the paper's has: `balance_memory` of the layer is `(w - 1) / (w + 1)`
      then and the balance, of column sums, counts `w**(1/3)` times as much,
      with `w = 12.8 * n / (b_L + b_U)`;
    - a balance of numbers of examples, where a class is rare: see below;
    - logits that begin at the same scale, `top_logit`: one factor, on the
      weights of the last layer where this is a plain, trained `Dense`, and
      else on the logits in the loss alone. No prediction changes by it;
    - without validation data, the weights of the start, if the training has
      lost a class that the pretrained network gave to some examples; with a
      class prior also if it has changed, by more than a factor of 1.25 and away
      from the prior, the share of the predictions that the smaller classes
      have together (those below an even share at the start).

    A class is rare where the shares `p` of the prior vary by more than half
    (standard deviation over mean). `v` is made of squares, or sums, of logits:
    it can be in balance while several times `p` of the examples are given to
    the rare class, with small logits. There,

    - the balance is of row shares, `v_j = sum_i B_ij / sum_k B_ik`, in which
      each example counts once;
    - it is a running one by the rarest class's expected number in a batch:
      `w = max(1, 12.8 / ((b_L + b_U) * min(p)))`;
    - that share may change by a factor of 1.4.

    Args:
        class_prior: Shares of the classes: `"predicted"`, `"uniform"` or `None`
            for equal ones, `"labeled"` for those of the labels, each class
            counted once more, or the numbers. Predicted ones are those of the
            classes that the network gives to up to 10,000 unlabelled examples
            at the start, likewise; equal ones where these vary by no more than
            a fifth (standard deviation over mean), as errors alone make them.
        protects_rare_classes: Whether the balance is another one where a class
            is rare, and a share of the smaller classes that has changed brings
            the weights of the start back. If not, a rare class is as any other.
        top_logit: Mean over X_U of the largest logit at the start. 0 to leave
            the logits as they are.
        logit_factor: Factor on the logits in the loss, as a training begins
            with it. Each training finds it anew.
        start_weights: The weights of the network that a training begins with.
            Each training finds them anew.

        affinity, balance, frobenius: Coefficients, as of the layer.
        layer: A `GraphActivityRegularization` in place of the one that is set
            up, with the coefficients and the class prior that count.
        weight: Factor of `U(B)`.

    Example:

    >>> from gar_keras import CrossEntropy
    >>> method = [SafeGAR(class_prior=(0.7, 0.3)), CrossEntropy()]
    """

    uses_labels: ClassVar[bool] = True
    supports_replicas: ClassVar[bool] = False

    affinity: float = 3.0
    balance: float = 1.0
    frobenius: float = 1e-6
    class_prior: Any = "predicted"
    protects_rare_classes: bool = True
    top_logit: float = 10.0
    logit_factor: float | None = field(default=None, metadata={"found": True})
    start_weights: list | None = field(
        default=None, repr=False, compare=False, metadata={"found": True}
    )

    def __post_init__(self):
        super().__post_init__()
        for name in ("affinity", "balance", "frobenius"):
            check_coefficient(name, getattr(self, name))
        check_flag("protects_rare_classes", self.protects_rare_classes)
        check_number("top_logit", self.top_logit)
        # Numbers in any form are kept as a tuple.
        prior = check_prior(self.class_prior)
        object.__setattr__(self, "class_prior", prior)
        # A training that has begun has found a prior.
        if self.layer is not None and self.start_weights is None:
            usual = {field.name: field.default for field in fields(self)}
            given = [
                name
                for name in ("affinity", "balance", "frobenius", "class_prior")
                if getattr(self, name) != usual[name]
            ]
            if given:
                raise ValueError(
                    f"The layer has its own {given[0]}. Received: both a layer "
                    f"and {given[0]}={getattr(self, given[0])!r}. Give it to "
                    "the layer."
                )

    @property
    def largest_share_change(self):
        if self.class_prior is None or not self.protects_rare_classes:
            return None
        rare = has_rare_class(self.class_prior)
        return LARGEST_CHANGE_OF_RARE if rare else LARGEST_CHANGE

    def check(self, network, x_unlabeled):
        if not has_graph(network):
            raise ValueError(
                "SafeGAR scales the logits of a model, but Keras does not know "
                "the graph of a subclassed one. Received: "
                f"model={network.name!r}. Give a Functional or Sequential "
                "model, or take method='gar', which uses no labels."
            )
        super().check(network, x_unlabeled)
        check_prior(self.class_prior, network.output_shape[-1])

    def setup(self, network, data, initial_epoch=0):
        """Brings the logits to their scale, and finds prior and layer."""
        term = self
        if not initial_epoch:
            logits = predict(network, some_of(data.images, LOOKED_AT))
            largest = np.mean(np.max(logits, axis=-1))
            factor = 1.0
            if np.max(logits) <= 0:
                warn_of_idle(f"logits of at most {np.max(logits):.3g}")
            if self.top_logit and largest > 0:
                factor = float(self.top_logit / largest)
            start_weights = network.get_weights()
            head = plain_head(network)
            if head is not None and factor != 1:
                head.set_weights([factor * w for w in head.get_weights()])
                factor = 1.0
            if self.layer is not None:
                prior = self.layer.class_prior
            else:
                n = logits.shape[-1]
                prior = given_prior(self.class_prior, data.y_labeled, n)
            if prior == "predicted":
                prior = predicted_prior(logits)
            term = replace(
                self,
                class_prior=prior,
                logit_factor=factor,
                start_weights=start_weights,
            )
        elif self.logit_factor is None or isinstance(self.class_prior, str):
            raise ValueError(
                "A training that goes on needs what its first epoch began "
                "with. Received: initial_epoch, and a method that has not "
                "begun. Give method=history.model.method, of the History that "
                "the call before returned."
            )
        if term.layer is None:
            prior = term.class_prior
            options = balance_options(
                prior if term.protects_rare_classes else None,
                network.output_shape[-1],
                data.sampler.images_per_step,
            )
            options["balance"] *= term.balance
            layer = GraphActivityRegularization(
                affinity=term.affinity,
                frobenius=term.frobenius,
                class_prior=prior,
                name="graph_activity_regularization",
                **options,
            )
            term = replace(term, layer=layer)
        return term, scaled(network, term.logit_factor), data

    def callbacks(self, evaluated, data, has_validation, class_names):
        return [
            CheckShares(
                evaluated,
                data.images,
                self.class_prior,
                restores=not has_validation,
                start_weights=self.start_weights,
                largest_change=self.largest_share_change,
                class_names=class_names,
            ),
            *checks_of_order(data),
        ]


def given_prior(class_prior, labels, n):
    """The shares of n classes by what a user gave; `"predicted"` stays.

    Example:

    >>> given_prior("labeled", [0, 0], 2)
    (0.75, 0.25)
    """
    prior = check_prior(class_prior, n)
    if prior == "labeled":
        # A class without a label would have no share at all.
        return class_prior_of(labels, n, smoothing=1)
    return None if prior == "uniform" else prior


def check_prior(class_prior, num_classes=None):
    """Returns shares as a tuple, a name or `None`, or raises if not known."""
    if isinstance(class_prior, str):
        check_choice("class_prior", class_prior, PRIORS)
        return class_prior
    if class_prior is None:
        return None
    return check_class_prior(class_prior, num_classes)


def predicted_prior(logits) -> ClassPrior:
    """The shares of the classes by predictions; `None` for about equal ones.

    Example:

    >>> predicted_prior(np.eye(2)[[0, 0, 0, 0, 0, 0, 1]])
    (0.7777777777777778, 0.2222222222222222)
    >>> predicted_prior(np.eye(2)[[0, 0, 1, 1]]) is None
    True
    """
    counts = counts_of_classes(logits) + 1
    if counts.std() <= LARGEST_VARIATION * counts.mean():
        return None
    return tuple((counts / counts.sum()).tolist())


def has_rare_class(class_prior):
    """Whether shares vary by more than half; `None` for equal ones.

    Example:

    >>> has_rare_class((0.75, 0.25)), has_rare_class((0.76, 0.24))
    (False, True)
    """
    if class_prior is None:
        return False
    return bool(np.std(class_prior) > RARE_VARIATION * np.mean(class_prior))


def balance_options(class_prior, num_classes, batch_size):
    """Options of the layer by how few examples of a class a batch has.

    Where the batch has fewer than the paper's, of the rarest class if that is a
    rare one, the balance is over about w batches, and counts `w**(1/3)` times.

    Example:

    >>> balance_options(None, 10, 128)
    {'balance': 1.0}
    >>> options = balance_options(None, 100, 128)
    >>> options["balance_of"], round(options["balance_memory"], 2)
    ('column sums', 0.82)
    >>> options = balance_options((0.95, 0.05), 2, 128)
    >>> options["balance_of"], round(options["balance_memory"], 2)
    ('row shares', 0.33)
    """
    if has_rare_class(class_prior):
        w = max(1.0, IMAGES_PER_CLASS / (batch_size * min(class_prior)))
        balance_of = "row shares"
    else:
        w = IMAGES_PER_CLASS * num_classes / batch_size
        balance_of = "column sums"
        if w <= 1:
            return {"balance": 1.0}
    return {
        "balance": w ** (1 / 3),
        "balance_memory": (w - 1) / (w + 1),
        "balance_of": balance_of,
    }
