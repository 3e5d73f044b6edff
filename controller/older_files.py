"""Experiments and runs as they were written before a run named its testbed, in today's words.

Then, `simulation:` stood where now `testbed: {kind: simulated, …}` does: in an experiment or run, in a
policy, in the changes of a scenario, and at the start of a dotted path.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fogscale.errors import FogscaleError

_THEN, _NOW = "simulation", "testbed"


def in_todays_words(values: Mapping[str, Any]) -> dict[str, Any]:
    """An experiment, a run, or a part of one."""
    result = _renamed(values, {"kind": "simulated"})
    policies = result.get("policies")
    if isinstance(policies, Mapping):
        result["policies"] = {name: _policy(policy) for name, policy in policies.items()}
    scenarios = result.get("scenarios")
    if isinstance(scenarios, Mapping):
        result["scenarios"] = {name: _scenario(scenario) for name, scenario in scenarios.items()}
    parameters = result.get("parameters")
    if isinstance(parameters, (list, tuple)):
        result["parameters"] = [_parameter(parameter) for parameter in parameters]
    return result


def path_in_todays_words(path: str) -> str:
    """A setting by its dotted path, e.g. simulation.capacity.map.beta."""
    first, dot, rest = path.partition(".")
    if first == _THEN:
        return f"{_NOW}{dot}{rest}"
    if first == "policies" and rest.partition(".")[2].partition(".")[0] == _THEN:
        policy, _, below = rest.partition(".")
        return f"{first}.{policy}.{path_in_todays_words(below)}"
    if first == "scenarios" and rest.partition(".")[2].partition(".")[0] == "changes":
        scenario, _, below = rest.partition(".")
        return f"{first}.{scenario}.changes.{path_in_todays_words(below.removeprefix('changes.'))}"
    return path


def _renamed(values: Mapping[str, Any], first: Mapping[str, Any]) -> dict[str, Any]:
    """With the key renamed, its place kept."""
    if _THEN in values and _NOW in values:
        raise FogscaleError(f"'{_THEN}' is now called '{_NOW}', and both are there: keep '{_NOW}'")
    result: dict[str, Any] = {}
    for key, value in values.items():
        if key == _THEN:
            result[_NOW] = {**first, **value} if isinstance(value, Mapping) else value
        else:
            result[key] = value
    return result


def _policy(policy: Any) -> Any:
    # What is no mapping is a mistake, which the check that follows names better.
    return _renamed(policy, {}) if isinstance(policy, Mapping) else policy


def _scenario(scenario: Any) -> Any:
    if isinstance(scenario, Mapping) and isinstance(scenario.get("changes"), Mapping):
        return {**scenario, "changes": in_todays_words(scenario["changes"])}
    return scenario


def _parameter(parameter: Any) -> Any:
    if isinstance(parameter, Mapping) and isinstance(parameter.get("path"), str):
        return {**parameter, "path": path_in_todays_words(parameter["path"])}
    return parameter
