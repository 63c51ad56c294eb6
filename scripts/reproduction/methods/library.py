"""What `gar_keras` takes for the terms of a method."""

from dataclasses import asdict

from gar_keras import methods
from gar_keras.layers import GraphActivityRegularization
from gar_keras.methods.gar import GAR as PlainGAR
from gar_keras.methods.gar import ExtendedGAR
from reproduction.methods.ablation import ablated
from reproduction.methods.graph import LabelSpreading, SelfTraining
from reproduction.methods.hagr import HAGR
from reproduction.methods.terms import (
    ABLATIONS,
    GAR,
    VAT,
    Consistency,
    CrossEntropy,
    EmbedCNN,
    Entropy,
    Graph,
    MeanTeacher,
    PseudoLabel,
    SafeGAR,
)

GRAPH_METHODS = (LabelSpreading, SelfTraining, HAGR)


def for_library(method, class_prior, shift, affine):
    """What `gar_keras.regularize` takes for a method.

    Args:
        method: A tuple of terms.
        class_prior: The shares that a `GAR` expects; `None` for equal ones.
        shift, affine: Augmentation in stage 2.
    """
    by_kind = {type(term): term for term in method}
    first = method[0]
    if isinstance(first, Graph):
        kinds = {kind.__name__: kind for kind in GRAPH_METHODS}
        return kinds[type(first).__name__](**asdict(first))
    if isinstance(first, GAR):
        return _of_gar(first, method[1:], class_prior, shift, affine)
    if isinstance(first, SafeGAR):
        weight = by_kind[CrossEntropy].weight
        return methods.SafeGAR(supervised=weight, **asdict(first))
    others = [term for term in method if term != CrossEntropy()]
    if not others:
        return methods.METHODS["supervised"]()
    names = {
        (Entropy,): "entropy",
        (PseudoLabel,): "pseudo-label",
        (Consistency,): "pi",
        (VAT,): "vat",
        (VAT, Entropy): "vat-entropy",
        (MeanTeacher,): "mean-teacher",
        (EmbedCNN,): "embed-cnn",
    }
    name = names.get(tuple(type(term) for term in others))
    if name is None or shift or affine or CrossEntropy() not in method:
        raise ValueError(
            "gar_keras has no method of these terms yet. Received: "
            f"method={method}, shift={shift}, affine={affine}"
        )
    settings = asdict(others[0])
    settings.pop("of_labeled", None)
    if name == "vat-entropy":
        settings["entropy"] = others[1].weight
    return methods.METHODS[name](**settings)


def _of_gar(gar, others, class_prior, shift, affine):
    options = asdict(gar) | {"class_prior": class_prior}
    for name, kind in ABLATIONS.items():
        if type(gar) is kind:
            return ablated(name, **options)
    layer = GraphActivityRegularization(**options)
    added = {"shift": shift, "affine": affine}
    for term in others:
        if isinstance(term, CrossEntropy):
            added["supervised"] = term.weight
        elif isinstance(term, Consistency) and not term.ramp:
            added["consistency"] = term.weight
        elif term == VAT(term.weight):
            added["vat"] = term.weight
        else:
            raise ValueError(
                "gar_keras has no such term beside GAR yet. Received: "
                f"method={(gar, *others)}"
            )
    return (
        ExtendedGAR(layer, **added) if any(added.values()) else PlainGAR(layer)
    )
