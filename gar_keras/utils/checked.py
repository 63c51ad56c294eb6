"""Settings and records that are checked when they are made, by pydantic."""

import functools
import reprlib
import textwrap
from dataclasses import field
from typing import Annotated, Literal, dataclass_transform, get_args

import numpy as np
from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
)
from pydantic.dataclasses import dataclass

from gar_keras.utils.validation import (
    check_choice,
    check_class_prior,
    check_count_or_auto,
)

# No number is taken for another one: neither True for 1 nor "2" for 2.
STRICT = ConfigDict(
    extra="forbid",
    strict=True,
    allow_inf_nan=False,
    use_attribute_docstrings=True,
)

Count = Annotated[int, Field(ge=1)]
Whole = Annotated[int, Field(ge=0)]
Number = Annotated[float, Field(ge=0)]

CountOrAuto = Annotated[
    int | Literal["auto"],
    BeforeValidator(lambda v, info: check_count_or_auto(info.field_name, v)),
]

Precision = Literal["float32", "bfloat16"]
PRECISIONS = get_args(Precision)

# Pydantic's words, and those of the other messages of this package.
_WORDS = {
    "Input should be": "must be",
    "a valid integer": "an integer",
    "a valid number": "a number",
    "greater than or equal to": "at least",
    "less than or equal to": "at most",
    "greater than": "above",
    "less than": "below",
}


@dataclass_transform(
    kw_only_default=True, frozen_default=True, field_specifiers=(field,)
)
def settings(cls):
    """Makes a class of annotated fields a frozen, checked dataclass.

    `dataclasses.replace` and `dataclasses.asdict` take it as any other. NumPy
    numbers become plain ones, so that 2 and NumPy's 2 are the same settings.

    Example:

    >>> @settings
    ... class Point:
    ...     x: int = 0
    >>> Point(x="1")
    Traceback (most recent call last):
    ValueError: x must be an integer. Received: x='1'
    """
    cls._plain = field_validator("*", mode="before")(staticmethod(_plain))
    cls = dataclass(frozen=True, kw_only=True, config=STRICT)(cls)
    checked = cls.__init__

    @functools.wraps(checked)
    def init(self, *args, **kwargs):
        try:
            checked(self, *args, **kwargs)
        except ValidationError as e:
            raise ValueError(in_one_line(e)) from None

    cls.__init__ = init
    return cls


def prior_or(*names):
    """The type of a class prior, or of one of some names in its place."""

    def check(value):
        if isinstance(value, str):
            check_choice("class_prior", value, names)
            return value
        return check_class_prior(value)

    return Annotated[tuple[float, ...] | Literal[names], BeforeValidator(check)]


def documented(kind, names=None):
    """Puts the texts of settings where a docstring says `{settings}`.

    Args:
        kind: A class of settings, with a docstring below each field.
        names: The fields to tell of, in this order; all by default.
    """

    def decorate(cls):
        if cls.__doc__:
            texts = descriptions(kind)
            lines = (
                textwrap.fill(
                    f"{name}: {texts[name]}",
                    width=80,
                    initial_indent=" " * 8,
                    subsequent_indent=" " * 12,
                )
                for name in names or texts
            )
            text = "\n".join(lines).lstrip()
            cls.__doc__ = cls.__doc__.replace("{settings}", text)
        return cls

    return decorate


def descriptions(kind):
    """The texts below the fields of a class of settings, by name."""
    found = {}
    for base in reversed(kind.__mro__):
        for name, info in vars(base).get("__pydantic_fields__", {}).items():
            if info.description:
                found[name] = " ".join(info.description.split())
    return found


def _plain(value):
    return value.item() if isinstance(value, np.generic) else value


def in_one_line(error):
    """What is wrong, of a pydantic `ValidationError`, in one line."""
    errors = error.errors(include_url=False)
    missing = [_name(e) for e in errors if e["type"] == "missing"]
    if missing:
        return f"{', '.join(missing)} missing"
    first = errors[0]
    if "error" in first.get("ctx", {}):
        return str(first["ctx"]["error"])
    text = first["msg"]
    for theirs, ours in _WORDS.items():
        text = text.replace(theirs, ours)
    if first["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        text = "is not known to this version"
    received = reprlib.repr(first["input"])
    return f"{_name(first)} {text}. Received: {_name(first)}={received}"


def _name(error):
    return ".".join(map(str, error["loc"]))
