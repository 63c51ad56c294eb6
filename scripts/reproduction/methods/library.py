"""What `gar_keras` takes for the terms of a method."""

from dataclasses import asdict

from gar_keras import methods
from gar_keras.layers import GraphActivityRegularization
from reproduction.methods.ablation import ablated
from reproduction.methods.graph import LabelSpreading, SelfTraining
from reproduction.methods.hagr import HAGR
from reproduction.methods.terms import ABLATIONS, GAR, Graph

GRAPH_METHODS = {
    kind.__name__: kind for kind in (LabelSpreading, SelfTraining, HAGR)
}


def for_library(method, class_prior):
    """What `gar_keras.regularize` takes for a method: a list of its terms.

    Of a method without a network it is the object that does it.

    Args:
        method: A tuple of terms.
        class_prior: The shares that a `GAR` expects; `None` for equal ones.
    """
    made = []
    for term in method:
        settings, name = asdict(term), type(term).__name__
        if isinstance(term, Graph):
            return GRAPH_METHODS[name](**settings)
        if not isinstance(term, GAR):
            made.append(getattr(methods, name)(**settings))
            continue
        settings["class_prior"] = class_prior
        # By this name what the layer measures bears no name in front.
        settings["name"] = "graph_activity_regularization"
        ablations = [n for n, kind in ABLATIONS.items() if type(term) is kind]
        if ablations:
            made += ablated(ablations[0], **settings)
        else:
            layer = GraphActivityRegularization(**settings)
            made.append(methods.GAR(layer=layer))
    return made
