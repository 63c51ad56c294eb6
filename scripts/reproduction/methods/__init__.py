"""The methods of the experiments: the library's, and those without a network.

`METHODS` has them by the names of the command lines, in the order of the
tables.

>>> [name for name, entry in METHODS.items() if not entry.network]
['label-spreading', 'self-training', 'hagr']
"""

from dataclasses import dataclass

from reproduction.methods import terms
from reproduction.methods.terms import CrossEntropy, Entropy


@dataclass(frozen=True)
class Entry:
    """A method of the list.

    Attributes:
        title: Its name in tables.
        terms: Its terms, with the settings of every run.
        steps: How stage 2 steps where it does otherwise than the authors.
    """

    title: str
    terms: tuple
    steps: tuple = (("warmup_steps", 0), ("global_clipnorm", 0.0))

    @property
    def network(self):
        """Whether it trains the network of stage 1."""
        return not isinstance(self.terms[0], terms.Graph)


_SUPERVISED = CrossEntropy()

METHODS = {
    "gar": Entry("GAR", (terms.GAR(),)),
    "safe-gar": Entry(
        "GAR, safe default",
        (terms.SafeGAR(), _SUPERVISED),
        steps=(("warmup_steps", None), ("global_clipnorm", 1.0)),
    ),
    "supervised": Entry("Supervised only", (_SUPERVISED,)),
    "entropy": Entry("Entropy minimization", (_SUPERVISED, Entropy())),
    "pseudo-label": Entry("Pseudo-Label", (_SUPERVISED, terms.PseudoLabel())),
    "pi": Entry("Π model", (_SUPERVISED, terms.Consistency())),
    "vat": Entry("VAT", (_SUPERVISED, terms.VAT())),
    "vat-entropy": Entry(
        "VAT + entropy minimization",
        (_SUPERVISED, terms.VAT(), Entropy(of_labeled=True)),
    ),
    "mean-teacher": Entry("Mean Teacher", (_SUPERVISED, terms.MeanTeacher())),
    "embed-cnn": Entry("EmbedCNN", (_SUPERVISED, terms.EmbedCNN())),
    "label-spreading": Entry("Label spreading", (terms.LabelSpreading(),)),
    "self-training": Entry("Self-training", (terms.SelfTraining(),)),
    "hagr": Entry("HAGR", (terms.HAGR(),)),
}


def name_of(method):
    """The name of a method by the kinds of its terms.

    All with a GAR of the paper's kind, or with an ablation of it, are "gar".

    Example:

    >>> name_of((terms.GAR(balance=0.0), CrossEntropy()))
    'gar'
    """
    if any(isinstance(term, terms.GAR) for term in method):
        return "gar"
    for name, entry in METHODS.items():
        if [*map(type, entry.terms)] == [*map(type, method)]:
            return name
    return "-".join(type(term).__name__.lower() for term in method)
