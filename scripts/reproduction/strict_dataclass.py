"""Settings and records that are checked when they are made, by pydantic."""

import functools
import reprlib
from dataclasses import field
from typing import Annotated, dataclass_transform

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass

# No number is taken for another one: neither True for 1 nor "2" for 2.
STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

Count = Annotated[int, Field(ge=1)]
Whole = Annotated[int, Field(ge=0)]
Number = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]


@dataclass_transform(
    kw_only_default=True, frozen_default=True, field_specifiers=(field,)
)
def settings(cls):
    """Makes a class of annotated fields a frozen, checked dataclass.

    `dataclasses.replace` and `dataclasses.asdict` take it as any other.

    Example:

    >>> @settings
    ... class Point:
    ...     x: int = 0
    >>> Point(x="1")
    Traceback (most recent call last):
    ValueError: x must be a valid integer. Received: x='1'
    """
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


def or_dict(kind):
    """Lets a dict, as JSON has it, stand for settings of a kind."""
    return BeforeValidator(
        lambda value: kind(**value) if isinstance(value, dict) else value
    )


def in_one_line(error):
    """What is wrong, of a pydantic `ValidationError`, in one line."""
    first = error.errors(include_url=False)[0]
    if "error" in first.get("ctx", {}):
        return str(first["ctx"]["error"])
    name = ".".join(map(str, first["loc"]))
    text = first["msg"].replace("Input should be", "must be")
    return f"{name} {text}. Received: {name}={reprlib.repr(first['input'])}"
