"""What all configuration shares: checked at the border, unknown keys answered with the nearest known one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from math import inf
from typing import Annotated, Any, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails

from fogscale.errors import FogscaleError, unknown

_SECONDS = {"ms": 1e-3, "s": 1.0, "sec": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def seconds_of(value: Any) -> Any:
    """A duration: a number of seconds, or a text such as '2 min'."""
    if not isinstance(value, str):
        return value
    match = re.fullmatch(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([a-zA-Zµ]*)\s*", value)
    if match is None:
        raise ValueError(f"'{value}' is not a duration: write a number of seconds or e.g. '2 min'")
    number, unit = match.groups()
    if unit and unit not in _SECONDS:
        raise ValueError(unknown("unit", unit, _SECONDS))
    return float(number) * _SECONDS[unit or "s"]


LONGEST_S = 1e9  # three decades
Seconds = Annotated[float, BeforeValidator(seconds_of), Field(ge=0, le=LONGEST_S)]
PositiveSeconds = Annotated[float, BeforeValidator(seconds_of), Field(gt=0, le=LONGEST_S)]
Ratio = Annotated[float, Field(ge=0, le=1)]


LARGEST, SMALLEST = 1e15, 1e-15  # sums and products of settings stay far from what a float can hold
LONGEST_TEXT = 10_000  # characters
LONGEST_NAME_BYTES = 120  # as part of a path: file systems take 255 bytes, and something is put around it


def _problem_of_extent(value: Any) -> str | None:
    """None for a number that arithmetic can do something with, and for a text that a line can hold."""
    if isinstance(value, (int, float)) and value != 0 and not SMALLEST <= abs(value) <= LARGEST:
        if value != value or value in (inf, -inf):
            return "give a finite number"
        return f"{_shortened(value)} is too {'large' if abs(value) > 1 else 'small'} a number"
    if isinstance(value, str):
        if len(value) > LONGEST_TEXT:
            return f"a text of {len(value)} characters is too long: at most {LONGEST_TEXT}"
        if "\x00" in value:
            return "a text with a NUL character: remove it"
    return None


def _check_extents(value: Any, place: str) -> None:
    """Of all that a value holds, such as the parameters of a policy; the error names the place."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            if key != "learned":  # what a policy has saved of itself may be as small as it likes
                _check_extents(key, place)
                _check_extents(below, f"{place}.{key}"[-200:])
    elif isinstance(value, (list, tuple)):
        for number, below in enumerate(value):
            _check_extents(below, f"{place}.{number}")
    elif (problem := _problem_of_extent(value)) is not None:
        raise ValueError(f"{place}: {problem}")


def _shortened(value: float) -> str:
    return f"{value:g}" if abs(value) < 1e300 else f"a number of {len(str(int(abs(value))))} digits"


def name_of(value: Any) -> Any:
    """A name that may stand in a line, and where it becomes a folder, in a path."""
    if isinstance(value, str):
        if not value.strip() or not value.isprintable():
            raise ValueError(f"{value[:50]!r} is no name: use letters, digits and signs that can be printed")
        if len(value.encode("utf-8", "replace")) > LONGEST_NAME_BYTES:
            raise ValueError(f"a name of {len(value)} characters is too long: {value[:30]}…")
    return value


Name = Annotated[str, BeforeValidator(name_of)]


class Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, validate_default=True)

    @model_validator(mode="before")
    @classmethod
    def _suggest_known_keys(cls, values: Any) -> Any:
        if isinstance(values, Mapping):
            for key in values:
                if key not in cls.model_fields:
                    raise ValueError(unknown("key", str(key)[:100], cls.model_fields))
        return values

    @model_validator(mode="before")
    @classmethod
    def _within_extent(cls, values: Any) -> Any:
        if isinstance(values, Mapping):
            for key, value in values.items():
                if isinstance(value, bool) and not _takes_truth_values(cls, key):
                    raise ValueError(f"{key}: {str(value).lower()} is neither a number nor a text: give one")
                if key != "learned":
                    _check_extents(value, str(key))
        return values


@cache
def _takes_truth_values(settings: type[Settings], field: str) -> bool:
    if field not in settings.model_fields:
        return True  # that it is not known is the greater mistake
    annotation = settings.model_fields[field].annotation
    return annotation is Any or "bool" in repr(annotation)


def _suggestion(problem: ErrorDetails) -> str | None:
    """For a word that is none of a few known ones (a law, a style, a kind of fault): the nearest of them."""
    context = problem.get("ctx", {})
    if problem["type"] == "literal_error" and isinstance(problem["input"], str):
        kind, word, known = str(problem["loc"][-1]), problem["input"], context["expected"]
    elif problem["type"] == "union_tag_invalid":
        kind, word, known = context["discriminator"].strip("'"), context["tag"], context["expected_tags"]
    else:
        return None
    return unknown(kind, word, re.findall(r"'([^']*)'", known))


def one_line(error: ValidationError) -> str:
    """The first problem of a validation, with the path to it."""
    first, *others = error.errors()
    if _is_type(first["loc"][-1:]):  # a value of one of several types, not of this: of which it is nearly?
        above = first["loc"][:-1]
        near = (each for each in others if each["loc"][: len(above)] == above)
        first = next((each for each in near if not _is_type(each["loc"][-1:])), first)
    where = ".".join(str(part) for part in first["loc"] if not _is_type((part,)))
    message = _suggestion(first) or first["msg"].removeprefix("Value error, ")
    return f"{where}: {message}" if where else message


def _is_type(last: tuple[str | int, ...]) -> bool:
    """Whether that is how pydantic writes a type, such as tuple[str, ...]: no part of a path in a file."""
    return bool(last) and "[" in str(last[0]) and str(last[0]) != "[key]"


_S = TypeVar("_S", bound=Settings)


def validated(settings: type[_S], values: Any, origin: str) -> _S:
    try:
        return settings.model_validate(values)
    except ValidationError as error:
        raise FogscaleError(f"{origin}: {one_line(error)}") from error
