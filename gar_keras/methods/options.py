"""Options of stage 2 beyond the paper, as settings."""

from typing import Annotated, Literal

from pydantic import Field

from gar_keras.utils.checked import Number, Whole, settings

# ε of the virtual adversarial loss: see `gar_keras.methods.vat`.
VAT_RADIUS = 2.5

# The loss of GAR does not change with the scale of the logits: while they
# shrink, in the first steps, its gradient grows, and can empty the output of a
# class. See notebooks/02 and the study first-epoch.
GLOBAL_CLIPNORM = 1.0
WARMUP_STEPS = 100
LARGEST_WARMUP = 0.2

# The options that change the loss or the weights that are kept.
ADDITIONS = (
    "supervised",
    "shift",
    "affine",
    "consistency",
    "vat",
    "average",
)


@settings
class GAROptions:
    """What stage 2 can add to the loss of GAR, and how it steps.

    Raises:
        ValueError: if a value is not valid, or if `consistency` is wanted of
            images that are not augmented.

    Example:

    >>> GAROptions(supervised=1).has_additions
    True
    """

    supervised: Number = 0.0
    """Factor of the cross-entropy of the labelled examples of a batch in
    stage 2. Not in the paper, as the next five."""
    shift: Whole = 0
    """Pixels by which images are shifted at random, at most; see
    `gar_keras.RandomShift`."""
    affine: Number = 0.0
    """Strength of random affine maps (rotations, scales, shears) of the images;
    see `gar_keras.RandomAffine`."""
    consistency: Number = 0.0
    """Factor of the consistency of two views of an image in stage 2, each
    augmented by `shift` and `affine`, one of which it needs."""
    vat: Number = 0.0
    """Factor of the virtual adversarial loss in stage 2."""
    average: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Decay of the running average of the weights over the steps of stage 2,
    e.g. 0.999, which is what is evaluated and kept. 0 for none."""

    vat_radius: Annotated[float, Field(gt=0)] = VAT_RADIUS
    """ε of the virtual adversarial loss: how far an example is moved, after the
    scaling that the network begins with. To be chosen for each data set: 2.5
    is for images with pixels from 0 to 1."""
    rate: Literal["inverse-time", "cosine"] = "inverse-time"
    """Learning rate of stage 2: `inverse-time` for the paper's, which all but
    stays as it is, `cosine` for one that falls to 0 over the epochs."""
    warmup_steps: Whole | None = None
    """Steps over which the learning rate of stage 2 rises from 0; by default
    100, or a fifth of all steps if that is less. 0 as in the paper, whose first
    steps can lose a class for good."""
    global_clipnorm: Number = GLOBAL_CLIPNORM
    """Largest norm of the gradient of a step of stage 2, over all weights
    together; longer ones are scaled down. 0 for any, as in the paper."""

    def __post_init__(self):
        if self.consistency and not (self.shift or self.affine):
            raise ValueError(
                "Without shift or affine both views of an image are the same. "
                f"Received: consistency={self.consistency}, shift=0, "
                "affine=0. Set one of them, e.g. shift=2."
            )

    def warmup_of(self, steps):
        """Steps of the warm-up in a training of so many steps.

        >>> GAROptions().warmup_of(10_000), GAROptions().warmup_of(50)
        (100, 10)
        """
        if self.warmup_steps is not None:
            return self.warmup_steps
        return min(WARMUP_STEPS, int(LARGEST_WARMUP * steps))

    @property
    def has_additions(self):
        """Whether anything is added to the loss or the weights."""
        return any(getattr(self, name) for name in ADDITIONS)
