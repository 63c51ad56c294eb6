"""Settings of a fit to data of one's own, without Keras.

The one source of the options, defaults and texts of `GARClassifier` and of
`python -m gar_keras fit`.
"""

from typing import Annotated, Literal

from pydantic import Field

from gar_keras import paper
from gar_keras.methods.options import GAROptions
from gar_keras.utils.checked import (
    Count,
    CountOrAuto,
    Precision,
    prior_or,
    settings,
)

PRIORS = ("uniform", "labeled")


@settings
class FitSettings(GAROptions, paper.Coefficients):
    """How to fit. The defaults are the paper's, unless it says otherwise.

    `shift` and `affine` augment the images in both stages.

    Raises:
        ValueError: if a value is not valid.

    Example:

    >>> FitSettings(shift=2).epochs
    100
    """

    pretrain_epochs: Count | None = None
    """Epochs over the labelled examples in stage 1; by default those of
    2,000 steps, and at least 10."""
    epochs: CountOrAuto = 100
    """Epochs over all examples in stage 2. `auto`: up to 200, until the
    validation error has not fallen for 10; that needs a
    `validation_fraction`. A rate of `cosine` falls over all 200."""
    labeled_per_batch: Count | None = None
    """b_L: labelled examples, without their labels, in a batch of stage 2; by
    default 16, or all where there are fewer."""
    unlabeled_per_batch: Count = paper.UNLABELED_PER_BATCH
    """b_U: further examples, of any kind, in a batch of stage 2."""
    class_prior: prior_or(*PRIORS) = "uniform"
    """Shares of the classes: `uniform`, as in the paper; `labeled` for those
    among the labels, if these were drawn at random; or the numbers, in the
    order of the sorted labels. See `gar_keras.balance`."""
    validation_fraction: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of the labelled examples of each class that is kept back to measure
    the error. The model ends with the weights of the epoch of stage 2 with the
    least such error, of several the last. 0 to train on all labels to the last
    epoch."""
    learning_rate: Annotated[
        float, Field(gt=0, le=paper.LARGEST_COEFFICIENT)
    ] = paper.LEARNING_RATE
    """Initial learning rate of each stage."""
    precision: Literal["auto", Precision] = "auto"
    """Precision between the layers of the network that is made here. `auto`:
    bfloat16 where the examples are images and the hardware computes in it."""

    def __post_init__(self):
        GAROptions.__post_init__(self)
        paper.Coefficients.__post_init__(self)
        if self.epochs == "auto" and not self.validation_fraction:
            raise ValueError(
                "epochs must be a number where no labels are kept back, whose "
                "error could end stage 2. Received: epochs='auto', "
                "validation_fraction=0. Set validation_fraction, e.g. to 0.2."
            )

    @classmethod
    def of(cls, holder):
        """The settings that an object has under the same names."""
        names = cls.__dataclass_fields__
        return cls(**{name: getattr(holder, name) for name in names})
