"""The methods of the experiments: the library's, and those without a network.

`METHODS` has them by the names of the command lines, in the order of the
tables.

>>> [name for name, entry in METHODS.items() if not entry.network]
['label-spreading', 'self-training', 'hagr']
"""

from dataclasses import dataclass

from reproduction.methods.terms import (
    GAR,
    HAGR,
    VAT,
    Consistency,
    CrossEntropy,
    EmbedCNN,
    Entropy,
    Graph,
    LabelSpreading,
    MeanTeacher,
    PseudoLabel,
    SafeGAR,
    SelfTraining,
)

__all__ = ["METHODS", "Entry", "name_of"]


@dataclass(frozen=True)
class Entry:
    """A method of the list.

    Attributes:
        title: Its name in tables.
        terms: Its terms, with the settings of every run.
        in_memory: Whether it needs all of X_U in memory.
        steps: How stage 2 steps where it does otherwise than the authors.
    """

    title: str
    terms: tuple
    in_memory: bool = False
    steps: tuple = (("warmup_steps", 0), ("global_clipnorm", 0.0))

    @property
    def network(self):
        """Whether it trains the network of stage 1."""
        return not isinstance(self.terms[0], Graph)


METHODS = {
    "gar": Entry("GAR", (GAR(),)),
    "safe-gar": Entry(
        "GAR, safe default",
        (SafeGAR(), CrossEntropy()),
        steps=(("warmup_steps", None), ("global_clipnorm", 1.0)),
    ),
    "supervised": Entry("Supervised only", (CrossEntropy(),)),
    "entropy": Entry("Entropy minimization", (CrossEntropy(), Entropy())),
    "pseudo-label": Entry("Pseudo-Label", (CrossEntropy(), PseudoLabel())),
    "pi": Entry("Π model", (CrossEntropy(), Consistency())),
    "vat": Entry("VAT", (CrossEntropy(), VAT())),
    "vat-entropy": Entry(
        "VAT + entropy minimization",
        (CrossEntropy(), VAT(), Entropy(of_labeled=True)),
    ),
    "mean-teacher": Entry("Mean Teacher", (CrossEntropy(), MeanTeacher())),
    "embed-cnn": Entry(
        "EmbedCNN", (CrossEntropy(), EmbedCNN()), in_memory=True
    ),
    "label-spreading": Entry(
        "Label spreading", (LabelSpreading(),), in_memory=True
    ),
    "self-training": Entry("Self-training", (SelfTraining(),), in_memory=True),
    "hagr": Entry("HAGR", (HAGR(),), in_memory=True),
}


def name_of(method):
    """The name of a method by the kinds of its terms.

    All with a GAR of the paper's kind, or with an ablation of it, are "gar".

    Example:

    >>> name_of((GAR(balance=0.0), CrossEntropy())), name_of((VAT(),))
    ('gar', 'vat')
    """
    if any(isinstance(term, GAR) for term in method):
        return "gar"
    for name, entry in METHODS.items():
        if [*map(type, entry.terms)] == [*map(type, method)]:
            return name
    return "-".join(type(term).__name__.lower() for term in method)
