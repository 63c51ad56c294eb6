"""What the records of runs and of benchmarks have in common."""

import reprlib
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from reproduction.strict_dataclass import STRICT, Count

# What is shown in a row of a table: no line breaks, bars nor tags.
Text = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f<>|]*$")]


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
