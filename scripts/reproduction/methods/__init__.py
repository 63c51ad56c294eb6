"""The methods of the experiments: the library's, and those without a network.

`METHODS` has them by the names of `Experiment.method` and of the command lines,
in the order of the tables.

>>> [name for name, entry in METHODS.items() if not entry.network]
['label-spreading', 'self-training', 'hagr']
"""

from dataclasses import asdict, dataclass, fields

from gar_keras import methods
from reproduction.methods.graph import LabelSpreading, SelfTraining
from reproduction.methods.hagr import HAGR

__all__ = ["METHODS", "Entry"]


@dataclass(frozen=True)
class Entry:
    """A method of the list.

    Attributes:
        title: Its name in tables.
        method: Its terms, a list, or the class of one without a network.
        in_memory: Whether it needs all of X_U in memory.
        set_by_experiment: Whether an experiment has its hyper-parameters,
            rather than the method's own defaults being those of every run.
        can_be_extended: Whether a run of more epochs begins with the same
            epochs.
        of_experiment: Hyper-parameters that an experiment has, where the
            others are the method's own.
        terms: Terms of the loss that its curves have, but for those whose
            coefficient is 0.
    """

    title: str
    method: list | type
    in_memory: bool = False
    set_by_experiment: bool = False
    can_be_extended: bool = False
    of_experiment: tuple = ()
    terms: tuple = ()

    @property
    def network(self):
        """Whether it trains the network of stage 1."""
        return isinstance(self.method, list)

    def settings(self):
        """The hyper-parameters of its own, as JSON has them.

        Without those that each training finds or an experiment has.
        """
        if self.set_by_experiment:
            return {}
        if not self.network:
            return {
                name: list(value) if isinstance(value, tuple) else value
                for name, value in asdict(self.method()).items()
            }
        return {
            f"{term.name}.{f.name}": getattr(term, f.name)
            for term in self.method
            for f in fields(term)
            if not f.metadata.get("found") and f.name not in self.of_experiment
        }


# What the tables say of the library's methods.
_OF_LIBRARY = {
    "gar": {
        "title": "GAR",
        "set_by_experiment": True,
        "can_be_extended": True,
        "terms": ("affinity", "balance"),
    },
    "safe-gar": {
        "title": "GAR, safe default",
        "of_experiment": ("protects_rare_classes",),
    },
    "supervised": {"title": "Supervised only"},
    "entropy": {"title": "Entropy minimization"},
    "pseudo-label": {"title": "Pseudo-Label"},
    "pi": {"title": "Π model"},
    "vat": {"title": "VAT"},
    "vat-entropy": {"title": "VAT + entropy minimization"},
    "mean-teacher": {"title": "Mean Teacher"},
    "embed-cnn": {"title": "EmbedCNN", "in_memory": True},
}

METHODS = {
    **{
        name: Entry(method=method, **_OF_LIBRARY.get(name, {"title": name}))
        for name, method in methods.METHODS.items()
    },
    "label-spreading": Entry("Label spreading", LabelSpreading, in_memory=True),
    "self-training": Entry("Self-training", SelfTraining, in_memory=True),
    "hagr": Entry("HAGR", HAGR, in_memory=True),
}
