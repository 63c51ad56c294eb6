"""What an experiment can change beside the paper's settings, as data."""

from dataclasses import dataclass

from gar_keras.additions import Additions
from gar_keras.checks import check_choice
from gar_keras.checks import check_class_prior
from gar_keras.checks import check_count
from gar_keras.checks import check_number
from gar_keras.checks import set_field

LABELS_DRAWN = ("even", "random")
RATES = ("inverse-time", "cosine")


@dataclass(frozen=True)
class World:
    """How the images and labels differ from those of the data set.

    Attributes:
        shares: Share of each class among the training images, positive, of
            sum 1: as many images are kept as the rarest one allows. `None`
            for all images.
        labels_drawn: `"even"` for as many labels in each class, as in the
            paper, `"random"` for a draw without regard to the class.
        wrong_labels: Share of the labels that are another class's, from 0 to
            1, drawn at random.
        known_classes: Number of classes of the task, the first ones. `None`
            for all. The labelled, validation and test images are of these.
        strangers: Share of X_U that is of the other classes, from 0 to 1.
    """

    shares: tuple | None = None
    labels_drawn: str = "even"
    wrong_labels: float = 0.0
    known_classes: int | None = None
    strangers: float = 0.0

    def __post_init__(self):
        check_choice("labels_drawn", self.labels_drawn, LABELS_DRAWN)
        set_field(
            self, "wrong_labels", _share("wrong_labels", self.wrong_labels)
        )
        set_field(self, "strangers", _share("strangers", self.strangers))
        if self.shares is not None:
            set_field(self, "shares", check_class_prior(self.shares))
        if self.known_classes is not None:
            k = check_count("known_classes", self.known_classes, least=2)
            set_field(self, "known_classes", k)
        if self.strangers and self.known_classes is None:
            raise ValueError(
                "strangers are images of classes that are not among the known "
                f"ones. Received: strangers={self.strangers}, "
                "known_classes=None. Set known_classes."
            )
        if self.shares is not None and self.known_classes is not None:
            raise ValueError(
                "shares and known_classes cannot be had together. Received: "
                f"shares={self.shares}, known_classes={self.known_classes}"
            )


@dataclass(frozen=True, kw_only=True)
class Extensions(Additions):
    """What stage 2 adds to GAR. At the defaults it is the paper's.

    Attributes:
        rate: `"inverse-time"` for the paper's rate, `"cosine"` for one that
            falls to 0 over the epochs of stage 2.
        affinity_warmup: Epochs over which c_α rises from 0.
    """

    rate: str = "inverse-time"
    affinity_warmup: int = 0

    def __post_init__(self):
        super().__post_init__()
        epochs = check_count("affinity_warmup", self.affinity_warmup, least=0)
        set_field(self, "affinity_warmup", epochs)
        check_choice("rate", self.rate, RATES)


def _share(name, value):
    value = check_number(name, value)
    if value > 1:
        raise ValueError(
            f"{name} must be from 0 to 1. Received: {name}={value!r}"
        )
    return value
