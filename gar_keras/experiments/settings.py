"""The settings of an experiment, and those of the paper's (section 4)."""

import functools
import hashlib
import json
import math
from dataclasses import MISSING, asdict, fields, replace
from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, Field, TypeAdapter

from gar_keras import paper
from gar_keras.datasets.registry import NORB as NORB_NAMES
from gar_keras.datasets.registry import UNLABELED
from gar_keras.experiments.checked import (
    Count,
    Number,
    Share,
    Whole,
    or_dict,
    settings,
)
from gar_keras.methods import METHODS
from gar_keras.methods.options import GAROptions
from gar_keras.paper import COEFFICIENTS, BalanceOf, Coefficients, FrobeniusOf
from gar_keras.utils.validation import check_choice, check_class_prior

Backend = Literal["tensorflow", "jax", "torch"]
BACKENDS = get_args(Backend)
Precision = Literal["float32", "bfloat16"]
PRECISIONS = get_args(Precision)

# What stage 2 can do in GAR's place: with the network of stage 1, and without
# any network.
RIVALS = tuple(name for name in METHODS if name != "gar")
NETWORK_RIVALS = tuple(name for name in RIVALS if METHODS[name].network)
GRAPH_RIVALS = tuple(name for name in RIVALS if not METHODS[name].network)

# What an ablation changes in the loss of GAR; see `gar_keras.methods.ablation`.
ABLATIONS = (
    "unrectified",
    "softmax",
    "unnormalized",
    "symmetric",
    "fixed-adjacency",
)

# class_prior: the shares of the labelled images.
PRIOR_OF_LABELS = "labels"

# Test images of which a run notes more than the error: the first of them, as
# many as Figure 2 of the paper shows.
KEPT_IMAGES = 2000

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
    "method",
    "class_prior",
    "extensions",
    "ablation",
)


class SettingsError(ValueError):
    """Settings that the data of a run do not allow."""


def _check_prior(value):
    if isinstance(value, str):
        check_choice("class_prior", value, (PRIOR_OF_LABELS,))
        return value
    return value if value is None else check_class_prior(value)


def _refuse_if(wrong, text, settings, *names):
    """Raises a `ValueError` that tells what was received under some names."""
    if wrong:
        received = (f"{name}={getattr(settings, name)!r}" for name in names)
        raise ValueError(f"{text} Received: {', '.join(received)}")


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

    shares: (
        Annotated[tuple[float, ...], BeforeValidator(check_class_prior)] | None
    ) = None
    labels_drawn: Literal["even", "random"] = "even"
    wrong_labels: Share = 0.0
    known_classes: Annotated[int, Field(ge=2)] | None = None
    strangers: Share = 0.0

    def __post_init__(self):
        _refuse_if(
            self.strangers and self.known_classes is None,
            "strangers are images of classes that are not among the known "
            "ones. Set known_classes.",
            self,
            "strangers",
            "known_classes",
        )
        _refuse_if(
            self.shares is not None and self.known_classes is not None,
            "shares and known_classes cannot be had together.",
            self,
            "shares",
            "known_classes",
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


@settings
class Experiment(Coefficients):
    """All that decides the numbers of a run, except for its seed.

    Attributes:
        dataset: Name for `gar_keras.datasets.load`.
        num_labeled: m_L.
        network: `"cnn6"` or `"cnn9"`.
        filters: f of `cnn9`; `None` for `cnn6`.
        preprocessing: What the network does to the images as stored:
            `"rescale"` (divide by 255), `"standardize"` (each image to mean 0
            and standard deviation 1) or `"none"`.
        labeled_per_batch: b_L; 0 for batches of X_U alone, where labels have
            no part.
        unlabeled_per_batch: b_U.
        unlabeled: Where X_U comes from: `"train"` for all training images,
            `"infimnist"` for an endless stream of deformed ones,
            `"svhn-extra"` for the training images and SVHN's extra set.
        images_per_epoch: Images of X_U in an epoch; `None` for all.
        num_validation: Validation images.
        batch_size: Images in a batch of stage 1.
        pretrain_epochs: Epochs of stage 1.
        pretrain_shift: Pixels by which the images of stage 1 are shifted at
            random, at most. 0 in the paper, as the next.
        pretrain_affine: Strength of random affine maps of these images.
        epochs: Epochs of stage 2.
        frobenius_of: `"B"` or `"Z"`.
        balance_of: `"diagonal"` or `"column sums"`.
        learning_rate: Initial learning rate of each stage.
        stage_2_rate: That of stage 2, where it is another one. `None` in the
            paper.
        momentum: Nesterov momentum.
        decay: Decay of the rate per step.
        precision: `"float32"` or `"bfloat16"` (float32 weights and logits,
            bfloat16 in between).
        backend: Keras backend.
        method: `"gar"`, or one of `RIVALS` in its place.
        class_prior: Shares of the classes for the balance term, `"labels"`
            for those of the labelled images (each class counted once more),
            or `None` for classes of equal size, as in the paper.
        world: How images and labels differ from those of the data set.
        extensions: What stage 2 adds to GAR.
        ablation: What is changed in the loss of GAR, one of `ABLATIONS`, or
            `None` for the paper's.
        camera_stretch: Whether the grey levels of each camera's image of NORB
            are stretched to 0..255 first; see
            `gar_keras.datasets.norb.NorbPreprocessing`.
        field_strength: What the deformation fields of InfiMNIST are
            multiplied by; see `gar_keras.datasets.load_infimnist`.
        restart: Number of the run among those of one seed, with the same
            labels and other initial weights and batches.
    """

    dataset: str
    num_labeled: Count
    network: Literal["cnn6", "cnn9"]
    filters: Count | None
    preprocessing: Literal["rescale", "standardize", "none"]
    labeled_per_batch: Whole
    unlabeled_per_batch: Count
    unlabeled: Literal[tuple(UNLABELED)] = "train"
    images_per_epoch: Count | None = None
    num_validation: Count = 1000
    batch_size: Count = paper.BATCH_SIZE
    pretrain_epochs: Count = 2000
    epochs: Count = 200
    frobenius_of: FrobeniusOf = "B"
    learning_rate: Number = paper.LEARNING_RATE
    momentum: Number = paper.MOMENTUM
    decay: Number = paper.DECAY
    precision: Precision = "float32"
    backend: Backend = "tensorflow"
    method: Literal["gar", *RIVALS] = "gar"
    class_prior: Annotated[
        tuple[float, ...] | Literal["labels"] | None,
        BeforeValidator(_check_prior),
    ] = None
    world: Annotated[DataConditions, or_dict(DataConditions)] = DataConditions()
    extensions: Annotated[Extensions, or_dict(Extensions)] = Extensions()
    restart: Whole = 0
    pretrain_shift: Whole = 0
    pretrain_affine: Number = 0.0
    stage_2_rate: Annotated[float, Field(gt=0)] | None = None
    ablation: Literal[ABLATIONS] | None = None
    camera_stretch: bool = False
    field_strength: Number = 1.0
    balance_of: BalanceOf = "diagonal"

    def __post_init__(self):
        """Refuses now what would else end a run hours later."""
        super().__post_init__()
        plain = self.class_prior is None and self.extensions == Extensions()
        gar = self.method == "gar"
        for wrong, text, names in (
            (
                (self.filters is None) != (self.network == "cnn6"),
                "filters is the number of filters of cnn9, and None for cnn6.",
                ("filters", "network"),
            ),
            (
                self.labeled_per_batch > self.num_labeled,
                "labeled_per_batch must be at most num_labeled.",
                ("labeled_per_batch", "num_labeled"),
            ),
            (
                self.camera_stretch and self.dataset not in NORB_NAMES,
                "camera_stretch is of small NORB, which has two cameras.",
                ("camera_stretch", "dataset"),
            ),
            (
                self.field_strength != 1 and self.unlabeled != "infimnist",
                "field_strength is of the deformed images of InfiMNIST.",
                ("field_strength", "unlabeled"),
            ),
            (
                self.unlabeled != "train" and self.world != DataConditions(),
                "world changes the images of the training set, of which X_U "
                "must be made.",
                ("unlabeled", "world"),
            ),
            (
                self.extensions.affinity_warmup and not self.affinity,
                "affinity_warmup is of the coefficient of the affinity, which "
                "must be above 0.",
                ("affinity", "extensions"),
            ),
            (
                not gar and not plain,
                "class_prior and extensions are of GAR.",
                ("method", "class_prior", "extensions"),
            ),
            (
                self.ablation is not None and not (gar and plain),
                "An ablation changes one thing in the paper's GAR. Leave the "
                "others at their defaults.",
                ("ablation", "method", "class_prior", "extensions"),
            ),
        ):
            _refuse_if(wrong, text, self, *names)

    @property
    def cell(self):
        """The cell of the paper's tables that this fills, e.g. `mnist-100`.

        A rival fills none: its cell has its name behind, `mnist-100-vat`.
        """
        own = self.unlabeled == "train"
        cell = f"{self.dataset if own else self.unlabeled}-{self.num_labeled}"
        return cell if self.method == "gar" else f"{cell}-{self.method}"

    @property
    def can_be_extended(self):
        """Whether a run of more epochs begins with the same epochs."""
        return self.tied_by is None

    @property
    def tied_by(self):
        """The setting that ties a run to its epochs, in words, or `None`."""
        if not METHODS[self.method].can_be_extended:
            return f"method={self.method!r}"
        if self.extensions.rate == "cosine":
            return "rate='cosine'"
        if self.extensions.warmup_steps is None:
            return "warmup_steps=None"
        return None

    def steps_per_epoch(self, num_unlabeled):
        """Steps of an epoch of stage 2, with m_U unlabelled images."""
        images = self.images_per_epoch or num_unlabeled
        return math.ceil(images / self.unlabeled_per_batch)

    def fingerprint(self):
        """Eight hexadecimal digits that differ when any setting does.

        Settings at their default are left out, so that a setting that is
        added later does not orphan the records made before it.
        """
        changed = _adapter(type(self)).dump_python(self, exclude_defaults=True)
        text = json.dumps(changed, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    def stage_1(self):
        """The experiment with all at its default that stage 1 has no part in.

        Experiments for which this is the same have the same stage 1.
        """
        return replace(
            self,
            labeled_per_batch=1,
            unlabeled_per_batch=1,
            world=replace(self.world, strangers=0.0),
            **{name: _DEFAULTS[name] for name in STAGE_2 if name in _DEFAULTS},
        )

    def file_name(self, seed):
        """Name of the record of the run with this seed."""
        return file_name(self.cell, seed, self.fingerprint())


_adapter = functools.cache(TypeAdapter)

# The default of each setting that has one.
_DEFAULTS = {
    f.name: f.default for f in fields(Experiment) if f.default is not MISSING
}


def file_name(cell, seed, fingerprint):
    """Name of the file of a record, e.g. `mnist-100_seed0_f9c7d9ca.json`."""
    return f"{cell}_seed{seed}_{fingerprint}.json"


_MNIST = Experiment(
    dataset="mnist",
    num_labeled=100,
    network="cnn6",
    filters=None,
    preprocessing="rescale",
    labeled_per_batch=paper.LABELED_PER_BATCH,
    unlabeled_per_batch=paper.UNLABELED_PER_BATCH,
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

SVHN = Experiment(
    dataset="svhn",
    num_labeled=1000,
    network="cnn9",
    filters=64,
    preprocessing="standardize",
    labeled_per_batch=96,
    unlabeled_per_batch=32,
    epochs=100,
)

SVHN_EXTRA = replace(SVHN, unlabeled="svhn-extra")
# A stand-in to exercise the path of SVHN; no cell of the paper's.
SVHN_GREY = replace(SVHN, dataset="svhn-grey")
NORB = {m: replace(_NORB, num_labeled=m) for m in (300, 1000)}
# The same on a copy of NORB that went through JPEG.
NORB_JPEG = {m: replace(e, dataset="norb-jpeg") for m, e in NORB.items()}

# A quick try, on scikit-learn's digits.
DIGITS = {
    100: replace(
        _MNIST,
        dataset="digits",
        num_validation=200,
        pretrain_epochs=400,
        epochs=20,
    )
}

# What can be run on each data set, by the number of labels.
EXPERIMENTS = {
    "mnist": TABLE_1,
    "infimnist": TABLE_2,
    "norb": NORB,
    "norb-jpeg": NORB_JPEG,
    "svhn": {1000: SVHN},
    "svhn-extra": {1000: SVHN_EXTRA},
    "svhn-grey": {1000: SVHN_GREY},
    "digits": DIGITS,
}

# The settings of each cell of the tables.
PAPER = {
    e.cell: e for by_labels in EXPERIMENTS.values() for e in by_labels.values()
}

# What a run may choose and still stand for a cell of the paper's tables.
FREE = ("epochs", "pretrain_epochs", "precision", "backend")


def stands_for_paper(settings, cell):
    """Whether a record's settings are the paper's but for those in `FREE`."""
    if cell not in PAPER:
        return False
    return differences(settings, PAPER[cell]).keys() <= set(FREE)


def with_defaults(settings):
    """A record's settings, with those that were added after it was made."""
    return json.loads(json.dumps(asdict(Experiment(**settings))))


def differences(settings, standard):
    """What a record's settings change in an experiment, as `{name: value}`.

    A part of `world` or `extensions` goes by its own name.
    """
    found = {}
    expected = with_defaults(asdict(standard))
    for name, value in with_defaults(settings).items():
        if isinstance(value, dict):
            parts = expected[name]
            found |= {k: v for k, v in value.items() if v != parts[k]}
        elif value != expected[name]:
            found[name] = value
    return found


def standard_of(settings):
    """The paper's experiment on the same data, with as many labels.

    Data that the paper does not have are set against its MNIST.
    """
    own = {name: settings[name] for name in ("dataset", "unlabeled")}
    m_L = settings["num_labeled"]
    alike = [e for e in PAPER.values() if own.items() <= vars(e).items()]
    for experiment in alike:
        if experiment.num_labeled == m_L:
            return experiment
    usual = alike[0] if alike else TABLE_1[100]
    # Fewer labels than the paper's fill less of a batch.
    b_L = min(usual.labeled_per_batch, m_L)
    batch = usual.labeled_per_batch + usual.unlabeled_per_batch
    return replace(
        usual,
        **own,
        num_labeled=m_L,
        labeled_per_batch=b_L,
        unlabeled_per_batch=batch - b_L,
    )


def changes(settings):
    """What a record's settings change in the paper's, as `{name: value}`.

    The data, the number of labels, and what is in `FREE` are no part of it.
    """
    changed = differences(settings, standard_of(settings))
    return {k: v for k, v in changed.items() if k not in FREE}
