"""What the website reads in docstrings as a reader of `help` does."""

import inspect
import pydoc

import griffe


class Docstrings(griffe.Extension):
    """Fills in defaults, and shows examples as code."""

    def on_object(self, *, obj, **_):
        if obj.docstring is None:
            return
        text = obj.docstring.value
        obj.docstring.value = "\n\n".join(map(_shown, text.split("\n\n")))

    def on_function(self, *, func, **_):
        """Defaults as values, not as the names of constants."""
        signature = inspect.signature(pydoc.locate(func.path))
        for name, parameter in signature.parameters.items():
            if parameter.default is not parameter.empty:
                func.parameters[name].default = repr(parameter.default)


def _shown(paragraph):
    """A paragraph of a docstring; an example as code."""
    if paragraph.startswith(">>> "):
        return f"```pycon\n{paragraph.rstrip()}\n```"
    return "**Example**" if paragraph == "Example:" else paragraph
