"""The settings of an experiment, and those of the paper's (section 4).

Nothing here needs Keras, so that a command line is read at once.
"""

import hashlib
import json
from dataclasses import (
    MISSING,
    asdict,
    dataclass,
    fields,
    is_dataclass,
    replace,
)

from reproduction.methods import METHODS, name_of, terms


@dataclass(frozen=True, kw_only=True)
class DataSettings:
    """Label noise, class imbalance and out-of-class images in the data."""

    # Class imbalance: share of each class among the training images, positive,
    # of sum 1: as many images are kept as the rarest one allows.
    shares: tuple | None = None
    # "even" for as many labels in each class, as in the paper, or "random".
    labels_drawn: str = "even"
    # Share of the labels that are another class's, drawn at random.
    wrong_labels: float = 0.0
    # Number of classes of the task, the first ones: labelled, validation and
    # test images are of these.
    known_classes: int | None = None
    # Share of X_U that is of the other classes.
    out_of_class: float = 0.0

    def __post_init__(self):
        all_are_known = self.known_classes is None
        if not all_are_known and self.shares is not None:
            raise ValueError(
                "shares are those of all classes of the data. Received: "
                f"known_classes={self.known_classes} besides. Give one of them."
            )
        if all_are_known and self.out_of_class:
            raise ValueError(
                "Images can be out of class where some classes are not of the "
                f"task. Received: out_of_class={self.out_of_class}. Give "
                "known_classes."
            )


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """All that decides the numbers of a run, except for its seed."""

    # Name for `reproduction.datasets.load`.
    dataset: str
    # m_L.
    num_labeled: int
    network: str
    # Filters of cnn9, its f.
    filters: int | None = None
    # Of the images as stored: "rescale", division by 255, "standardize", each
    # to mean 0 and standard deviation 1, or "none".
    preprocessing: str
    # Random shifts in pixels, at most, and the strength of random affine maps,
    # in the training of both stages. The paper has none.
    shift: int = 0
    affine: float = 0.0
    # b_L; 0 for batches of X_U alone.
    labeled_per_batch: int
    # b_U.
    unlabeled_per_batch: int
    # Where X_U comes from.
    unlabeled: str = "train"
    # Images of X_U in an epoch; `None` for all.
    images_per_epoch: int | None = None
    num_validation: int = 1000
    data_settings: DataSettings = DataSettings()
    pretrain_epochs: int = 2000
    epochs: int = 200
    # Of stage 2: the steps over which its learning rate rises from 0
    # (`None` for as many as `gar_keras.regularize` takes), the largest norm of
    # a gradient (0 for any), and its rate where it is not that of stage 1.
    warmup_steps: int | None = 0
    global_clipnorm: float = 0.0
    stage_2_rate: float | None = None
    precision: str = "float32"
    backend: str = "tensorflow"
    # Number of the run among those of one seed, with the same labels and other
    # initial weights and batches.
    restart: int = 0
    # The terms of stage 2, see `reproduction.methods.terms`.
    method: tuple = METHODS["gar"].terms

    @property
    def method_name(self):
        """The name of the method, as in `reproduction.methods.METHODS`."""
        return name_of(self.method)

    @property
    def trains_network(self):
        return not isinstance(self.method[0], terms.Graph)

    @property
    def cell(self):
        """The cell of the paper's tables that this fills, e.g. `mnist-100`.

        Another method fills none: its name is behind, as in `mnist-100-vat`.
        """
        own = self.unlabeled == "train"
        cell = f"{self.dataset if own else self.unlabeled}-{self.num_labeled}"
        name = self.method_name
        return cell if name == "gar" else f"{cell}-{name}"

    @property
    def class_prior(self):
        """That of GAR's balance: shares, "labels", or `None` for equal ones."""
        for term in self.method:
            if isinstance(term, terms.GAR):
                return term.class_prior
        return None

    def with_method(self, name):
        """The experiment with a method of `METHODS`, as that one steps."""
        entry = METHODS[name]
        return replace(self, method=entry.terms, **dict(entry.steps))

    def with_term(self, **changes):
        """The experiment with other settings of its first term."""
        first, *others = self.method
        return replace(self, method=(replace(first, **changes), *others))

    def as_json(self):
        """All settings as a dict of what JSON can hold, for a record."""
        settings = asdict(self) | {"method": terms.as_json(self.method)}
        return json.loads(json.dumps(settings))

    @classmethod
    def from_json(cls, settings):
        """The experiment of a record."""
        data = terms.with_tuples(settings["data_settings"])
        made = {
            "data_settings": DataSettings(**data),
            "method": terms.from_json(settings["method"]),
        }
        return cls(**settings | made)

    def fingerprint(self):
        """Eight hexadecimal digits that differ when any setting does.

        Settings at their default are left out, so that a setting that is
        added later does not orphan the records made before it.
        """
        changed = _without_defaults(self)
        changed["method"] = [
            [type(term).__name__, _without_defaults(term)]
            for term in self.method
        ]
        text = json.dumps(changed, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    def stage_1(self):
        """The experiment with MNIST's settings where stage 1 has no part in.

        Experiments for which this is the same have the same stage 1.
        """
        of_stage_2 = (
            "labeled_per_batch", "unlabeled_per_batch", "unlabeled",
            "images_per_epoch", "epochs", "method", "stage_2_rate",
            "warmup_steps", "global_clipnorm",
        )  # fmt: skip
        usual = {name: getattr(_MNIST, name) for name in of_stage_2}
        known = replace(self.data_settings, out_of_class=0.0)
        return replace(self, data_settings=known, **usual)


def _without_defaults(settings):
    """The settings of a dataclass that are not at their default."""
    found = {}
    for f in fields(settings):
        value = getattr(settings, f.name)
        if f.default is MISSING or value != f.default:
            if is_dataclass(value):
                value = _without_defaults(value)
            # 2 and 2.0 are one setting.
            if isinstance(value, float) and value.is_integer():
                value = int(value)
            found[f.name] = value
    return found


_MNIST = Experiment(
    dataset="mnist",
    num_labeled=100,
    network="cnn6",
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
    preprocessing="none",
    labeled_per_batch=16,
    unlabeled_per_batch=112,
    num_validation=50,
    epochs=100,
)
_LARGE = {"epochs": 30, "pretrain_epochs": 500, "images_per_epoch": 10_000}
_CHANGES: dict[str, dict] = {
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

_RARE = (
    "abalone-17", "winequality-red-4", "yeast4", "kddcup-guess-passwd",
    "kr-vs-k-one", "shuttle-c0", "vowel0",
)  # fmt: skip
# Data sets of two classes, one of which is rare; twenty labels of each.
RARE = {name: replace(_SMALL, dataset=name, num_labeled=40) for name in _RARE}

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


def changes(experiment):
    """What an experiment changes in the paper's, as `{name: value}`.

    The data, the number of labels, and what is in `FREE` are no part of it. A
    part of `data_settings`, or of a term, goes by its own name; another method
    is told by its name, and what it has unlike `METHODS`.
    """
    name = experiment.method_name
    usual = _standard_of(experiment)
    if name in METHODS:
        usual = usual.with_method(name)
    usual, own = flat(usual) | {"method": "gar"}, flat(experiment)
    # Terms beside GAR, which the paper has not.
    usual |= {k: 0.0 for k in own.keys() - usual.keys()}
    return {k: v for k, v in own.items() if v != usual[k] and k not in FREE}


def flat(experiment):
    """All settings of an experiment by name, those in groups among them."""
    own = terms.settings_of(experiment.method)
    first = "affinity", "balance", "frobenius"
    found = {name: own.pop(name) for name in first if name in own}
    for name, value in vars(experiment).items():
        if name == "data_settings":
            found["method"] = experiment.method_name
            if "class_prior" in own:
                found["class_prior"] = own.pop("class_prior")
            found |= vars(value)
        elif name != "method":
            found[name] = value
    return found | own


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
