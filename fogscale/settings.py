"""What all configuration shares: checked at the border, unknown keys answered with the nearest known one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
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


Seconds = Annotated[float, BeforeValidator(seconds_of), Field(ge=0)]
PositiveSeconds = Annotated[float, BeforeValidator(seconds_of), Field(gt=0)]
Ratio = Annotated[float, Field(ge=0, le=1)]


class Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, validate_default=True)

    @model_validator(mode="before")
    @classmethod
    def _suggest_known_keys(cls, values: Any) -> Any:
        if isinstance(values, Mapping):
            for key in values:
                if key not in cls.model_fields:
                    raise ValueError(unknown("key", str(key), cls.model_fields))
        return values


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
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    message = _suggestion(first) or first["msg"].removeprefix("Value error, ")
    return f"{where}: {message}" if where else message


_S = TypeVar("_S", bound=Settings)


def validated(settings: type[_S], values: Any, origin: str) -> _S:
    try:
        return settings.model_validate(values)
    except ValidationError as error:
        raise FogscaleError(f"{origin}: {one_line(error)}") from error
