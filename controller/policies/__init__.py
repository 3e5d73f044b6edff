"""Autoscalers: one file = one policy, its stem is the name; a policy of several files is a folder instead.

A file dropped into this folder is found by itself; another package publishes a policy through the entry
point group `fogscale.policies` (name = "package.module", a module that registers it).
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import partial
from typing import Any, TypeVar, get_type_hints

import msgspec
from numpy.random import Generator

from controller.contract import Policy
from controller.model import Topology
from fogscale.errors import FogscaleError, unknown
from fogscale.plugins import Candidate, Registry

_Class = TypeVar("_Class", bound=type)
_Learned = TypeVar("_Learned")


def _own() -> Iterator[Candidate]:
    """The files and folders here; what begins with an underscore is shared by several."""
    for module in pkgutil.iter_modules(__path__, prefix=f"{__name__}."):
        name = module.name.rpartition(".")[2]
        if not name.startswith("_"):
            yield Candidate(name, module.name, partial(importlib.import_module, module.name))


registry: Registry[type[Any]] = Registry("policy", "policies", "fogscale.policies", _own)
names, broken, policy_class, not_there = registry.names, registry.broken, registry.get, registry.why_not


def register(name: str) -> Callable[[_Class], _Class]:
    """Makes the dataclass below it the policy of that name."""

    def remember(policy_class: _Class) -> _Class:
        registry.add(name, policy_class, policy_class.__module__)
        return policy_class

    return remember


def parameter(default: Any, description: str, at_least: float | None = None) -> Any:
    """A dataclass field that `fogscale policies` can explain, and that is checked when given."""
    metadata = {"description": description, "at_least": at_least}
    if isinstance(default, (dict, list)):
        return field(default_factory=lambda: default.copy(), metadata=metadata)
    return field(default=default, metadata=metadata)


class MemorylessPolicy:
    """A base for policies that keep nothing between decisions."""

    def start(self, topology: Topology, rng: Generator) -> None:
        """Nothing to prepare."""


def of_script() -> dict[str, type[Any]]:
    """Those that the running script registered itself: no other process finds them by importing."""
    return {name: cls for name, cls in registry.registered.items() if cls.__module__ == "__main__"}


def create(name: str, parameters: Mapping[str, Any] | None = None) -> Policy:
    """A policy with the paper's defaults, but for the parameters given."""
    cls = policy_class(name)
    hints = get_type_hints(cls)
    known = {known.name: known for known in _parameters_of(cls)}
    values: dict[str, Any] = {}
    for given, value in (parameters or {}).items():
        if given not in known:
            raise FogscaleError(unknown(f"parameter of policy '{name}'", given, known))
        try:
            values[given] = msgspec.convert(value, hints[given])
        except msgspec.ValidationError as error:
            raise FogscaleError(f"parameter '{given}' of policy '{name}': {error}") from error
        least = known[given].metadata.get("at_least")
        if least is not None and values[given] < least:
            raise FogscaleError(f"parameter '{given}' of policy '{name}' is {value}: give at least {least:g}")
    policy: Policy = cls(**values)
    return policy


def learned_as(kind: type[_Learned], learned: Mapping[str, Any], policy: str, version: int) -> _Learned:
    """What another run has learned, checked: for a policy's `load`."""
    if learned.get("version") != version:
        raise FogscaleError(
            f"what policy '{policy}' should start from has version {learned.get('version')!r}, not"
            f" {version}: let it learn again"
        )
    try:
        return msgspec.convert({name: value for name, value in learned.items() if name != "version"}, kind)
    except msgspec.ValidationError as error:
        raise FogscaleError(
            f"what policy '{policy}' should start from is damaged ({error}): let it learn again"
        ) from error


def _parameters_of(cls: type[Any]) -> tuple[Field[Any], ...]:
    return tuple(known for known in fields(cls) if known.init)


def _default_of(known: Field[Any]) -> Any:
    return known.default_factory() if known.default_factory is not MISSING else known.default


@dataclass(frozen=True)
class Description:
    name: str
    summary: str
    needs: tuple[str, ...]
    parameters: tuple[dict[str, Any], ...]


def describe(name: str) -> Description:
    cls = policy_class(name)
    document = inspect.getdoc(inspect.getmodule(cls)) or inspect.getdoc(cls) or ""
    return Description(
        name=name,
        summary=document.partition("\n\n")[0].replace("\n", " "),
        needs=tuple(sorted(create(name).needs)),
        parameters=tuple(
            {
                "name": known.name,
                "default": _default_of(known),
                "description": known.metadata.get("description", ""),
            }
            for known in _parameters_of(cls)
        ),
    )
