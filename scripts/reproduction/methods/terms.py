"""Terms of a method, as settings: what an experiment and its record have.

A method is a tuple of terms, in the order in which their losses are added.
`reproduction.methods.library` makes of it what `gar_keras.regularize` takes, by
the names of the terms in `gar_keras.methods`, where their settings are told.
Nothing here needs Keras.
"""

from dataclasses import asdict, fields, make_dataclass

# class_prior: the shares of the labelled images, each class counted once more.
PRIOR_OF_LABELS = "labels"

# All terms by their names; `_term` adds to it.
TERMS = {}


def _term(name, *bases, **defaults):
    """A frozen dataclass of settings with these defaults."""
    settings = [(key, object, value) for key, value in defaults.items()]
    made = make_dataclass(name, settings, bases=bases, frozen=True)
    # For pickle, which looks for it there.
    made.__module__ = __name__
    TERMS[name] = made
    return made


# The loss of the paper. A `class_prior` is shares, or `PRIOR_OF_LABELS`.
GAR = _term(
    "GAR",
    affinity=3.0,
    balance=1.0,
    frobenius=1e-6,
    frobenius_of="B",
    balance_of="diagonal",
    class_prior=None,
)

# Its ablations, see `reproduction.methods.library`.
Unrectified = _term("Unrectified", GAR)
Softmax = _term("Softmax", GAR)
Unnormalized = _term("Unnormalized", GAR)
Symmetric = _term("Symmetric", GAR)
FixedAdjacency = _term("FixedAdjacency", GAR)
ABLATIONS = {
    "unrectified": Unrectified,
    "softmax": Softmax,
    "unnormalized": Unnormalized,
    "symmetric": Symmetric,
    "fixed-adjacency": FixedAdjacency,
}

SafeGAR = _term(
    "SafeGAR",
    affinity=3.0,
    balance=1.0,
    frobenius=1e-6,
    class_prior="predicted",
    top_logit=10.0,
    protects_rare_classes=True,
)
CrossEntropy = _term("CrossEntropy", weight=1.0)
Entropy = _term("Entropy", weight=1.0, of_labeled=False)
PseudoLabel = _term("PseudoLabel", weight=3.0, start=0.1, end=0.6)
Consistency = _term(
    "Consistency", weight=100.0, ramp=80 / 300, keeps_dropout=True
)
VAT = _term("VAT", weight=1.0, epsilon=2.5, xi=1.0, iterations=1)
MeanTeacher = _term(
    "MeanTeacher", weight=100.0, ramp=40 / 150, decay_in_ramp=0.99, decay=0.999
)
EmbedCNN = _term("EmbedCNN", weight=1.0, margin=1.0, neighbors=10)

# Methods without a network, see `reproduction.methods.graph`.
Graph = _term("Graph")
# α and k, the image itself among its neighbours; α = 0.99 needs about 2,000
# iterations.
LabelSpreading = _term(
    "LabelSpreading", Graph, alpha=0.99, neighbors=7, iterations=5000
)
SelfTraining = _term("SelfTraining", Graph, threshold=0.75, iterations=1000)
# Anchors of each level, the finest first; s, as in both papers; γ.
HAGR = _term("HAGR", Graph, anchors=(5000, 500), nearest=3, weight=0.01)


def as_json(method):
    """The terms of a method as dicts, for a record.

    Example:

    >>> as_json((CrossEntropy(), Entropy(weight=0.5)))[1]
    {'term': 'Entropy', 'weight': 0.5, 'of_labeled': False}
    """
    return [{"term": type(term).__name__, **asdict(term)} for term in method]


def with_tuples(settings):
    """Settings of a record, whose tuples JSON has made lists."""
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in settings.items()
    }


def from_json(dicts):
    """The method whose terms a record has."""
    made = []
    for settings in map(with_tuples, dicts):
        kind = TERMS[settings.pop("term")]
        made.append(kind(**settings))
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
