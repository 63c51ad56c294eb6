"""GAR and other semi-supervised methods on the same network and labels.

`METHODS` is the one list of them, by the names of `Experiment.method` and of
the command lines, in the order of the tables. Those that train a network go on
where stage 1 ends, with the labels, batches, steps and optimizer of GAR. Their
papers also augment the images or add noise to them; here none does, GAR
included, and the only noise is that of dropout. A method's class is loaded
when the method is first made.

>>> METHODS["entropy"](weight=0.5)
EntropyMinimization(weight=0.5)
>>> [name for name, method in METHODS.items() if not method.network]
['label-spreading', 'self-training', 'hagr']
"""

import importlib
from dataclasses import asdict, dataclass, fields

from gar_keras.utils.validation import check_choice, received

__all__ = ["METHODS", "Entry", "method_of"]


@dataclass(frozen=True)
class Entry:
    """A method of the list. Called, it makes one with the settings given.

    Attributes:
        network: Whether it trains the network of stage 1.
        in_memory: Whether it needs all of X_U in memory.
        set_by_experiment: Whether an experiment has its hyper-parameters,
            rather than the method's own defaults being those of every run.
        can_be_extended: Whether a run of more epochs begins with the same
            epochs.
        terms: Terms of the loss that its curves have, but for those whose
            coefficient is 0.
    """

    title: str
    path: str
    network: bool = True
    in_memory: bool = False
    set_by_experiment: bool = False
    can_be_extended: bool = False
    terms: tuple = ()

    def load(self):
        """The class of the method."""
        module, _, name = self.path.partition(":")
        return getattr(importlib.import_module(f"{__name__}.{module}"), name)

    def settings(self):
        """The hyper-parameters of its own, as JSON has them.

        Without those that each training finds.
        """
        if self.set_by_experiment:
            return {}
        method = self()
        found = {f.name for f in fields(method) if f.metadata.get("found")}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(method).items()
            if name not in found
        }

    def __call__(self, *args, **settings):
        return self.load()(*args, **settings)


def method_of(method, options):
    """A method for stage 2, by its name and a dict of settings, or itself."""
    # It imports this module.
    from gar_keras.methods.base import Method

    names = [name for name, entry in METHODS.items() if entry.network]
    if isinstance(method, str):
        check_choice("method", method, names)
        kind = METHODS[method].load()
        known = [f.name for f in fields(kind) if f.init]
    elif isinstance(method, Method):
        kind, known = type(method), []
    else:
        raise ValueError(
            f"method must be one of {', '.join(names)}, or made of a class "
            "such as gar_keras.SafeGAR. Received: "
            f"{received('method', method)}"
        )
    unknown = sorted(options.keys() - set(known))
    if unknown:
        raise TypeError(
            f"There is no argument {unknown[0]!r}: neither regularize has it, "
            f"nor {kind.__name__}, whose settings are: "
            f"{', '.join(known) or 'none beside a method that is made'}."
        )
    return kind(**options) if isinstance(method, str) else method


METHODS = {
    "gar": Entry(
        "GAR",
        "gar:GAR",
        set_by_experiment=True,
        can_be_extended=True,
        terms=("affinity", "balance"),
    ),
    "safe-gar": Entry("GAR, safe default", "safe_gar:SafeGAR"),
    "supervised": Entry("Supervised only", "supervised:Supervised"),
    "entropy": Entry(
        "Entropy minimization", "entropy_minimization:EntropyMinimization"
    ),
    "pseudo-label": Entry("Pseudo-Label", "pseudo_label:PseudoLabel"),
    "pi": Entry("Π model", "pi_model:PiModel"),
    "vat": Entry("VAT", "vat:VirtualAdversarialTraining"),
    "vat-entropy": Entry(
        "VAT + entropy minimization", "vat:VirtualAdversarialTrainingEntropy"
    ),
    "mean-teacher": Entry("Mean Teacher", "mean_teacher:MeanTeacher"),
    "embed-cnn": Entry("EmbedCNN", "embed_cnn:EmbedCNN", in_memory=True),
    "label-spreading": Entry(
        "Label spreading", "graph:LabelSpreading", network=False, in_memory=True
    ),
    "self-training": Entry(
        "Self-training", "graph:SelfTraining", network=False, in_memory=True
    ),
    "hagr": Entry("HAGR", "hagr:HAGR", network=False, in_memory=True),
}
