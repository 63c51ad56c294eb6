"""What `gar_keras.regularize` takes for the terms of a method."""

from dataclasses import asdict

from gar_keras import methods
from gar_keras.layers import GraphActivityRegularization
from reproduction.methods.ablation import ablated
from reproduction.methods.terms import ABLATIONS, GAR


def for_library(method, class_prior):
    """The terms of `gar_keras.methods`, a list, for those of an experiment.

    Args:
        method: A tuple of terms.
        class_prior: The shares that a `GAR` expects; `None` for equal ones.
    """
    made = []
    for term in method:
        settings, name = asdict(term), type(term).__name__
        if not isinstance(term, GAR):
            made.append(getattr(methods, name)(**settings))
            continue
        settings["class_prior"] = class_prior
        # By this name what the layer measures bears no name in front.
        settings["name"] = "graph_activity_regularization"
        if type(term) is GAR:
            layer = GraphActivityRegularization(**settings)
            made.append(methods.GAR(layer=layer))
        for ablation, kind in ABLATIONS.items():
            if type(term) is kind:
                made += ablated(ablation, **settings)
    return made
