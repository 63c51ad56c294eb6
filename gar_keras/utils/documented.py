"""Docstrings that tell of arguments which another class has."""


def documented(*kinds):
    """Puts the arguments of other classes where a docstring says `{settings}`.

    Args:
        *kinds: Classes whose docstrings have a block of `Args:`.
    """

    def decorate(cls):
        # Under `python -OO` there are none.
        if cls.__doc__:
            text = "\n".join(map(_arguments, kinds)).lstrip()
            cls.__doc__ = cls.__doc__.replace("{settings}", text)
        return cls

    return decorate


def _arguments(kind):
    """The block of `Args:` of a docstring."""
    return kind.__doc__.partition("Args:\n")[2].partition("\n\n")[0]
