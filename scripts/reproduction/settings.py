"""The settings of an experiment, and those of the paper's (section 4)."""

import functools
import hashlib
import json
import math
import re
from dataclasses import fields, is_dataclass, replace
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, TypeAdapter

from gar_keras.engine import batches, optimizers
from gar_keras.regularizers import (
    COEFFICIENTS,
    BalanceOf,
    Coefficients,
    FrobeniusOf,
)
from gar_keras.utils.validation import check_class_prior
from reproduction.datasets.packages import RARE_TABLES
from reproduction.datasets.registry import NORB as NORB_NAMES
from reproduction.datasets.registry import UNLABELED
from reproduction.methods import METHODS
from reproduction.methods.ablation import ABLATIONS
from reproduction.strict_models import (
    Count,
    Number,
    Share,
    Whole,
    or_dict,
    settings,
)

Backend = Literal["tensorflow", "jax", "torch"]
Precision = Literal["float32", "bfloat16"]

# What stage 2 can do in GAR's place: with the network of stage 1, and without
# any network.
GRAPH_BASELINES = tuple(
    name for name, entry in METHODS.items() if not entry.network
)
NETWORK_BASELINES = tuple(
    name for name, entry in METHODS.items() if entry.network and name != "gar"
)

SAFE = "safe-gar"

# class_prior: the shares of the labelled images.
PRIOR_OF_LABELS = "labels"

# What stage 1 does not depend on.
STAGE_2 = (
    "labeled_per_batch",
    "unlabeled_per_batch",
    "unlabeled",
    "field_strength",
    "images_per_epoch",
    "epochs",
    "stage_2_rate",
    *COEFFICIENTS,
    "frobenius_of",
    "balance_of",
    "protects_rare_classes",
    "method",
    "class_prior",
    "extensions",
    "ablation",
)


Shares = Annotated[tuple[float, ...], BeforeValidator(check_class_prior)]


def _refuse(settings, wrong):
    """Raises a `ValueError` with the first text of which the case is true.

    The settings that the text names are told with their values.
    """
    for text in (text for text, is_so in wrong.items() if is_so):
        received = (
            f"{f.name}={getattr(settings, f.name)!r}"
            for f in fields(settings)
            if f.name in re.findall(r"\w+", text)
        )
        raise ValueError(f"{text} Received: {', '.join(received)}")


@settings
class DataSettings:
    """Label noise, class imbalance and out-of-class images in the data."""

    # Class imbalance: share of each class among the training images, positive,
    # of sum 1: as many images are kept as the rarest one allows.
    shares: Shares | None = None
    # As many labels in each class, as in the paper, or without regard to it.
    labels_drawn: Literal["even", "random"] = "even"
    # Share of the labels that are another class's, drawn at random.
    wrong_labels: Share = 0.0
    # Number of classes of the task, the first ones: labelled, validation and
    # test images are of these.
    known_classes: Annotated[int, Field(ge=2)] | None = None
    # Share of X_U that is of the other classes.
    out_of_class: Annotated[Share, Field(alias="strangers")] = 0.0

    def __post_init__(self):
        few = self.known_classes is not None
        _refuse(
            self,
            {
                "out_of_class is the share of other classes than the known "
                "ones. Set known_classes.": self.out_of_class and not few,
                "shares and known_classes cannot be had together.": (
                    few and self.shares is not None
                ),
            },
        )


@settings
class Extensions:
    """What stage 2 adds to GAR. At the defaults it is the paper's."""

    # Weights of the terms beside GAR, and ε of VAT.
    supervised: Number = 0.0
    consistency: Number = 0.0
    vat: Number = 0.0
    vat_radius: Annotated[float, Field(gt=0)] = 2.5
    # Of records alone: no run has them any more.
    shift: Whole = 0
    affine: Number = 0.0
    average: Annotated[float, Field(ge=0, lt=1)] = 0.0
    rate: Literal["inverse-time", "cosine"] = "inverse-time"

    # Epochs over which c_α rises from 0.
    affinity_warmup: Whole = 0
    # In a user's own training these are the cure of what the paper's does.
    warmup_steps: Whole | None = 0
    global_clipnorm: Number = 0.0


@settings
class Experiment(Coefficients):
    """All that decides the numbers of a run, except for its seed."""

    # Name for `gar_keras.datasets.load`.
    dataset: str
    # m_L.
    num_labeled: Count
    network: Literal["cnn6", "cnn9", "mlp"]
    # f of cnn9.
    filters: Count | None
    # Of the images as stored: division by 255, or each to mean 0 and standard
    # deviation 1.
    preprocessing: Literal["rescale", "standardize", "none"]
    # b_L; 0 for batches of X_U alone.
    labeled_per_batch: Whole
    # b_U.
    unlabeled_per_batch: Count
    # Where X_U comes from.
    unlabeled: Literal[tuple(UNLABELED)] = "train"
    # Of X_U; `None` for all.
    images_per_epoch: Count | None = None
    num_validation: Count = 1000
    # Of stage 1.
    batch_size: Count = batches.BATCH_SIZE
    pretrain_epochs: Count = 2000
    epochs: Count = 200
    frobenius_of: FrobeniusOf = "B"
    # Initial rate of each stage, Nesterov momentum, decay per step.
    learning_rate: Number = optimizers.LEARNING_RATE
    momentum: Number = optimizers.MOMENTUM
    decay: Number = optimizers.DECAY
    precision: Precision = "float32"
    backend: Backend = "tensorflow"
    method: Literal[tuple(METHODS)] = "gar"
    # For the balance term; "labels" for the shares of the labelled images,
    # each class counted once more.
    class_prior: Shares | Literal["labels"] | None = None
    data_settings: Annotated[
        DataSettings, or_dict(DataSettings), Field(alias="world")
    ] = DataSettings()
    extensions: Annotated[Extensions, or_dict(Extensions)] = Extensions()
    # Number of the run among those of one seed, with the same labels and other
    # initial weights and batches.
    restart: Whole = 0
    # Augmentation in stage 1, which the paper does not have: pixels at most,
    # and strength of affine maps.
    pretrain_shift: Whole = 0
    pretrain_affine: Number = 0.0
    # Learning rate of stage 2 where it is another one.
    stage_2_rate: Annotated[float, Field(gt=0)] | None = None
    ablation: Literal[ABLATIONS] | None = None
    # See `reproduction.datasets.norb.NorbPreprocessing`, `InfiMNIST`.
    camera_stretch: bool = False
    field_strength: Number = 1.0
    balance_of: BalanceOf = "diagonal"
    # Of method="safe-gar"; not in its records from before it could.
    protects_rare_classes: bool = True

    def __post_init__(self):
        """Refuses now what would else end a run hours later."""
        super().__post_init__()
        plain = self.class_prior is None and self.extensions == Extensions()
        gar = self.method == "gar"
        changed = self.data_settings != DataSettings()
        _refuse(
            self,
            {
                "filters is of network='cnn9', and None for others.": (
                    (self.filters is None) == (self.network == "cnn9")
                ),
                "camera_stretch is of small NORB, a dataset of two cameras.": (
                    self.camera_stretch and self.dataset not in NORB_NAMES
                ),
                "field_strength is of unlabeled='infimnist'.": (
                    self.field_strength != 1 and self.unlabeled != "infimnist"
                ),
                "data_settings are of unlabeled='train', of which X_U is then "
                "made.": changed and self.unlabeled != "train",
                "class_prior and extensions are of method='gar'.": (
                    not gar and not plain
                ),
                "protects_rare_classes is of method='safe-gar'.": (
                    self.method != SAFE and not self.protects_rare_classes
                ),
                "An ablation changes one thing in method='gar', with "
                "class_prior and extensions at their defaults.": (
                    self.ablation is not None and not (gar and plain)
                ),
            },
        )

    @property
    def cell(self):
        """The cell of the paper's tables that this fills, e.g. `mnist-100`.

        Another method fills none: its name is behind, as in `mnist-100-vat`.
        """
        own = self.unlabeled == "train"
        cell = f"{self.dataset if own else self.unlabeled}-{self.num_labeled}"
        return cell if self.method == "gar" else f"{cell}-{self.method}"

    def images_of_epochs(self, num_unlabeled):
        """Images that an epoch of each stage trains on, and its epochs.

        A dict of `(images, epochs)` by stage; empty without a network.

        Args:
            num_unlabeled: Images of X_U.
        """
        if self.method in GRAPH_BASELINES:
            return {}
        batch = self.labeled_per_batch + self.unlabeled_per_batch
        images = self.images_per_epoch or num_unlabeled
        steps = math.ceil(images / self.unlabeled_per_batch)
        return {
            "pretraining": (self.num_labeled, self.pretrain_epochs),
            "regularization": (steps * batch, self.epochs),
        }

    def as_json(self):
        """The settings as a dict of what JSON can hold, for a record."""
        adapter = _adapter(type(self))
        return adapter.dump_python(self, mode="json", by_alias=True)

    def fingerprint(self):
        """Eight hexadecimal digits that differ when any setting does.

        Settings at their default are left out, so that a setting that is
        added later does not orphan the records made before it. The protection
        of rare classes came to be the default: there, the default is told.
        """
        changed = _adapter(type(self)).dump_python(
            self, exclude_defaults=True, by_alias=True
        )
        changed.pop("protects_rare_classes", None)
        if self.method == SAFE and self.protects_rare_classes:
            changed["protects_rare_classes"] = True
        text = json.dumps(changed, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    def stage_1(self):
        """The experiment with all at its default that stage 1 has no part in.

        Experiments for which this is the same have the same stage 1.
        """
        usual = {f.name: f.default for f in fields(self) if f.name in STAGE_2}
        usual |= {"labeled_per_batch": 1, "unlabeled_per_batch": 1}
        known = replace(self.data_settings, out_of_class=0.0)
        return replace(self, data_settings=known, **usual)


_adapter = functools.cache(TypeAdapter)

_MNIST = Experiment(
    dataset="mnist",
    num_labeled=100,
    network="cnn6",
    filters=None,
    preprocessing="rescale",
    labeled_per_batch=batches.LABELED_PER_BATCH,
    unlabeled_per_batch=batches.UNLABELED_PER_BATCH,
)

TABLE_1 = {m: replace(_MNIST, num_labeled=m) for m in (100, 600, 1000, 3000)}
# 8 million images, 60,000 new ones in each epoch.
TABLE_2 = {
    100: replace(
        _MNIST, unlabeled="infimnist", images_per_epoch=60_000, epochs=133
    )
}

_NORB = Experiment(
    dataset="norb",
    num_labeled=1000,
    network="cnn9",
    filters=32,
    preprocessing="none",
    labeled_per_batch=32,
    unlabeled_per_batch=96,
)

SVHN = replace(
    _NORB,
    dataset="svhn",
    filters=64,
    preprocessing="standardize",
    labeled_per_batch=96,
    unlabeled_per_batch=32,
    epochs=100,
)

NORB = {m: replace(_NORB, num_labeled=m) for m in (300, 1000)}
# The same on a copy of NORB that went through JPEG.
NORB_JPEG = {m: replace(e, dataset="norb-jpeg") for m, e in NORB.items()}

_SMALL = Experiment(
    dataset="digits",
    num_labeled=50,
    network="mlp",
    filters=None,
    preprocessing="none",
    labeled_per_batch=16,
    unlabeled_per_batch=112,
    num_validation=50,
    epochs=100,
)
_LARGE = {"epochs": 30, "pretrain_epochs": 500, "images_per_epoch": 10_000}
_CHANGES = {
    "digits": {"preprocessing": "rescale"},
    "breast-cancer": {"num_labeled": 20},
    "wine": {
        "num_labeled": 15, "labeled_per_batch": 15, "unlabeled_per_batch": 113
    },
    "segment": {"num_labeled": 70},
    "satimage": {"num_labeled": 60},
    "texture": {"num_labeled": 110},
    "page-blocks": {"num_labeled": 20},
    "newsgroups": {"num_labeled": 90},
    "letter": {"num_labeled": 260, **_LARGE},
    "mnist-pairs": {"num_labeled": 500, "preprocessing": "rescale", **_LARGE},
}  # fmt: skip
# Small data sets that the paper does not have.
SMALL = {
    name: replace(_SMALL, dataset=name, **changes)
    for name, changes in _CHANGES.items()
}

# Of two classes, one of them rare; twenty labels of each.
RARE = {
    table.name: replace(_SMALL, dataset=table.name, num_labeled=40)
    for table in RARE_TABLES
}

# What can be run on each data set, by the number of labels.
EXPERIMENTS = {
    "mnist": TABLE_1,
    "infimnist": TABLE_2,
    "norb": NORB,
    "norb-jpeg": NORB_JPEG,
    "svhn": {1000: SVHN},
    "svhn-extra": {1000: replace(SVHN, unlabeled="svhn-extra")},
    # A stand-in to exercise the path of SVHN; no cell of the paper's.
    "svhn-grey": {1000: replace(SVHN, dataset="svhn-grey")},
}

# The settings of each cell of the tables.
PAPER = {
    e.cell: e for by_labels in EXPERIMENTS.values() for e in by_labels.values()
}

EXPERIMENTS |= {name: {e.num_labeled: e} for name, e in (SMALL | RARE).items()}

# What a run may choose and still stand for a cell of the paper's tables.
FREE = ("epochs", "pretrain_epochs", "precision", "backend")


def as_recorded(**settings):
    """The `Experiment` of a record, which may lack later settings."""
    if settings.get("method") == SAFE:
        settings.setdefault("protects_rare_classes", False)
    return Experiment(**settings)


def changes(experiment):
    """What an experiment changes in the paper's, as `{name: value}`.

    The data, the number of labels, and what is in `FREE` are no part of it. A
    part of `data_settings` or `extensions` goes by its own name.
    """
    usual, own = flat(_standard_of(experiment)), flat(experiment)
    return {k: v for k, v in own.items() if v != usual[k] and k not in FREE}


def flat(experiment):
    """All settings of an experiment by name, those in groups among them."""
    found = {}
    for name, value in vars(experiment).items():
        found |= vars(value) if is_dataclass(value) else {name: value}
    return found


def _standard_of(e):
    """The paper's experiment on the same data, with as many labels.

    Data that the paper does not have are set against its MNIST.
    """
    own = {"dataset": e.dataset, "unlabeled": e.unlabeled}
    same_data = [
        usual for usual in PAPER.values() if own.items() <= vars(usual).items()
    ]
    same_data.sort(key=lambda usual: usual.num_labeled != e.num_labeled)
    usual = same_data[0] if same_data else TABLE_1[100]
    # Fewer labels than the paper's fill less of a batch.
    b_L = min(usual.labeled_per_batch, e.num_labeled)
    batch = usual.labeled_per_batch + usual.unlabeled_per_batch
    return replace(
        usual,
        **own,
        num_labeled=e.num_labeled,
        labeled_per_batch=b_L,
        unlabeled_per_batch=batch - b_L,
    )
