"""Terms of a method, as settings: what an experiment and its record have.

A method is a tuple of terms, in the order in which their losses are added.
`reproduction.methods.library` makes of it what `gar_keras.regularize` takes.
Nothing here needs Keras.
"""

from dataclasses import asdict, dataclass, fields

# class_prior: the shares of the labelled images, each class counted once more.
PRIOR_OF_LABELS = "labels"


@dataclass(frozen=True)
class GAR:
    """`U(B)`, the loss of the paper."""

    affinity: float = 3.0
    balance: float = 1.0
    frobenius: float = 1e-6
    frobenius_of: str = "B"
    balance_of: str = "diagonal"
    class_prior: tuple | str | None = None


class Unrectified(GAR):
    """GAR of `B = Z`; this and the next four are ablations."""


class Softmax(GAR):
    """GAR of `B = softmax(Z)`."""


class Unnormalized(GAR):
    """GAR whose affinity has no denominator."""


class Symmetric(GAR):
    """GAR with the terms of `max(0, -Z)` added."""


class FixedAdjacency(GAR):
    """GAR with the adjacency of stage 1 in the affinity's place."""


# By the names of `reproduction.methods.ablation`.
ABLATIONS = {
    "unrectified": Unrectified,
    "softmax": Softmax,
    "unnormalized": Unnormalized,
    "symmetric": Symmetric,
    "fixed-adjacency": FixedAdjacency,
}


@dataclass(frozen=True)
class SafeGAR:
    """GAR set up by what the pretrained network predicts."""

    affinity: float = 3.0
    balance: float = 1.0
    frobenius: float = 1e-6
    class_prior: tuple | str | None = "predicted"
    top_logit: float = 10.0
    protects_rare_classes: bool = True


@dataclass(frozen=True)
class CrossEntropy:
    """Cross-entropy of the labelled images of a batch."""

    weight: float = 1.0


@dataclass(frozen=True)
class Entropy:
    """Entropy of the predictions for unlabelled images, or for all."""

    weight: float = 1.0
    of_labeled: bool = False


@dataclass(frozen=True)
class PseudoLabel:
    """Cross-entropy with the network's own labels."""

    weight: float = 3.0
    start: float = 0.1
    end: float = 0.6


@dataclass(frozen=True)
class Consistency:
    """Squared distance of two predictions; no ramp-up for `ramp=0`."""

    weight: float = 100.0
    ramp: float = 80 / 300
    keeps_dropout: bool = True


@dataclass(frozen=True)
class VAT:
    """The virtual adversarial loss."""

    weight: float = 1.0
    epsilon: float = 2.5
    xi: float = 1.0
    iterations: int = 1


@dataclass(frozen=True)
class MeanTeacher:
    """Squared distance to the predictions of an average of the network."""

    weight: float = 100.0
    ramp: float = 40 / 150
    decay_in_ramp: float = 0.99
    decay: float = 0.999


@dataclass(frozen=True)
class EmbedCNN:
    """The margin loss on a graph of nearest neighbours."""

    weight: float = 1.0
    margin: float = 1.0
    neighbors: int = 10


class Graph:
    """A method without a network, see `reproduction.methods.graph`."""


@dataclass(frozen=True)
class LabelSpreading(Graph):
    """Labels spread over a graph of nearest neighbours."""

    # α, how much an image takes from its neighbours, as in its paper.
    alpha: float = 0.99
    # k, the image itself among them, scikit-learn's default.
    neighbors: int = 7
    # At most; α = 0.99 needs about 2,000.
    iterations: int = 5000


@dataclass(frozen=True)
class SelfTraining(Graph):
    """A linear classifier that labels what it is sure of, and learns from it.

    With scikit-learn's defaults.
    """

    threshold: float = 0.75
    iterations: int = 1000


@dataclass(frozen=True)
class HAGR(Graph):
    """The hierarchical anchor graph of the paper's own baseline."""

    # Of each level, the finest first.
    anchors: tuple = (5000, 500)
    # s, as in both papers, and γ, the weight of smoothness.
    nearest: int = 3
    weight: float = 0.01


TERMS = {
    kind.__name__: kind
    for kind in (
        *(GAR, *ABLATIONS.values(), SafeGAR, CrossEntropy, Entropy),
        *(PseudoLabel, Consistency, VAT, MeanTeacher, EmbedCNN),
        *(LabelSpreading, SelfTraining, HAGR),
    )
}


def as_json(method):
    """The terms of a method as dicts, for a record.

    Example:

    >>> as_json((CrossEntropy(), Entropy(weight=0.5)))[1]
    {'term': 'Entropy', 'weight': 0.5, 'of_labeled': False}
    """
    return [{"term": type(term).__name__, **asdict(term)} for term in method]


def from_json(dicts):
    """The method whose terms a record has."""
    made = []
    for settings in dicts:
        given = {k: v for k, v in settings.items() if k != "term"}
        for name, value in given.items():
            if isinstance(value, list):
                given[name] = tuple(value)
        made.append(TERMS[settings["term"]](**given))
    return tuple(made)


def settings_of(method):
    """The settings of a method by name, as tables and `index.csv` have them.

    Those of GAR go by their own names, the weight of the cross-entropy is
    `supervised`, and what else a term has is behind the name of the term.

    Example:

    >>> settings_of((CrossEntropy(), VAT(xi=0.5)))["vat_xi"]
    0.5
    """
    found = {}
    for term in method:
        kind = type(term).__name__
        for field in fields(term):
            name, value = field.name, getattr(term, field.name)
            if kind == "CrossEntropy":
                name = "supervised"
            elif not isinstance(term, GAR | SafeGAR):
                name = f"{kind.lower()}_{name}"
            found[name] = value
        for name, ablation in ABLATIONS.items():
            if type(term) is ablation:
                found["ablation"] = name
    return found
