"""GAR and other semi-supervised methods on the same network and labels.

A method is a list of terms. `METHODS` has those with a name, which `regularize`
takes as `method`. All go on where stage 1 ends, with the labels, batches and
steps of GAR, and without the augmentation of their papers.

>>> METHODS["entropy"]
[CrossEntropy(weight=1.0), Entropy(weight=1.0, of_labeled=False)]
"""

from dataclasses import fields, replace

from gar_keras.methods.base import GAR, CrossEntropy, Term
from gar_keras.methods.consistency import Consistency
from gar_keras.methods.embed_cnn import EmbedCNN
from gar_keras.methods.entropy import Entropy
from gar_keras.methods.mean_teacher import MeanTeacher
from gar_keras.methods.pseudo_label import PseudoLabel
from gar_keras.methods.safe_gar import SafeGAR
from gar_keras.methods.vat import VAT
from gar_keras.utils.validation import check_choice, received

__all__ = ["METHODS", "Term", "method_of"]

METHODS = {
    "gar": [GAR()],
    "safe-gar": [SafeGAR(), CrossEntropy()],
    "supervised": [CrossEntropy()],
    "entropy": [CrossEntropy(), Entropy()],
    "pseudo-label": [CrossEntropy(), PseudoLabel()],
    "pi": [CrossEntropy(), Consistency()],
    "vat": [CrossEntropy(), VAT()],
    "vat-entropy": [CrossEntropy(), VAT(), Entropy(of_labeled=True)],
    "mean-teacher": [CrossEntropy(), MeanTeacher()],
    "embed-cnn": [CrossEntropy(), EmbedCNN()],
}


def method_of(method, settings):
    """The terms of a method: of its name with a dict of settings, or a list.

    A setting is a field of the first term that has it, or the weight of a term
    by its name; that of the labels goes by its name alone, `supervised`.

    >>> method_of("vat", {"epsilon": 1.0, "supervised": 0.5})[0]
    CrossEntropy(weight=0.5)
    """
    if isinstance(method, str):
        check_choice("method", method, METHODS)
        return _with_settings(method, settings)
    is_list = isinstance(method, list | tuple) and len(method) > 0
    if not is_list or not all(isinstance(term, Term) for term in method):
        raise ValueError(
            f"method must be one of {', '.join(METHODS)}, or a list of terms "
            "such as [gar_keras.SafeGAR(), gar_keras.CrossEntropy()], which "
            "learns the labels by the second. Received: "
            f"{received('method', method)}"
        )
    names = [term.name for term in method]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        both = [type(t).__name__ for t in method if t.name == twice]
        raise ValueError(
            "Each term of a method needs a name of its own in the history. "
            f"Received: {' and '.join(both)}, of the name {twice!r}. Take one."
        )
    if settings:
        raise TypeError(
            "A list of terms has its settings in the terms. Received: "
            f"{min(settings)} beside the list."
        )
    return list(method)


def _with_settings(name, settings):
    """The terms of a name in `METHODS`, with other settings."""
    terms = list(METHODS[name])
    known = {}
    for i, term in enumerate(terms):
        if not isinstance(term, CrossEntropy):
            for field in fields(term):
                known.setdefault(field.name, (i, field.name))
    for i, term in enumerate(terms):
        known.setdefault(term.name, (i, "weight"))
    unknown = sorted(settings.keys() - known.keys())
    if unknown:
        raise TypeError(
            f"There is no argument {unknown[0]!r}: neither regularize has it, "
            f"nor method={name!r}, whose settings are: {', '.join(known)}."
        )
    for setting, value in settings.items():
        i, field = known[setting]
        terms[i] = replace(terms[i], **{field: value})
    return terms
