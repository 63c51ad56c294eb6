"""What an experiment can change beside the paper's settings, as data."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from gar_keras.methods.options import GAROptions
from gar_keras.utils.checked import Number, Whole, settings
from gar_keras.utils.validation import check_class_prior

Prior = Annotated[tuple[float, ...], BeforeValidator(check_class_prior)]
Share = Annotated[float, Field(ge=0, le=1)]


@settings
class DataConditions:
    """Label noise, class imbalance and out-of-class images in the data.

    The fields bear the names that they have in records.

    Attributes:
        shares: Class imbalance: share of each class among the training
            images, positive, of sum 1: as many images are kept as the
            rarest one allows. `None` for all images.
        labels_drawn: `"even"` for as many labels in each class, as in the
            paper, `"random"` for a draw without regard to the class.
        wrong_labels: Label noise: share of the labels that are another
            class's, from 0 to 1, drawn at random.
        known_classes: Number of classes of the task, the first ones. `None`
            for all. The labelled, validation and test images are of these.
        strangers: Out-of-class images: share of X_U that is of the other
            classes, from 0 to 1.
    """

    shares: Prior | None = None
    labels_drawn: Literal["even", "random"] = "even"
    wrong_labels: Share = 0.0
    known_classes: Annotated[int, Field(ge=2)] | None = None
    strangers: Share = 0.0

    def __post_init__(self):
        if self.strangers and self.known_classes is None:
            raise ValueError(
                "strangers are out-of-class images: of classes that are not "
                f"among the known ones. Received: strangers={self.strangers}, "
                "known_classes=None. Set known_classes."
            )
        if self.shares is not None and self.known_classes is not None:
            raise ValueError(
                "shares and known_classes cannot be had together. Received: "
                f"shares={self.shares}, known_classes={self.known_classes}"
            )


@settings
class Extensions(GAROptions):
    """What stage 2 adds to GAR. At the defaults it is the paper's.

    Attributes:
        affinity_warmup: Epochs over which c_α rises from 0.
    """

    affinity_warmup: Whole = 0
    # In a user's own training these are the cure of what the paper's does.
    warmup_steps: Whole | None = 0
    global_clipnorm: Number = 0.0
