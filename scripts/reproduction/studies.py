"""Questions that the paper leaves open, as experiments on its settings.

Each study is a set of arms: experiments that differ in one thing, on the same
seeds. All is with the paper's networks, on MNIST, and with fewer epochs than
the paper's: arms are to be compared with each other.
"""

from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from reproduction.methods import terms
from reproduction.settings import TABLE_1


@dataclass(frozen=True)
class Claim:
    """What an arm of a study puts to the test."""

    # What the paper claims, with its section.
    text: str
    # How the error of the arm differs; `None` where the claim is silent.
    expected: Literal["higher", "lower"] | None
    # The row to compare with.
    against: str


@dataclass(frozen=True)
class Study:
    """Arms to compare: experiments, and claims on some, by their row."""

    name: str
    title: str
    # What a reader has to know, a line each.
    notes: tuple
    arms: dict
    claims: dict = field(default_factory=dict)
    # Runs of each arm and seed, with other initial weights and batches.
    restarts: int = 1

    @property
    def experiments(self):
        """All experiments, each once."""
        restarted = (
            replace(arm, restart=number)
            for number in range(self.restarts)
            for arm in self.arms.values()
        )
        return [*dict.fromkeys(restarted)]


_PAPER = "the paper's stage 2"


def _claim(expected, text, against=_PAPER, /, **changes):
    """A row with the claim that it puts to the test."""
    return changes, Claim(text, expected, against)


def _study(name, title, notes, standard, rows):
    """A `Study` of an experiment with the changes of each row.

    A row has its changes, or is a `_claim`. What is changed in `data_settings`
    or in GAR goes by its own name.
    """
    arms, claims = {}, {}
    for row, given in rows.items():
        if isinstance(given, tuple):
            given, claims[row] = given
        arms[row] = _changed(standard, **given)
    return Study(name, title, notes, arms, claims)


def _changed(standard, method=None, ablation=None, **changes):
    if method is not None:
        standard = standard.with_method(method)
    gar, *others = standard.method
    if ablation is not None:
        gar = terms.ABLATIONS[ablation](**vars(gar))
    parts = {"data_settings": standard.data_settings, "gar": gar}
    for part, usual in parts.items():
        names = {f.name for f in fields(usual)} & changes.keys()
        own = {name: changes.pop(name) for name in names}
        parts[part] = replace(usual, **own)
    others += changes.pop("others", [])
    return replace(
        standard,
        data_settings=parts["data_settings"],
        method=(parts["gar"], *others),
        **changes,
    )


def _mnist(epochs, **changes):
    return _changed(TABLE_1[100], epochs=epochs, **changes)


def _batches(b_L, b_U):
    return {"labeled_per_batch": b_L, "unlabeled_per_batch": b_U}


# Shares of the digits, each smaller than the last by the same factor.
_SIZES = [20 ** (-i / 9) for i in range(10)]
_SHARES = tuple(size / sum(_SIZES) for size in _SIZES)

SKEW = _study(
    "skew",
    "Class imbalance: MNIST, m_L = 100",
    (
        "Digit 0 is 20 times as frequent as digit 9 among the labelled, the "
        "validation and the unlabelled images; the labelled ones are drawn "
        "without regard to the class. The test images are all of MNIST's: "
        "rare digits count there as much as frequent ones.",
    ),
    _mnist(6, shares=_SHARES, labels_drawn="random"),
    {
        "the paper's balance term": {},
        "class_prior: true class proportions": {"class_prior": _SHARES},
        "class_prior: proportions of the labels": {
            "class_prior": terms.PRIOR_OF_LABELS
        },
        "no balance term": {"balance": 0.0},
        "the safe default of regularize": {"method": "safe-gar"},
    },
)

_MOVES = {"shift": 2, "affine": 0.2}
# Without dropout, as in the stage 2 of the paper: the views differ by the maps.
_VIEWS = [
    terms.CrossEntropy(),
    terms.Consistency(100.0, ramp=0.0, keeps_dropout=False),
]

BEST = Study(
    "best",
    "More than the paper, for longer: MNIST, m_L = 100",
    ("Affine maps: shifts by up to 2 pixels and maps of strength 0.2.",),
    {
        "affine maps in both stages, cross-entropy and consistency": _mnist(
            15, **_MOVES, others=_VIEWS
        ),
        "the same without GAR": replace(
            _mnist(15, **_MOVES), method=tuple(_VIEWS)
        ),
        _PAPER: _mnist(60),
    },
)

_PAIRS = {"num_labeled": 1000, "pretrain_epochs": 200, "dataset": "mnist-pairs"}

LIMITS = _study(
    "limits",
    "Where GAR breaks: MNIST",
    (
        "With known classes, the task is the digits 0 to 4 and the test "
        "images are of these. Out-of-class images are the other digits.",
        "The validation images keep their right labels.",
        "Batches are of 128 images where nothing else is said. In these the "
        "right labels of 100 classes have a balance of 0.56.",
    ),
    _mnist(4),
    {
        **{f"m_L = {m}": {"num_labeled": m} for m in (100, 50, 20)},
        "m_L = 10": {"num_labeled": 10, **_batches(10, 118)},
        "label noise of 10 %": {"wrong_labels": 0.1},
        "label noise of 20 %": {"wrong_labels": 0.2},
        "digits 0 to 4": {"known_classes": 5},
        **{
            f"digits 0 to 4, {percent} % of X_U out of class": {
                "known_classes": 5,
                "out_of_class": percent / 100,
            }
            for percent in (20, 45)
        },
        "20 epochs of stage 1": {"pretrain_epochs": 20},
        "100 classes: pairs of digits, m_L = 1000": _PAIRS,
        "100 classes, batches of 1,024": _PAIRS | _batches(128, 896),
    },
)

# What `gar_keras.regularize` adds to the paper's steps by default.
CURE: dict[str, Any] = {"global_clipnorm": 1.0, "warmup_steps": 100}
_BOTH = "both, the rate over 100 steps"

# Rows of the study by the epochs of stage 1 before them.
_FIRST: dict[str, dict] = {_PAPER: {}, _BOTH: CURE}
_FIRST_AFTER_200: dict[str, dict] = {
    _PAPER: {},
    "gradient clipped to a norm of 1": {"global_clipnorm": 1.0},
    "learning rate rises over 200 steps": {"warmup_steps": 200},
    _BOTH: CURE,
    "cross-entropy of the labels": {"others": [terms.CrossEntropy()]},
    "column sums of B": {"balance_of": "column sums"},
}

FIRST_EPOCH = Study(
    "first-epoch",
    "One epoch of stage 2 from many initializations: MNIST, m_L = 100",
    (
        "Initializations differ in weights and batches, those of another seed "
        "in labels too. Rows of the same stage 1 begin with the same ones.",
    ),
    {
        **{row: _mnist(1, **changes) for row, changes in _FIRST.items()},
        **{
            f"{row}, after 200 epochs of stage 1": _mnist(
                1, pretrain_epochs=200, **changes
            )
            for row, changes in _FIRST_AFTER_200.items()
        },
    },
    restarts=3,
)

_MORE_LABELS = {"num_labeled": 1000, "pretrain_epochs": 300}
_PAPER_1000 = "m_L = 1000, the paper's stage 2"
_TENTH = "b_L is about a tenth of m_L (4)"
_SAME_RANGE = "normalization brings both terms within the same range (3.3)"
_SIZE = "a batch of 128 images (4)"

ABLATION = _study(
    "ablation",
    "What the paper claims, one thing changed at a time: MNIST, m_L = 100",
    (
        "An epoch is one pass over X_U: with b_U = 32 it has 3.5 times the "
        "steps that it has with b_U = 112, with 64 it has 1.75 times as many. "
        "These rows have fewer epochs.",
        "Fixed adjacency: in place of the affinity, with its coefficient, the "
        "Laplacian eigenmap of equation (2) on the graph B0 B0ᵀ of the images "
        "of a batch, B0 the rectified logits of the network of stage 1, under "
        "ZᵀDZ = I.",
        "Without its denominator, affinity begins about as large with "
        "c_α = 1.7e-6 as it does in the paper's loss.",
    ),
    _mnist(10),
    {
        _PAPER: {},
        _PAPER_1000: _MORE_LABELS,
        "c_β = 0": _claim(
            "higher",
            "a balancing constraint is required to prevent collapsing (3.2)",
            balance=0.0,
        ),
        "c_α = 0": _claim(
            "higher",
            "affinity is what assigns an image to one class (3.2)",
            affinity=0.0,
        ),
        "adjacency of stage 1, fixed": _claim(
            "higher",
            "an adaptive adjacency improves the accuracy (3.1, 5)",
            ablation="fixed-adjacency",
        ),
        "unrectified logits": _claim(
            "higher",
            "two negative activations would make a false adjacency (3.3)",
            ablation="unrectified",
        ),
        "softmax of the logits": _claim(
            "higher",
            "linear activations are easier to optimize than probabilities "
            "(3.3)",
            ablation="softmax",
        ),
        "c_F = 0": _claim(
            "higher",
            "without an L2 norm growing activations diminish both terms (3.3)",
            frobenius=0.0,
        ),
        # The denominator begins at about 1.7 million.
        "affinity without its denominator, c_α = 1.7e-6": _claim(
            "higher", _SAME_RANGE, ablation="unnormalized", affinity=1.7e-6
        ),
        "b_L = 0, b_U = 128": _claim(
            "higher",
            "labelled images in the batches make it more stable (3.4)",
            **_batches(0, 128),
        ),
        "b_L = 64, b_U = 64": _claim(
            "higher", _TENTH, **_batches(64, 64), epochs=5
        ),
        "b_L = 96, b_U = 32": _claim(
            "higher", _TENTH, **_batches(96, 32), epochs=2
        ),
        "m_L = 1000, b_L = 96, b_U = 32": _claim(
            "lower",
            _TENTH,
            _PAPER_1000,
            **_MORE_LABELS,
            **_batches(96, 32),
            epochs=2,
        ),
        "batches of 32, b_L = 4": _claim(None, _SIZE, **_batches(4, 28)),
        "batches of 512, b_L = 64": _claim(None, _SIZE, **_batches(64, 448)),
        "affinity without its denominator, c_α = 3": _claim(
            "higher", _SAME_RANGE, ablation="unnormalized", epochs=2
        ),
    },
)

_FASTER = "lower", "with it the error falls in fewer epochs"

FASTER = _study(
    "faster",
    "Fewer epochs, once no class is lost: MNIST, m_L = 100",
    (
        "An epoch is one pass over X_U: with b_U = 28 it has 4 times the steps "
        "that it has with b_U = 112.",
    ),
    _mnist(30),
    {
        _PAPER: {},
        "clip of 1 and warm-up": _claim(
            None, "what keeps the classes costs nothing", **CURE, epochs=20
        ),
        **{
            f"the same, learning rate of {rate}": _claim(
                *_FASTER, **CURE, stage_2_rate=rate, epochs=20
            )
            for rate in (0.03, 0.1)
        },
        "the same, batches of 32, b_L = 4": _claim(
            *_FASTER, **CURE, **_batches(4, 28)
        ),
    },
)

BALANCE = _study(
    "balance",
    "Other forms of the balance: MNIST, m_L = 100",
    ("Symmetric: the terms of max(0, -Z) are added to those of max(0, Z).",),
    _mnist(100),
    {
        _PAPER: {},
        "column sums of B": _claim(
            "lower", "no output dies", balance_of="column sums"
        ),
        "column sums, clip of 1 and warm-up": _claim(
            None,
            "both keep the classes",
            balance_of="column sums",
            **CURE,
            epochs=20,
        ),
        "symmetric": _claim(
            None, "the authors' later code", ablation="symmetric", epochs=20
        ),
    },
)

STUDIES = {
    study.name: study
    for study in (SKEW, BEST, LIMITS, FIRST_EPOCH, ABLATION, FASTER, BALANCE)
}
