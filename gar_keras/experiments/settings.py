"""The paper's experiments as data (section 4 and Tables 1 to 3)."""

from dataclasses import MISSING
from dataclasses import asdict
from dataclasses import dataclass
from dataclasses import field
from dataclasses import fields
from dataclasses import is_dataclass
from dataclasses import replace
import hashlib
import json

from gar_keras.checks import check_choice
from gar_keras.checks import check_class_prior
from gar_keras.checks import check_count
from gar_keras.checks import check_number
from gar_keras.checks import set_field
from gar_keras.experiments import records
from gar_keras.experiments.variations import Extensions
from gar_keras.experiments.variations import World

PRECISIONS = ("float32", "bfloat16")
PREPROCESSINGS = ("rescale", "standardize", "none")
UNLABELED = ("train", "infimnist", "svhn-extra")
BACKENDS = ("tensorflow", "jax", "torch")

# What stage 2 can do in GAR's place, by the names of `gar_keras.rivals`: with
# the network of stage 1, and without any network.
NETWORK_RIVALS = (
    "supervised",
    "entropy",
    "pseudo-label",
    "pi",
    "vat",
    "vat-entropy",
    "mean-teacher",
    "embed-cnn",
)
GRAPH_RIVALS = ("label-spreading", "hagr")
RIVALS = (*NETWORK_RIVALS, *GRAPH_RIVALS)

# class_prior: the shares of the labelled images.
PRIOR_OF_LABELS = "labels"

# What stage 1 does not depend on.
STAGE_2 = (
    "labeled_per_batch",
    "unlabeled_per_batch",
    "unlabeled",
    "images_per_epoch",
    "epochs",
    "stage_2_rate",
    "affinity",
    "balance",
    "frobenius",
    "frobenius_of",
    "method",
    "class_prior",
    "extensions",
)

# What must be an integer of at least 1.
_COUNTS = (
    "num_labeled",
    "labeled_per_batch",
    "unlabeled_per_batch",
    "num_validation",
    "batch_size",
    "pretrain_epochs",
    "epochs",
)
# What may be an integer of at least 1 or None.
_OPTIONAL_COUNTS = ("filters", "images_per_epoch")
# What must be a finite number of at least 0.
_NUMBERS = (
    "affinity",
    "balance",
    "frobenius",
    "learning_rate",
    "momentum",
    "decay",
    "pretrain_affine",
)


@dataclass(frozen=True)
class Experiment:
    """All that decides the numbers of a run, except for its seed.

    Attributes:
        dataset: Name for `gar_keras.datasets.load`.
        num_labeled: m_L.
        network: `"cnn6"` or `"cnn9"`.
        filters: f of `cnn9`; `None` for `cnn6`.
        preprocessing: What the network does to the images as stored:
            `"rescale"` (divide by 255), `"standardize"` (each image to mean 0
            and standard deviation 1) or `"none"`.
        labeled_per_batch: b_L.
        unlabeled_per_batch: b_U.
        unlabeled: Where X_U comes from: `"train"` for all training images,
            `"infimnist"` for deformed ones without end, `"svhn-extra"` for
            the training images and SVHN's extra set.
        images_per_epoch: Images of X_U in an epoch; `None` for all.
        num_validation: Validation images.
        batch_size: Images in a batch of stage 1.
        pretrain_epochs: Epochs of stage 1.
        pretrain_shift: Pixels by which the images of stage 1 are moved at
            random, at most. 0 in the paper, as the next.
        pretrain_affine: Strength of random affine maps of these images.
        epochs: Epochs of stage 2.
        affinity: c_α.
        balance: c_β.
        frobenius: c_F.
        frobenius_of: `"B"` or `"Z"`.
        learning_rate: Rate of the first step of each stage.
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
        restart: Number of the run among those of one seed, with the same
            labels and other initial weights and batches.
    """

    dataset: str
    num_labeled: int
    network: str
    filters: int | None
    preprocessing: str
    labeled_per_batch: int
    unlabeled_per_batch: int
    unlabeled: str = "train"
    images_per_epoch: int | None = None
    num_validation: int = 1000
    batch_size: int = 128
    pretrain_epochs: int = 2000
    epochs: int = 200
    affinity: float = 3.0
    balance: float = 1.0
    frobenius: float = 1e-6
    frobenius_of: str = "B"
    learning_rate: float = 0.01
    momentum: float = 0.95
    decay: float = 1e-6
    precision: str = "float32"
    backend: str = "tensorflow"
    method: str = "gar"
    class_prior: tuple | str | None = None
    world: World = field(default_factory=World)
    extensions: Extensions = field(default_factory=Extensions)
    restart: int = 0
    pretrain_shift: int = 0
    pretrain_affine: float = 0.0
    stage_2_rate: float | None = None

    def __post_init__(self):
        """Refuses now what would else end a run hours later.

        Numbers become plain ones, so that 2, 2.0 and NumPy's 2 are one and
        the same experiment.
        """
        check_choice("network", self.network, ("cnn6", "cnn9"))
        check_choice("preprocessing", self.preprocessing, PREPROCESSINGS)
        check_choice("unlabeled", self.unlabeled, UNLABELED)
        check_choice("frobenius_of", self.frobenius_of, ("B", "Z"))
        check_choice("precision", self.precision, PRECISIONS)
        check_choice("backend", self.backend, BACKENDS)
        check_choice("method", self.method, ("gar", *RIVALS))
        for name in _COUNTS:
            set_field(
                self, name, check_count(name, getattr(self, name), least=1)
            )
        for name in _OPTIONAL_COUNTS:
            value = getattr(self, name)
            if value is not None:
                set_field(self, name, check_count(name, value, least=1))
        for name in _NUMBERS:
            set_field(self, name, check_number(name, getattr(self, name)))
        if self.stage_2_rate is not None:
            set_field(self, "stage_2_rate", _rate(self.stage_2_rate))
        for name in ("restart", "pretrain_shift"):
            set_field(
                self, name, check_count(name, getattr(self, name), least=0)
            )
        self._check_variations()
        if (self.filters is None) != (self.network == "cnn6"):
            raise ValueError(
                "filters is the number of filters of cnn9, and None for cnn6. "
                f"Received: filters={self.filters!r}, "
                f"network={self.network!r}"
            )
        if self.labeled_per_batch > self.num_labeled:
            raise ValueError(
                "labeled_per_batch must be at most num_labeled. Received: "
                f"labeled_per_batch={self.labeled_per_batch}, "
                f"num_labeled={self.num_labeled}"
            )

    def _check_variations(self):
        """A record has them as JSON does: dicts, and lists for tuples."""
        for name, kind in (("world", World), ("extensions", Extensions)):
            value = getattr(self, name)
            if isinstance(value, dict):
                set_field(self, name, kind(**value))
            elif not isinstance(value, kind):
                raise ValueError(
                    f"{name} must be a {kind.__name__}. Received: "
                    f"{name}={value!r}"
                )
        if self.class_prior not in (None, PRIOR_OF_LABELS):
            set_field(self, "class_prior", check_class_prior(self.class_prior))
        if self.unlabeled != "train" and self.world != World():
            raise ValueError(
                "A world changes the images of the training set, of which X_U "
                f"must be made. Received: unlabeled={self.unlabeled!r}, "
                f"world={self.world}"
            )
        if self.extensions.affinity_warmup and not self.affinity:
            raise ValueError(
                "affinity_warmup is of the coefficient of the affinity, which "
                "must be above 0. Received: "
                f"affinity_warmup={self.extensions.affinity_warmup}, "
                f"affinity={self.affinity}"
            )
        plain = self.class_prior is None and self.extensions == Extensions()
        if self.method != "gar" and not plain:
            raise ValueError(
                "class_prior and extensions are of GAR. Received: "
                f"method={self.method!r}"
            )

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
        return self.method == "gar" and self.extensions.rate != "cosine"

    def fingerprint(self):
        """Eight hexadecimal digits that differ when any setting does.

        Settings at their default are left out, so that a setting that is
        added later does not orphan the records made before it.
        """
        text = json.dumps(_changed(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    def stage_1(self):
        """The experiment with all at its default that stage 1 has no part in.

        Experiments for which this is the same have the same stage 1.
        """
        defaults = _defaults(Experiment)
        return replace(
            self,
            labeled_per_batch=1,
            unlabeled_per_batch=1,
            world=replace(self.world, strangers=0.0),
            **{name: defaults[name] for name in STAGE_2 if name in defaults},
        )

    def file_name(self, seed):
        """Name of the record of the run with this seed."""
        return records.file_name(self.cell, seed, self.fingerprint())


def _rate(value):
    rate = check_number("stage_2_rate", value)
    if not rate:
        raise ValueError(
            "stage_2_rate must be above 0, or None for learning_rate. "
            "Received: stage_2_rate=0"
        )
    return rate


def _defaults(kind):
    """The default of each field that has one."""
    found = {}
    for f in fields(kind):
        if f.default is not MISSING:
            found[f.name] = f.default
        elif f.default_factory is not MISSING:
            found[f.name] = f.default_factory()
    return found


def _changed(settings):
    """The fields that are not at their default, in nested dicts."""
    defaults = _defaults(type(settings))
    return {
        f.name: _changed(value) if is_dataclass(value) else value
        for f in fields(settings)
        if (value := getattr(settings, f.name)) != defaults.get(f.name, MISSING)
    }


_MNIST = Experiment(
    dataset="mnist",
    num_labeled=100,
    network="cnn6",
    filters=None,
    preprocessing="rescale",
    labeled_per_batch=16,
    unlabeled_per_batch=112,
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

# The settings of each cell of the tables.
PAPER = {
    e.cell: e
    for e in (
        *TABLE_1.values(),
        *TABLE_2.values(),
        *NORB.values(),
        *NORB_JPEG.values(),
        SVHN,
        SVHN_EXTRA,
        SVHN_GREY,
    )
}

# What a run may choose and still stand for a cell of the paper's tables.
FREE = ("epochs", "pretrain_epochs", "precision", "backend")


def stands_for_paper(settings, cell):
    """Whether a record's settings are the paper's but for those in `FREE`.

    Args:
        settings: Dict of an experiment, as in a record.
        cell: Cell of the paper's tables, e.g. `"mnist-100"`.
    """
    if cell not in PAPER:
        return False
    expected = asdict(PAPER[cell])
    # A record made before a setting was added ran at its default.
    settings = with_defaults(settings)
    return settings.keys() == expected.keys() and all(
        settings[name] == value
        for name, value in expected.items()
        if name not in FREE
    )


def with_defaults(settings):
    """A record's settings, with those that were added after it was made."""
    defaults = {k: _plain(v) for k, v in _defaults(Experiment).items()}
    found = {**defaults, **{k: _plain(v) for k, v in settings.items()}}
    for name in ("world", "extensions"):
        found[name] = {**defaults[name], **found[name]}
    return found


def _plain(value):
    """A part of the settings as JSON has it."""
    return asdict(value) if is_dataclass(value) else value


def differences(settings, standard):
    """What a record's settings change in an experiment, as `{name: value}`.

    Args:
        settings: Dict of an experiment, as in a record.
        standard: An `Experiment`.

    Returns:
        A flat dict; a part of `world` or `extensions` goes by its own name.
    """
    found = {}
    # As a file has them: with lists in place of tuples.
    expected = json.loads(json.dumps(with_defaults(asdict(standard))))
    settings = json.loads(json.dumps(with_defaults(settings)))
    for name, value in settings.items():
        if isinstance(value, dict):
            parts = expected[name]
            found |= {k: v for k, v in value.items() if v != parts[k]}
        elif value != expected[name]:
            found[name] = value
    return found
