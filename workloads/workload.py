"""What a workload is: a rate profile and how it is replayed unless the experiment says otherwise.

One file in workloads/traces/ declares one or more of them:

    @register("flat")
    def flat(rate_per_s: float = 100.0, span_s: float = 3600.0) -> Workload:
        "The same rate all the time."
        return Workload(RateProfile("flat", "generated", np.array([rate_per_s * span_s]), span_s))

The function's arguments are the workload's parameters. Discovery imports every file there, so heavy imports
(Spark, Kafka) belong inside the functions that need them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import isclose
from types import MappingProxyType
from typing import Any

from pydantic import ConfigDict, ValidationError, validate_call

from fogscale.errors import FogscaleError, Interrupted, unknown
from fogscale.plugins import in_short
from workloads.excerpts import Excerpt
from workloads.profile import RateProfile
from workloads.replay import ReplaySettings


@dataclass(frozen=True)
class Workload:
    """A load for the job's source or, where `inputs` names operators, one of its own for each of them."""

    profile: RateProfile  # of all records together
    replay: ReplaySettings = field(default_factory=ReplaySettings)
    records: str | None = "taxi_ride"  # the format unless told otherwise; None where its parts have several
    inputs: Mapping[str, RateProfile] = field(default_factory=dict)  # by operator
    excerpts: tuple[Excerpt, ...] = ()  # the rows of imported traces that its records are

    def __post_init__(self) -> None:
        for operator, profile in self.inputs.items():
            if not isclose(profile.span_s, self.profile.span_s):
                raise FogscaleError(
                    f"workload '{self.name}': operator '{operator}' is driven for {profile.span_s:g} s, the"
                    f" whole for {self.profile.span_s:g} s: let all last equally long"
                )

    @property
    def name(self) -> str:
        return self.profile.name


@dataclass(frozen=True)
class Definition:
    """A workload that can be built by name, with parameters."""

    name: str
    build: Callable[..., Workload]

    @property
    def summary(self) -> str:
        return (inspect.getdoc(self.build) or "").partition("\n")[0]

    @cached_property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        return MappingProxyType(inspect.signature(self.build).parameters)

    @property
    def needs(self) -> tuple[str, ...]:
        """The parameters without which it cannot be built."""
        return tuple(
            name for name, parameter in self.parameters.items() if parameter.default is parameter.empty
        )

    def load(self, **parameters: Any) -> Workload:
        self._check_names(parameters)
        try:
            made = self._checked_build(**parameters)
            if not isinstance(made, Workload):
                raise TypeError(f"it gives a {type(made).__name__} and no Workload")
            return made
        except ValidationError as error:
            first = error.errors()[0]
            message = first["msg"].removeprefix("Value error, ")
            raise FogscaleError(
                f"workload '{self.name}': parameter '{first['loc'][0]}' is {first['input']!r}: {message}"
            ) from error
        except (FogscaleError, Interrupted, KeyboardInterrupt):
            raise
        except BaseException as error:  # somebody's file can fail in any way
            raise FogscaleError(
                f"workload '{self.name}' of {self.build.__module__} cannot be made ({in_short(error)}): give"
                " other parameters, or fix it"
            ) from error

    @cached_property
    def _checked_build(self) -> Callable[..., Workload]:
        """Made once: that takes longer than most workloads."""
        return validate_call(config=ConfigDict(allow_inf_nan=False))(self.build)

    def _check_names(self, given: Mapping[str, Any]) -> None:
        for name in given:
            if name not in self.parameters:
                raise FogscaleError(f"workload '{self.name}': {unknown('parameter', name, self.parameters)}")
        for name in self.needs:
            if name not in given:
                raise FogscaleError(f"workload '{self.name}' needs the parameter '{name}': add {name}=…")


def register(name: str) -> Callable[[Callable[..., Workload]], Definition]:
    """Declares the function below it as the workload of that name."""
    return lambda build: Definition(name, build)
