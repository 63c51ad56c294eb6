"""What stage 2 can add to GAR, as settings."""

from dataclasses import dataclass
from dataclasses import fields

from gar_keras.utils.validation import check_count
from gar_keras.utils.validation import check_number
from gar_keras.utils.validation import set_field


@dataclass(frozen=True, kw_only=True)
class Additions:
    """More than the paper's stage 2 has; all are 0 in the paper.

    A base for settings: they are checked, and become plain numbers, when an
    object is made.

    Attributes:
        supervised: Factor of the log loss of the labelled images of a batch.
        shift: Pixels by which images are moved at random, at most; see
            `gar_keras.RandomShift`.
        affine: Strength of random affine maps of the images; see
            `gar_keras.RandomAffine`.
        consistency: Factor of the consistency of two views, each moved by
            `shift` and `affine`, one of which it needs.
        vat: Factor of the virtual adversarial loss.
        average: Decay of a running average of the weights over the steps,
            which is what is evaluated and kept. 0 for none.

    Raises:
        ValueError: if a factor or `affine` is no finite number of at least 0,
            `shift` no integer of at least 0, `average` not at least 0 and
            below 1, or if `consistency` is wanted of images that are not
            moved.

    Example:

    >>> Additions(supervised=1).additions["supervised"]
    1.0
    """

    supervised: float = 0.0
    shift: int = 0
    affine: float = 0.0
    consistency: float = 0.0
    vat: float = 0.0
    average: float = 0.0

    def __post_init__(self):
        for name in ("supervised", "affine", "consistency", "vat"):
            set_field(self, name, check_number(name, getattr(self, name)))
        average = check_number("average", self.average, high=1)
        set_field(self, "average", average)
        set_field(self, "shift", check_count("shift", self.shift, least=0))
        if self.consistency and not (self.shift or self.affine):
            raise ValueError(
                "Without shift or affine both views of an image are the same. "
                f"Received: consistency={self.consistency}, shift=0, "
                "affine=0. Set one of them, e.g. shift=2."
            )

    @property
    def additions(self):
        """These settings alone, as a dict."""
        return {f.name: getattr(self, f.name) for f in fields(Additions)}

    @property
    def has_additions(self):
        """Whether anything is added."""
        return any(self.additions.values())
