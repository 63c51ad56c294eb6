"""Options of stage 2 beyond the paper, as settings."""

from dataclasses import dataclass
from typing import Literal

from gar_keras.engine.optimizers import GLOBAL_CLIPNORM
from gar_keras.utils.validation import (
    check_choice,
    check_count,
    check_fields,
    check_number,
)

# ε of the virtual adversarial loss: see `gar_keras.methods.vat`.
VAT_RADIUS = 2.5


@dataclass(frozen=True, kw_only=True)
class GAROptions:
    """What stage 2 can add to the loss of GAR, and how it steps.

    Args:
        supervised: Factor of the cross-entropy of the labelled examples of a
            batch in stage 2. Not in the paper, as the next five.
        shift: Pixels by which images are shifted at random, at most; see
            `gar_keras.RandomShift`.
        affine: Strength of random affine maps (rotations, scales, shears) of
            the images; see `gar_keras.RandomAffine`.
        consistency: Factor of the consistency of two views of an image in
            stage 2, each augmented by `shift` and `affine`, one of which it
            needs.
        vat: Factor of the virtual adversarial loss in stage 2.
        average: Decay of the running average of the weights over the steps of
            stage 2, e.g. 0.999, which is what is evaluated and kept. 0 for
            none.
        vat_radius: ε of the virtual adversarial loss: how far an example is
            moved, after the scaling that the network begins with. To be chosen
            for each data set: 2.5 is for images with pixels from 0 to 1.
        rate: Learning rate of stage 2: `"inverse-time"` for the paper's, which
            all but stays as it is, `"cosine"` for one that falls to 0 over the
            epochs.
        warmup_steps: Steps over which the learning rate of stage 2 rises from
            0; by default 100, or a fifth of all steps if that is less. 0 as in
            the paper, whose first steps can lose a class for good.
        global_clipnorm: Largest norm of the gradient of a step of stage 2,
            over all weights together; longer ones are scaled down. 0 for any,
            as in the paper.

    Raises:
        ValueError: if a value is not valid, or if `consistency` is wanted of
            images that are not augmented.

    Example:

    >>> GAROptions(supervised=1).has_additions
    True
    """

    supervised: float = 0.0
    shift: int = 0
    affine: float = 0.0
    consistency: float = 0.0
    vat: float = 0.0
    average: float = 0.0
    vat_radius: float = VAT_RADIUS
    rate: Literal["inverse-time", "cosine"] = "inverse-time"
    warmup_steps: int | None = None
    global_clipnorm: float = GLOBAL_CLIPNORM

    def __post_init__(self):
        factors = "supervised", "affine", "consistency", "vat"
        check_fields(self, check_number, *factors, "global_clipnorm")
        check_fields(self, check_number, "average", high=1)
        check_fields(self, check_number, "vat_radius", closed="neither")
        check_fields(self, check_count, "shift", least=0)
        if self.warmup_steps is not None:
            check_fields(self, check_count, "warmup_steps", least=0)
        check_choice("rate", self.rate, ("inverse-time", "cosine"))
        if self.consistency and not (self.shift or self.affine):
            raise ValueError(
                "Without shift or affine both views of an image are the same. "
                f"Received: consistency={self.consistency}, shift=0, "
                "affine=0. Set one of them, e.g. shift=2."
            )

    @property
    def has_additions(self):
        """Whether anything is added to the loss or the weights."""
        losses = self.supervised, self.consistency, self.vat
        return any((*losses, self.shift, self.affine, self.average))
