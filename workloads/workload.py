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
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError, validate_call

from controller.errors import FogscaleError, unknown
from workloads.profile import RateProfile
from workloads.replay import ReplaySettings


@dataclass(frozen=True)
class Workload:
    profile: RateProfile
    replay: ReplaySettings = field(default_factory=ReplaySettings)

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

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        return MappingProxyType(inspect.signature(self.build).parameters)

    def load(self, **parameters: Any) -> Workload:
        self._check_names(parameters)
        try:
            return validate_call(self.build)(**parameters)
        except ValidationError as error:
            first = error.errors()[0]
            raise FogscaleError(
                f"workload '{self.name}': parameter '{first['loc'][0]}' is {first['input']!r}: {first['msg']}"
            ) from error

    def _check_names(self, given: Mapping[str, Any]) -> None:
        for name in given:
            if name not in self.parameters:
                raise FogscaleError(f"workload '{self.name}': {unknown('parameter', name, self.parameters)}")
        for name, parameter in self.parameters.items():
            if parameter.default is parameter.empty and name not in given:
                raise FogscaleError(f"workload '{self.name}' needs the parameter '{name}': add {name}=…")


def register(name: str) -> Callable[[Callable[..., Workload]], Definition]:
    """Declares the function below it as the workload of that name."""
    return lambda build: Definition(name, build)
