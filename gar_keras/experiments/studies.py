"""Questions that the paper leaves open, as experiments on its settings.

Each study is a set of arms: experiments that differ in one thing, on the same
seeds. All is with the paper's networks, on MNIST but for `NORB_CHANGES`, and
with fewer epochs than the paper's: arms are to be compared with each other.
"""

from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace
from typing import Literal

from gar_keras.experiments.settings import NORB_JPEG
from gar_keras.experiments.settings import PRIOR_OF_LABELS
from gar_keras.experiments.settings import TABLE_1
from gar_keras.experiments.settings import TABLE_2
from gar_keras.experiments.settings import Experiment
from gar_keras.experiments.variations import DataConditions
from gar_keras.experiments.variations import Extensions
from gar_keras.methods.options import GLOBAL_CLIPNORM
from gar_keras.methods.options import WARMUP_STEPS
from gar_keras.paper import BATCH_SIZE


@dataclass(frozen=True)
class Claim:
    """What an arm of a study puts to the test.

    Attributes:
        text: The claim, in short.
        expected: What follows for the error of the arm, beside that of the
            paper's loss: `"higher"`, `"lower"`, or `None` where the claim
            says nothing of it.
        against: The text of the row to compare with.
        section: Section of the paper that claims it, or `None`.
    """

    text: str
    expected: Literal["higher", "lower"] | None
    against: str
    section: str | None = None


@dataclass(frozen=True)
class Study:
    """Arms to compare.

    Attributes:
        name: Key, e.g. `"skew"`.
        title: What is compared.
        notes: What a reader has to know, a line each.
        arms: Experiments by the text of their row.
        votes: By the text of their row, experiments with the same labels
            whose predictions are averaged.
        restarts: Runs of each arm and seed, with other initial weights and
            batches.
        claims: A `Claim` by the text of the row that tests it.
    """

    name: str
    title: str
    notes: tuple
    arms: dict
    votes: dict = field(default_factory=dict)
    restarts: int = 1
    claims: dict = field(default_factory=dict)

    @property
    def experiments(self):
        """All experiments, each once."""
        voters = (e for some in self.votes.values() for e in some)
        restarted = (
            replace(arm, restart=number)
            for number in range(self.restarts)
            for arm in self.arms.values()
        )
        return [*dict.fromkeys([*restarted, *voters])]

    def with_settings(self, **settings):
        """The study with other settings in each arm, where one is given.

        Args:
            **settings: Settings of an `Experiment`; `None` to leave one as it
                is in each arm.
        """
        given = {k: v for k, v in settings.items() if v is not None}
        but_stage_1 = {k: v for k, v in given.items() if k != "pretrain_epochs"}
        # An arm with a stage 1 of its own keeps it: it is what is studied.
        usual = next(iter(self.arms.values())).pretrain_epochs

        def changed(arm):
            own = arm.pretrain_epochs != usual
            return replace(arm, **(but_stage_1 if own else given))

        arms = {text: changed(arm) for text, arm in self.arms.items()}
        votes = {
            text: tuple(map(changed, voters))
            for text, voters in self.votes.items()
        }
        return replace(self, arms=arms, votes=votes)


def _mnist(num_labeled=100, **changes) -> Experiment:
    standard = TABLE_1[100]
    b_L = min(standard.labeled_per_batch, num_labeled)
    return replace(
        standard,
        num_labeled=num_labeled,
        labeled_per_batch=b_L,
        unlabeled_per_batch=BATCH_SIZE - b_L,
        **changes,
    )


def _geometric(n, ratio):
    """Shares of n classes, each smaller than the last by the same factor.

    Args:
        n: Number of classes.
        ratio: The first share over the last.

    Example:

    >>> [round(p, 3) for p in _geometric(3, 4)]
    [0.571, 0.286, 0.143]
    """
    shares = [ratio ** (-i / (n - 1)) for i in range(n)]
    return tuple(p / sum(shares) for p in shares)


_SHARES = _geometric(10, 20)
_SKEWED = DataConditions(shares=_SHARES, labels_drawn="random")

SKEW = Study(
    "skew",
    "Class imbalance: MNIST, m_L = 100",
    (
        "Digit 0 is 20 times as frequent as digit 9 among the labelled, the "
        "validation and the unlabelled images; the labelled ones are drawn "
        "without regard to the class. The test images are all of MNIST's: "
        "rare digits count there as much as frequent ones.",
    ),
    {
        "the paper's balance term": _mnist(epochs=6, world=_SKEWED),
        "class_prior: the true shares": _mnist(
            epochs=6, world=_SKEWED, class_prior=_SHARES
        ),
        "class_prior: shares of the labels": _mnist(
            epochs=6, world=_SKEWED, class_prior=PRIOR_OF_LABELS
        ),
        "no balance term": _mnist(epochs=6, world=_SKEWED, balance=0.0),
    },
)


def _extended(**options):
    return _mnist(epochs=4, extensions=Extensions(**options))


_MOVES = {"shift": 2, "affine": 0.2}
_TOGETHER = {**_MOVES, "supervised": 1.0, "consistency": 100.0}
_NO_GAR = {"affinity": 0.0, "balance": 0.0, "frobenius": 0.0}
_MOVED_START = {"pretrain_shift": 2, "pretrain_affine": 0.2}

OPTIONS = Study(
    "options",
    "More than the paper: MNIST, m_L = 100",
    ("The epoch is chosen by validation in each run.",),
    {
        "the paper's stage 2": _mnist(epochs=4),
        "shifts by up to 2 pixels": _extended(shift=2),
        "affine maps (0.2)": _extended(affine=0.2),
        "deformed images (InfiMNIST)": replace(TABLE_2[100], epochs=4),
        "EMA of the weights (0.999)": _extended(average=0.999),
        "cosine learning-rate decay": _extended(rate="cosine"),
        "affinity rises over 3 epochs": _extended(affinity_warmup=3),
        "VAT": _extended(vat=1.0),
        "consistency of two shifted views": _extended(
            shift=2, consistency=100.0
        ),
        "cross-entropy of the labels": _extended(supervised=1.0),
        "cross-entropy, shifts, EMA and cosine": _extended(
            shift=2, supervised=1.0, average=0.999, rate="cosine"
        ),
        "cross-entropy, shifts, affine maps": _extended(
            supervised=1.0, **_MOVES
        ),
        "cross-entropy and VAT": _extended(supervised=1.0, vat=1.0),
        "cross-entropy, shifts, affine maps and consistency": _extended(
            **_TOGETHER
        ),
        "the same, and cosine": _extended(rate="cosine", **_TOGETHER),
        "the same with cosine, without GAR": replace(
            _extended(rate="cosine", **_TOGETHER),
            **_NO_GAR,
        ),
        "augmentation in stage 1": _mnist(epochs=4, **_MOVED_START),
    },
    {
        "ensemble of three runs of the paper's stage 2": tuple(
            _mnist(epochs=4, restart=number) for number in range(3)
        )
    },
)


BEST = Study(
    "best",
    "The best of the options, for longer: MNIST, m_L = 100",
    (
        "The options were chosen by the validation errors of seed 0. The aim: "
        "below 0.8 %, which is under every figure of the paper's Table 1.",
    ),
    {
        "the paper's stage 2": _mnist(epochs=60),
        "cross-entropy, shifts, affine maps, consistency and cosine": _mnist(
            epochs=15, extensions=Extensions(rate="cosine", **_TOGETHER)
        ),
        "the same after augmentation in stage 1": _mnist(
            epochs=15,
            extensions=Extensions(rate="cosine", **_TOGETHER),
            **_MOVED_START,
        ),
        "the same after such a stage 1, without GAR": _mnist(
            epochs=15,
            extensions=Extensions(rate="cosine", **_TOGETHER),
            **_MOVED_START,
            **_NO_GAR,
        ),
    },
)


def _world(**options):
    return _mnist(epochs=4, world=DataConditions(**options))


LIMITS = Study(
    "limits",
    "Where GAR breaks: MNIST",
    (
        "With known classes, the task is the digits 0 to 4 and the test "
        "images are of these. Out-of-class images are the other digits.",
        "The validation images keep their right labels.",
        "Batches are of 128 images where nothing else is said. With so few of "
        "100 classes the right labels themselves have a balance of 0.56.",
    ),
    {
        "m_L = 100": _mnist(epochs=4),
        "m_L = 50": _mnist(50, epochs=4),
        "m_L = 20": _mnist(20, epochs=4),
        "m_L = 10": _mnist(10, epochs=4),
        "label noise of 10 %": _world(wrong_labels=0.1),
        "label noise of 20 %": _world(wrong_labels=0.2),
        "digits 0 to 4": _world(known_classes=5),
        "digits 0 to 4, 20 % of X_U out of class": _world(
            known_classes=5, strangers=0.2
        ),
        "digits 0 to 4, 45 % of X_U out of class": _world(
            known_classes=5, strangers=0.45
        ),
        "20 epochs of stage 1": _mnist(epochs=4, pretrain_epochs=20),
        "100 classes: pairs of digits, m_L = 1000": _mnist(
            1000, epochs=4, pretrain_epochs=200, dataset="mnist-pairs"
        ),
        "100 classes, batches of 1,024": replace(
            _mnist(1000, epochs=4, pretrain_epochs=200, dataset="mnist-pairs"),
            labeled_per_batch=128,
            unlabeled_per_batch=896,
        ),
    },
)


# What `gar_keras.regularize` adds to the paper's steps by default.
_CURE = {"global_clipnorm": GLOBAL_CLIPNORM, "warmup_steps": WARMUP_STEPS}


def _starts(pretrain_epochs):
    """Arms of one epoch, from the same starts."""

    def arm(learning_rate=None, balance=1.0, **options):
        return _mnist(
            epochs=1,
            pretrain_epochs=pretrain_epochs,
            stage_2_rate=learning_rate,
            balance=balance,
            extensions=Extensions(**options),
        )

    arms = {
        "the paper's stage 2": arm(),
        "gradient clipped to a norm of 1": arm(global_clipnorm=1.0),
        "learning rate rises over 200 steps": arm(warmup_steps=200),
        "both, the rate over 100 steps": arm(**_CURE),
        "cross-entropy of the labels": arm(supervised=1.0),
        "learning rate of 0.003": arm(learning_rate=0.003),
        "c_β = 3": arm(balance=3.0),
        "column sums of B": replace(arm(), balance_of="column sums"),
    }
    return {
        f"{text}, after {pretrain_epochs} epochs of stage 1": experiment
        for text, experiment in arms.items()
    }


FIRST_EPOCH = Study(
    "first-epoch",
    "One epoch of stage 2 from many starts: MNIST, m_L = 100",
    (
        "A start is a seed and a restart: labels, initial weights and batches. "
        "Rows of the same stage 1 begin with the same starts.",
    ),
    {**_starts(2000), **_starts(200)},
    restarts=3,
)


def _ablated(epochs=10, **changes):
    return _mnist(epochs=epochs, **changes)


def _batches(b_L, b_U, num_labeled=100, **changes):
    arm = replace(_ablated(**changes), num_labeled=num_labeled)
    return replace(arm, labeled_per_batch=b_L, unlabeled_per_batch=b_U)


_PAPER = "the paper's stage 2"
_PAPER_1000 = "m_L = 1000, the paper's stage 2"
_TENTH = "b_L is about a tenth of m_L"
_SAME_RANGE = "normalization brings both terms within the same range"

# At the end of stage 1 the denominator of the affinity is about 1.7 million
# (100 labels, batches of 128): with this c_α the term begins as large.
_UNNORMALIZED_AFFINITY = 1.7e-6

# By the text of its row: a claim of the paper, its section, what follows for
# the error of the row, and the experiment.
_ABLATIONS = {
    "c_β = 0": (
        "a balancing constraint is required to prevent collapsing",
        "3.2",
        "higher",
        _ablated(balance=0.0),
    ),
    "c_α = 0": (
        "affinity is what assigns an image to one class",
        "3.2",
        "higher",
        _ablated(affinity=0.0),
    ),
    "adjacency of stage 1, fixed": (
        "an adaptive adjacency improves the accuracy",
        "3.1, 5",
        "higher",
        _ablated(ablation="fixed-adjacency"),
    ),
    "unrectified logits": (
        "two negative activations would make a false adjacency",
        "3.3",
        "higher",
        _ablated(ablation="unrectified"),
    ),
    "softmax of the logits": (
        "linear activations are easier to optimize than probabilities",
        "3.3",
        "higher",
        _ablated(ablation="softmax"),
    ),
    "c_F = 0": (
        "without an L2 norm growing activations diminish both terms",
        "3.3",
        "higher",
        _ablated(frobenius=0.0),
    ),
    "affinity without its denominator, c_α = 1.7e-6": (
        _SAME_RANGE,
        "3.3",
        "higher",
        _ablated(affinity=_UNNORMALIZED_AFFINITY, ablation="unnormalized"),
    ),
    "b_L = 0, b_U = 128": (
        "labelled images in the batches make it more stable",
        "3.4",
        "higher",
        _batches(0, 128),
    ),
    "b_L = 64, b_U = 64": (
        _TENTH,
        "4",
        "higher",
        _batches(64, 64, epochs=5),
    ),
    "b_L = 96, b_U = 32": (
        _TENTH,
        "4",
        "higher",
        _batches(96, 32, epochs=2),
    ),
    "m_L = 1000, b_L = 96, b_U = 32": (
        _TENTH,
        "4",
        "lower",
        _batches(96, 32, 1000, epochs=2, pretrain_epochs=300),
    ),
    "batches of 32, b_L = 4": (
        "a batch of 128 images",
        "4",
        None,
        _batches(4, 28),
    ),
    "batches of 512, b_L = 64": (
        "a batch of 128 images",
        "4",
        None,
        _batches(64, 448),
    ),
    "affinity without its denominator, c_α = 3": (
        _SAME_RANGE,
        "3.3",
        "higher",
        _ablated(epochs=2, ablation="unnormalized"),
    ),
}

ABLATION = Study(
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
    {
        _PAPER: _ablated(),
        _PAPER_1000: _mnist(1000, epochs=10, pretrain_epochs=300),
        **{text: arm for text, (*_, arm) in _ABLATIONS.items()},
    },
    claims={
        text: Claim(
            claim,
            expected,
            _PAPER if arm.num_labeled == 100 else _PAPER_1000,
            section,
        )
        for text, (claim, section, expected, arm) in _ABLATIONS.items()
    },
)


def _cured(learning_rate=None, **options):
    return _mnist(
        epochs=20,
        stage_2_rate=learning_rate,
        extensions=Extensions(**_CURE, **options),
    )


_FASTER = "with it the error falls in fewer epochs"

# The row that the README tells of beside the table of the paper.
SMALL_BATCHES = "the same, batches of 32, b_L = 4"

# By the text of its row: what is hoped of it, and the experiment.
_SPEEDUPS = {
    "clip of 1 and warm-up": (
        "what keeps the classes costs nothing",
        None,
        _cured(),
    ),
    "the same, learning rate of 0.03": (
        _FASTER,
        "lower",
        _cured(learning_rate=0.03),
    ),
    "the same, learning rate of 0.1": (
        _FASTER,
        "lower",
        _cured(learning_rate=0.1),
    ),
    "the same, cross-entropy of the labels": (
        _FASTER,
        "lower",
        _cured(supervised=1.0),
    ),
    "the same, batches of 64, b_L = 8": (
        _FASTER,
        "lower",
        replace(_cured(), labeled_per_batch=8, unlabeled_per_batch=56),
    ),
    SMALL_BATCHES: (
        _FASTER,
        "lower",
        replace(_cured(), labeled_per_batch=4, unlabeled_per_batch=28),
    ),
}

FASTER = Study(
    "faster",
    "Fewer epochs, once no class is lost: MNIST, m_L = 100",
    (
        "An epoch is one pass over X_U: with b_U = 28 it has 4 times the steps "
        "that it has with b_U = 112, with 56 twice as many.",
    ),
    {
        _PAPER: _mnist(epochs=20),
        **{text: arm for text, (*_, arm) in _SPEEDUPS.items()},
    },
    claims={
        text: Claim(claim, expected, _PAPER)
        for text, (claim, expected, _) in _SPEEDUPS.items()
    },
)


def _norb(epochs=60, **changes):
    return replace(NORB_JPEG[1000], epochs=epochs, **changes)


# By the text of its row: what is hoped of it, the section of the paper, what
# follows for the error, and the experiment.
_NORB_CHANGES = {
    "each camera's image stretched": (
        "the authors' code did it",
        None,
        None,
        _norb(camera_stretch=True),
    ),
    "learning rate of 0.005": (
        "the error swings less, and falls",
        None,
        "lower",
        _norb(stage_2_rate=0.005),
    ),
    "learning rate of 0.002": (
        "the error swings less, and falls",
        None,
        "lower",
        _norb(stage_2_rate=0.002),
    ),
    "b_L = 96, b_U = 32": (
        _TENTH,
        "4",
        "lower",
        _norb(epochs=20, labeled_per_batch=96, unlabeled_per_batch=32),
    ),
}

NORB_CHANGES = Study(
    "norb",
    "One thing changed at a time: small NORB (JPEG copy), m_L = 1000",
    (
        "The authors' code stretched the grey levels of each camera's image to "
        "0..255 by themselves first; here over those of the 32x32 image, since "
        "the copy has no other. This row has a stage 1 of its own.",
        "An epoch is one pass over X_U: with b_U = 32 it has three times the "
        "steps that it has with b_U = 96. This row has a third of the epochs.",
    ),
    {
        _PAPER: _norb(),
        **{text: arm for text, (*_, arm) in _NORB_CHANGES.items()},
    },
    claims={
        text: Claim(claim, expected, _PAPER, section)
        for text, (claim, section, expected, _) in _NORB_CHANGES.items()
    },
)


def _deformed(field_strength):
    return replace(TABLE_2[100], epochs=15, field_strength=field_strength)


INFIMNIST = Study(
    "infimnist",
    "Strength of the deformations: InfiMNIST, m_L = 100",
    (
        "The deformation fields are multiplied by the strength. With 0, an "
        "image is only moved as a whole, by a pixel at most in each direction.",
    ),
    {
        "fields times 1": _deformed(1.0),
        "fields times 0.5": _deformed(0.5),
        "fields times 0": _deformed(0.0),
    },
)

STUDIES = {
    study.name: study
    for study in (
        SKEW,
        OPTIONS,
        BEST,
        LIMITS,
        FIRST_EPOCH,
        ABLATION,
        FASTER,
        NORB_CHANGES,
        INFIMNIST,
    )
}
