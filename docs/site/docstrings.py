"""What the website reads in docstrings as a reader of `help` does."""

import griffe

from gar_keras.classification.settings import FitSettings
from gar_keras.methods.options import GAROptions
from gar_keras.utils.checked import descriptions

# Whose texts stand for `{settings}`: see `gar_keras.utils.checked.documented`.
SETTINGS = {"ExtendedGAR": GAROptions, "GARClassifier": FitSettings}


class Docstrings(griffe.Extension):
    """Fills in the texts of settings, and shows examples as code."""

    def on_object(self, *, obj, **_):
        if obj.docstring is None:
            return
        text = obj.docstring.value
        if obj.name in SETTINGS:
            found = descriptions(SETTINGS[obj.name])
            lines = (f"{name}: {told}" for name, told in found.items())
            text = text.replace("{settings}", "\n    ".join(lines))
        obj.docstring.value = "\n\n".join(map(_shown, text.split("\n\n")))


def _shown(paragraph):
    """A paragraph of a docstring; an example as code."""
    if paragraph.startswith(">>> "):
        return f"```pycon\n{paragraph.rstrip()}\n```"
    return "**Example**" if paragraph == "Example:" else paragraph
