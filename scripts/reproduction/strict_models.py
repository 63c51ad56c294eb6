"""Settings and records that are checked when they are made, by pydantic."""

import functools
import reprlib
from dataclasses import field
from typing import Annotated, dataclass_transform

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
)
from pydantic.dataclasses import dataclass

# No number is taken for another one: neither True for 1 nor "2" for 2.
STRICT = ConfigDict(
    extra="forbid",
    strict=True,
    allow_inf_nan=False,
    # What goes by another name in records is told by its own.
    populate_by_name=True,
    loc_by_alias=False,
)

Count = Annotated[int, Field(ge=1)]
Whole = Annotated[int, Field(ge=0)]
Number = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
# What is shown in a row of a table: no line breaks, bars nor tags.
Text = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f<>|]*$")]


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


class Part(BaseModel):
    """A part of a record, of which all is checked."""

    model_config = ConfigDict(**STRICT, frozen=True)


class Environment(Part):
    """What a run was made on; `environment.describe` has more than this."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Text | int | None] = Field(init=False)

    device: Text
    cores: Count | None


def check(right, wanted, received):
    if not right:
        received = reprlib.repr(received)
        raise ValueError(f"{wanted} is wanted. Received: {received}")


def check_same(name, received, expected):
    wanted = f"{name}: {reprlib.repr(expected)}, by the rest of the record,"
    check(received == expected, wanted, received)
