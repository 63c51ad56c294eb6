"""Sizes of all the tensors of a function, as its backend traces it."""

import keras


def sizes_of_tensors(function, x):
    """The number of entries of every tensor in the traced function."""
    if keras.backend.backend() == "jax":
        import jax

        return list(sizes_in_jaxpr(jax.make_jaxpr(function)(x).jaxpr))
    import tensorflow as tf

    graph = tf.function(function).get_concrete_function(x).graph
    inner = graph._functions.values() if hasattr(graph, "_functions") else ()
    graphs = [graph, *(f.graph for f in inner if hasattr(f, "graph"))]
    return [
        tensor.shape.num_elements()
        for g in graphs
        for operation in g.get_operations()
        for tensor in operation.outputs
    ]


def sizes_in_jaxpr(jaxpr):
    for equation in jaxpr.eqns:
        for variable in equation.outvars:
            yield variable.aval.size
        for parameter in equation.params.values():
            inner = getattr(parameter, "jaxpr", parameter)
            if hasattr(inner, "eqns"):
                yield from sizes_in_jaxpr(inner)
