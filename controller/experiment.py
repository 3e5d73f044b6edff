"""Experiments: YAML -> validated -> a list of runs. A run is everything that happens once, as values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from controller.model import MOST_REPLICAS
from controller.older_files import in_todays_words
from controller.policies import names as registered_policies
from controller.policies import not_there
from controller.recording import run_folder, run_id
from controller.testbeds import AnyTestbed, kind_of
from controller.topology import InitialPlacement, TopologySettings
from fogscale.documents import read_mapping
from fogscale.errors import FogscaleError, unknown
from fogscale.settings import (
    LARGEST,
    PositiveSeconds,
    Ratio,
    Seconds,
    Settings,
    name_of,
    seconds_of,
    validated,
)
from workloads.replay import Arrivals, ReplaySettings

Origin = Literal["published", "artifact", "measured", "derived", "assumed"]
StartNodes = Literal["nearest", "random"]


# It becomes a folder.
FolderName = Annotated[str, Field(pattern=r"^\w[\w.-]*$"), BeforeValidator(name_of)]
PolicyName = FolderName  # a policy or an alias
MOST_SEEDS = 100_000


def _guard_values(guards: Any) -> Any:
    """Durations where a guard's name ends so; a number of replicas is not one."""
    if not isinstance(guards, Mapping):
        return guards
    for name, value in guards.items():
        if isinstance(value, bool) or (isinstance(value, str) and not str(name).endswith("_s")):
            shown = str(value).lower() if isinstance(value, bool) else f"'{value}'"
            raise ValueError(f"{name}: {shown} is not a number: write one without a unit")
    return guards


_GuardValue = Annotated[float, BeforeValidator(seconds_of)]
Guards = Annotated[dict[str, _GuardValue], BeforeValidator(_guard_values)]
Replicas = Annotated[int, Field(ge=1, le=MOST_REPLICAS)]


class WorkloadSettings(Settings):
    """Which workload enters where, and how fast. None: as the workload itself suggests."""

    name: str  # in the catalogue (`fogscale workloads`), or a CSV file
    parameters: dict[str, Any] = {}  # of the workload
    speed: Annotated[float, Field(gt=0)] | None = None  # how much faster than it was recorded
    copies: Annotated[int, Field(ge=1)] | None = None  # of every record
    scale: Annotated[float, Field(gt=0)] | None = None  # of the rate
    arrivals: Arrivals | None = None  # by chance (poisson), or evenly
    rounded_ratio: Ratio | None = None  # of its stamps, the share that is whole multiples of rounded_to_s
    rounded_to_s: PositiveSeconds | None = None  # in the trace's time, e.g. 60
    operator: str | None = None  # None: the only operator without upstream
    seed_from_run: bool = False  # the workload's parameter `seed` is the run's: every seed has another load

    def replay(self, usual: ReplaySettings) -> ReplaySettings:
        """As wanted here, and as is usual for the workload where nothing is said."""
        return ReplaySettings(
            speed=self.speed or usual.speed,
            copies=self.copies or usual.copies,
            scale=self.scale or usual.scale,
            arrivals=self.arrivals or usual.arrivals,
            rounded_ratio=usual.rounded_ratio if self.rounded_ratio is None else self.rounded_ratio,
            rounded_to_s=self.rounded_to_s or usual.rounded_to_s,
        )


class PolicySettings(Settings):
    policy: str | None = None  # which it is, where the key is an alias; None: the key itself
    parameters: dict[str, Any] = {}  # of the policy; `fogscale policies` lists them
    guards: Guards | None = None  # None: those of the experiment
    # What it starts from, as a run before saved it (or from --warm-start); several: seeds take them in turn.
    learned: dict[str, Any] | tuple[dict[str, Any], ...] = {}
    start_nodes: StartNodes = "nearest"  # where its first replicas are; random: drawn by the run's seed
    testbed: dict[str, Any] = {}  # what is different for this policy, e.g. the instant style of `ideal`


class MetricsSettings(Settings):
    """Over which time metrics are taken. And what means over time or over records, such as time shares and
    response times, leave out; sums and counts, such as cost, leave out nothing."""

    # Of means over time and of excess time, from the run's begin; 0: the span of the workload. Where it is
    # longer, nothing is demanded after the workload's end, and nothing is supplied once all is processed.
    period_s: Seconds = 0.0
    skip_first_s: Seconds = 0.0  # the run's first seconds
    skip_after_reconfiguration_s: Seconds = 0.0  # and so long from the begin of each reconfiguration


class Parameter(Settings):
    """Where a free parameter of the experiment comes from, and what else it could plausibly be."""

    path: str  # e.g. testbed.capacity.map.beta
    origin: Origin  # where its value comes from
    why: str  # in a sentence
    unit: str = ""  # for the reader
    range: tuple[float, float] | None = None  # of assumed ones


class Scenario(Settings):
    """A part of an experiment with something of its own: another workload, a fault, other policies."""

    title: str  # for figures
    changes: dict[str, Any] = {}  # laid over the experiment, level by level
    policies: tuple[str, ...] | None = None  # None: all of the experiment


class Experiment(Settings):
    name: FolderName  # it becomes a folder
    description: str = ""  # for the reader
    topology: TopologySettings  # nodes, operators, round trips
    start: dict[str, Replicas] = {}  # replicas at the beginning; not named: n_min
    pins: dict[str, tuple[str, ...]] = {}  # operators that stay on given nodes
    # Where the others begin: beside their own replicas, from the first node on, or where hops take the least.
    initial_placement: InitialPlacement = "in_order"
    measured_operator: str  # whose supply and demand the metrics compare
    workload: WorkloadSettings  # the load
    testbed: AnyTestbed  # where it runs; `fogscale testbeds` lists the kinds
    sla_response_s: PositiveSeconds | None = None  # the objective for the mean response time, if there is one
    sla_grace_s: Seconds = 0.0  # for so long after a reconfiguration a miss is no `steady` violation
    metrics: MetricsSettings = MetricsSettings()  # what means leave out
    guards: Guards = {}  # around every policy that names none of its own
    policies: Annotated[dict[PolicyName, PolicySettings], Field(min_length=1)]  # who decides
    scenarios: dict[Annotated[str, Field(pattern=r"^[\w-]+$")], Scenario] = {}  # by name
    seeds: Annotated[int, Field(ge=1, le=MOST_SEEDS)] = 1  # how many runs of each policy
    significance: Ratio = 0.05  # a difference counts if its p is below
    parameters: tuple[Parameter, ...] = ()  # where free parameters come from


class Run(Settings):
    """One policy, one workload, one seed, on one testbed; all resolved."""

    experiment: str
    policy: str  # the name it goes by: its own, or an alias
    variant_of: str | None = None  # the policy behind an alias
    policy_parameters: dict[str, Any] = {}
    learned: dict[str, Any] = {}  # by content: a run that is resumed or replayed starts from the same
    guards: Guards = {}
    workload: WorkloadSettings
    seed: Annotated[int, Field(ge=0)]
    topology: TopologySettings
    start: dict[str, int] = {}
    start_nodes: StartNodes = "nearest"
    pins: dict[str, tuple[str, ...]] = {}
    initial_placement: InitialPlacement = "in_order"
    measured_operator: str
    testbed: AnyTestbed
    sla_response_s: PositiveSeconds | None = None
    sla_grace_s: Seconds = 0.0
    metrics: MetricsSettings = MetricsSettings()
    variation: dict[str, Any] = {}  # what a campaign varied, to group by

    @property
    def registered_policy(self) -> str:
        return self.variant_of or self.policy

    @property
    def workload_name(self) -> str:
        """Also the name of a folder, so a path becomes its stem, and only what every file system takes."""
        return re.sub(r"[^\w.-]+", "_", Path(self.workload.name).stem)

    @property
    def named_by(self) -> dict[str, Any]:
        return {
            "experiment": self.experiment,
            "policy": self.policy,
            "workload": self.workload_name,
            "seed": self.seed,
        }

    @property
    def id(self) -> str:
        return run_id(self.named_by)

    @property
    def folder(self) -> Path:
        return run_folder(self.named_by)


def load(path: Path) -> Experiment:
    values = read_mapping(path, "experiment", "see paper_figures/gesscale/experiment.yml for one")
    experiment = validated(Experiment, in_todays_words(values), str(path))
    scenarios_of(experiment)  # a mistake in one shows now, not when it is run
    for name in experiment.policies:
        _behind(experiment, name)
    return experiment


def scenarios_of(experiment: Experiment) -> dict[str, Experiment]:
    """Every scenario as an experiment of its own; an experiment without any is its only one, nameless."""
    if not experiment.scenarios:
        return {"": experiment}
    whole = experiment.model_dump(exclude={"scenarios"})
    found = {}
    for name, scenario in experiment.scenarios.items():
        for key in ("name", "scenarios"):
            if key in scenario.changes:
                raise FogscaleError(
                    f"scenarios.{name}.changes: '{key}' is not for a scenario to change: remove it"
                )
        values = merged(whole, scenario.changes) | {"name": f"{experiment.name}.{name}"}
        if scenario.policies is not None:
            for policy in scenario.policies:
                if policy not in experiment.policies:
                    known = experiment.policies
                    raise FogscaleError(f"scenarios.{name}.policies: {unknown('policy', policy, known)}")
            values["policies"] = {policy: values["policies"][policy] for policy in scenario.policies}
        found[name] = validated(Experiment, values, f"scenarios.{name}")
    return found


def scenario_of(experiment: Experiment, name: str | None) -> Experiment:
    """The scenario of that name, or the first."""
    scenarios = scenarios_of(experiment)
    if name is None:
        return next(iter(scenarios.values()))
    if name not in scenarios:
        raise FogscaleError(unknown(f"scenario of experiment '{experiment.name}'", name, scenarios))
    return scenarios[name]


def runs_of(
    experiment: Experiment,
    policies: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
    workload: str | None = None,
    variation: Mapping[str, Any] | None = None,
) -> list[Run]:
    """Every policy with every seed; any registered policy may take part, listed in the experiment or not."""
    chosen = policies if policies is not None else tuple(experiment.policies)
    return [
        _run(experiment, name, seed, workload, variation or {})
        for name in chosen
        for seed in (seeds if seeds is not None else range(1, experiment.seeds + 1))
    ]


def _run(
    experiment: Experiment, policy: str, seed: int, workload: str | None, variation: Mapping[str, Any]
) -> Run:
    settings = experiment.policies.get(policy, PolicySettings())
    behind = _behind(experiment, policy)
    testbed = experiment.testbed
    if settings.testbed:
        values = merged(testbed.model_dump(), settings.testbed)
        testbed = validated(type(testbed), values, f"policies.{policy}.testbed")
    chosen = experiment.workload
    if workload is not None and workload != chosen.name:
        # Another workload brings its own pace; where it enters is up to the job.
        values = {"name": workload, "operator": experiment.workload.operator}
        chosen = validated(WorkloadSettings, values, "workload")
    if not 0 <= seed <= LARGEST:
        raise FogscaleError(f"seed {seed}: give a number from 0 to {LARGEST:.0e}")
    if chosen.seed_from_run:
        chosen = chosen.model_copy(update={"parameters": {**chosen.parameters, "seed": seed}})
    return Run(
        experiment=experiment.name,
        policy=policy,
        variant_of=None if behind == policy else behind,
        policy_parameters=settings.parameters,
        learned=_learned_by(seed, settings.learned),
        guards=experiment.guards if settings.guards is None else settings.guards,
        workload=chosen,
        seed=seed,
        topology=experiment.topology,
        start=experiment.start,
        start_nodes=settings.start_nodes,
        pins=experiment.pins,
        initial_placement=experiment.initial_placement,
        measured_operator=experiment.measured_operator,
        testbed=testbed,
        sla_response_s=experiment.sla_response_s,
        sla_grace_s=experiment.sla_grace_s,
        metrics=experiment.metrics,
        variation=dict(variation),
    )


def _learned_by(seed: int, learned: Mapping[str, Any] | Sequence[dict[str, Any]]) -> dict[str, Any]:
    if isinstance(learned, Mapping):
        return dict(learned)
    return learned[(seed - 1) % len(learned)] if learned else {}


def _behind(experiment: Experiment, name: str) -> str:
    """The policy that a name stands for: itself, or what the alias says."""
    settings = experiment.policies.get(name)
    if settings is None or settings.policy is None or settings.policy == name:
        if name not in registered_policies():
            raise FogscaleError(not_there(name, {*registered_policies(), *experiment.policies} - {name}))
        return name
    if settings.policy not in registered_policies():
        raise FogscaleError(f"policies.{name}.policy: {not_there(settings.policy, registered_policies())}")
    if name in registered_policies():
        raise FogscaleError(f"policies.{name}: this is a policy of its own: give the alias another name")
    return settings.policy


def merged(values: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The values with the changes laid over them, level by level."""
    result = dict(values)
    for key, change in changes.items():
        below = result.get(key)
        if isinstance(below, Mapping) and isinstance(change, Mapping) and not _is_another(below, change):
            result[key] = merged(below, change)
        else:
            result[key] = change
    return result


def _is_another(below: Mapping[str, Any], change: Mapping[str, Any]) -> bool:
    """Another testbed, capacity law or rescale style shares no settings with the one it replaces."""
    return any(key in change and change[key] != below.get(key) for key in ("kind", "law", "style"))


def varied(experiment: Experiment, changes: Mapping[str, Any]) -> Experiment:
    """The experiment with some settings replaced, by dotted path: {"testbed.capacity.map.beta": 0.8}."""
    values = experiment.model_dump()
    for path, value in changes.items():
        nested: Any = value
        for part in reversed(path.split(".")):
            nested = {part: nested}
        values = merged(values, in_todays_words(nested))
    return validated(Experiment, values, "variation")


def on_testbed(experiment: Experiment, kind: str) -> Experiment:
    """On another kind of testbed with its usual settings; as it is where the experiment names that one."""
    settings = kind_of(kind).settings
    if experiment.testbed.kind == kind:
        return experiment
    testbed = validated(settings, {"kind": kind}, f"testbed '{kind}', of which the experiment says nothing")
    # What a policy changes are settings of the testbed that is no longer there.
    policies = {
        name: policy.model_copy(update={"testbed": {}}) for name, policy in experiment.policies.items()
    }
    return experiment.model_copy(update={"testbed": testbed, "policies": policies})
