"""What `fogscale control` is asked for: by its options, and by the file that --settings names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from controller.containment import Contained
from controller.contract import Policy
from controller.experiment import Guards, PolicyName, PolicySettings
from controller.guards import guarded
from controller.model import Topology
from controller.policies import create, names
from controller.topology import RttSettings
from fogscale.documents import read_yaml
from fogscale.errors import FogscaleError, unknown
from fogscale.settings import Settings, validated

Style = Literal["in_place", "restart"]


@dataclass(frozen=True)
class Wanted:
    """What the command line asks for."""

    policies: tuple[str, ...]
    job: str | None
    operators: tuple[str, ...]
    max_replicas: int | None
    window_s: float
    scrape_s: float
    cores: float | None
    seconds: float | None
    style: Style
    dry_run: bool


class ControlSettings(Settings):
    policies: dict[PolicyName, PolicySettings] = Field(
        default_factory=dict
    )  # parameters, guards, aliases; as in an experiment
    guards: Guards = Field(
        default_factory=lambda: {"warmup_s": 60.0}
    )  # around every policy that names none of its own
    rtt_ms: RttSettings | None = None  # round trips between TaskManagers; None: nobody knows them


def settings_from(file: Path | None) -> ControlSettings:
    if file is None:
        return ControlSettings()
    try:
        values = read_yaml(file)
    except OSError as error:
        raise FogscaleError(f"cannot read {file}: {error.strerror}") from None
    return validated(ControlSettings, values or {}, str(file))


def policy_named(name: str, settings: ControlSettings, topology: Topology) -> Policy:
    """Behind its guards, started."""
    chosen = settings.policies.get(name, PolicySettings())
    behind = chosen.policy or name
    if behind not in names():
        raise FogscaleError(unknown("policy", name, {*names(), *settings.policies}))
    guards = settings.guards if chosen.guards is None else chosen.guards
    policy = guarded(Contained(create(behind, chosen.parameters), name), guards)
    policy.start(topology, np.random.default_rng(1))
    return policy
