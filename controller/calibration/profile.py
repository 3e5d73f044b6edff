"""A profile: what was measured of a testbed, and the settings by which the simulator imitates it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field

from controller.calibration.points import Point, Restart
from controller.experiment import Experiment, Parameter, runs_of
from controller.run import prepare
from controller.testbeds import TestbedSettings
from controller.testbeds.flink.settings import FlinkSettings
from controller.testbeds.simulated.settings import Simulation
from fogscale.documents import read_mapping
from fogscale.errors import FogscaleError
from fogscale.files import write_whole
from fogscale.settings import Ratio, Settings, validated


class FitRow(Settings):
    """How well a law says what was measured; ratios are means of |law − measured| / measured."""

    law: dict[str, Any]  # with its parameters
    error_ratio: Ratio  # of the points it was fitted to
    left_out_ratio: float | None = None  # of each point, fitted to all others: by this the law is chosen
    worst_ratio: float | None = None  # the largest of those
    checked_ratio: float | None = None  # of points that took no part: the testbed's own round trips


class Profile(Settings):
    """Written by `fogscale calibrate --testbed`; `fogscale run --profile` reads it."""

    name: str
    # measured: by the command, with its rows below; cited: by hand before, as `parameters` say.
    # derived: from how the job works, as they say, too.
    origin: Literal["measured", "cited", "derived"] = "measured"
    taken: str  # first to last row
    experiment: str  # the one whose testbed, job and nodes were measured
    job: str
    job_settings: dict[str, str | int | bool] = Field(default_factory=dict)
    operator: str  # the one that scales
    node_cores: float
    machine: dict[str, Any] = Field(default_factory=dict)  # cores of the machine, and its load meanwhile
    versions: dict[str, str | None] = Field(default_factory=dict)
    simulation: Simulation  # all settings of the simulated testbed
    parameters: tuple[Parameter, ...] = ()  # where those settings come from
    fits: tuple[FitRow, ...] = ()  # the best first
    points: tuple[Point, ...] = ()
    restarts: tuple[Restart, ...] = ()


def load_profile(path: Path) -> Profile:
    values = read_mapping(path, "profile", "fogscale calibrate --testbed writes one")
    return validated(Profile, values, str(path))


def profiles_in(folder: Path | None = None) -> list[Profile]:
    """Those that are kept: by default, with the project."""
    place = folder or Path(__file__).with_name("profiles")
    return [load_profile(path) for path in sorted(place.glob("*.yml"))]


def simulated(experiment: Experiment, profile: Profile) -> Experiment:
    """On a simulated testbed that behaves as the profile says, with the same part of the load."""
    simulation = simulation_for(experiment.testbed, profile)
    policies = {
        name: policy.model_copy(update={"testbed": {}}) for name, policy in experiment.policies.items()
    }
    return experiment.model_copy(update={"testbed": simulation, "policies": policies})


def simulation_for(testbed: TestbedSettings, profile: Profile) -> Simulation:
    """As the profile says; the same part of the load as on a real testbed, for as long after it."""
    if not isinstance(testbed, FlinkSettings):
        return profile.simulation
    part = {
        "span_s": testbed.span_s,
        "start_at_s": testbed.start_at_s,
        "drain_limit_s": testbed.drain_limit_s,
        "metric_window_s": testbed.metric_window_s,
        "sample_interval_s": testbed.sample_interval_s,
    }
    return profile.simulation.model_copy(update=part)


def with_ladder(experiment: Experiment, profile: Profile) -> Experiment:
    """A real testbed's experiment whose demand follows from the profile: what 1, 2, … replicas can do."""
    real = experiment.testbed
    if not isinstance(real, FlinkSettings):
        raise FogscaleError("--profile: this experiment runs on neither a real nor the simulated testbed")
    if real.job != profile.job:
        raise FogscaleError(f"--profile: it is of job '{profile.job}', not '{real.job}': choose another one")
    run = runs_of(simulated(experiment, profile), policies=["static"])[0]
    ladder = prepare(run).setup.capacity_per_s[profile.operator]
    rounded = {profile.operator: tuple(round(rate, 2) for rate in ladder)}
    return experiment.model_copy(update={"testbed": real.model_copy(update={"capacity_per_s": rounded})})


def write_profile(profile: Profile, path: Path) -> None:
    values = profile.model_dump(mode="json", exclude_defaults=True)
    # Said even where they are usual: a reader must not have to know the defaults.
    values["origin"] = profile.origin
    values["simulation"]["kind"] = profile.simulation.kind
    text = yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=120)
    write_whole(path, text, "name another with --write")
