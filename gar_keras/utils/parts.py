"""Examples of one input, or of several: a dict or tuple of arrays."""

import numpy as np


def parts(x):
    """The inputs of some examples: `[x]`, or those of a dict or tuple.

    Example:

    >>> parts(3), parts({"a": 3, "b": 4}), parts((3, 4))
    ([3], [3, 4], [3, 4])
    """
    if isinstance(x, dict):
        return list(x.values())
    return list(x) if isinstance(x, tuple) else [x]


def has_parts(x):
    """Whether examples have several inputs, in a dict or tuple."""
    return isinstance(x, dict | tuple)


def with_parts(x, new):
    """The same structure with other inputs, in the order of `parts`."""
    if isinstance(x, dict):
        return dict(zip(x, new, strict=True))
    return tuple(new) if isinstance(x, tuple) else new[0]


def map_parts(function, x, *others):
    """`function` of each input, and of those of others of one structure.

    Example:

    >>> map_parts(lambda a, b: a - b, {"a": 5, "b": 7}, {"b": 2, "a": 1})
    {'a': 4, 'b': 5}
    """
    ordered = [
        [other[key] for key in x] if isinstance(x, dict) else parts(other)
        for other in others
    ]
    return with_parts(x, list(map(function, parts(x), *ordered)))


def keys_of_parts(x):
    """The keys of several inputs; `None` for one input.

    Example:

    >>> keys_of_parts({"a": 3}), keys_of_parts((3, 4)), keys_of_parts(3)
    (['a'], [0, 1], None)
    """
    if isinstance(x, dict):
        return list(x)
    return list(range(len(x))) if isinstance(x, tuple) else None


def have_same_parts(x, other):
    """Whether both have one input, or several of the same keys."""
    keys, others = keys_of_parts(x), keys_of_parts(other)
    if keys is None or others is None:
        return keys is others
    return set(keys) == set(others)


def names_of_parts(name, x):
    """What messages call the inputs of an argument.

    Example:

    >>> names_of_parts("x", {"a": 3}), names_of_parts("x", 3)
    (["x['a']"], ['x'])
    """
    keys = keys_of_parts(x)
    return [name] if keys is None else [f"{name}[{key!r}]" for key in keys]


def num_examples(x):
    """How many examples there are.

    Example:

    >>> num_examples({"a": np.zeros((3, 2)), "b": np.zeros((3, 4))})
    3
    """
    return len(parts(x)[0])


def concatenated(*several):
    """Examples behind one another, in memory."""
    return map_parts(lambda *arrays: np.concatenate(arrays), *several)
