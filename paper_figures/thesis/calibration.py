"""How the capacity, the World Cup load's scale and the pre-trained model follow from published facts.

Nobody published what a TaskManager can do, nor the rates of the World Cup load. But the load of §5.3 is known
(a bell of 1.5 h; the model covers up to 4500 records/s), and both scalers allocate 1.81 and 1.84 TaskManagers
per sample to it: so the capacity is the one at which the fewest TaskManagers that keep the SLA are as many in
the mean over the samples that are left when those of the four minutes after each change are discarded. The
scale of the World Cup load is then the one at which these are 1.56 and 1.59.

The model of §5.3 is no number to choose: it is what the samples of an exploration as in §5.2 teach. The
thesis had one; which one was chance, so several are simulated, with seeds that no run of the experiment has,
and the seeds take them in turn. `python -m paper_figures.thesis.calibration` shows the numbers and writes the
models into experiment.yml.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import yaml
from numpy.typing import NDArray

from controller.contract import Step
from controller.experiment import Experiment, WorkloadSettings, load, runs_of, scenarios_of, varied
from controller.models.polynomial import Samples, trained
from controller.policies.proactive import LEARNED_VERSION, Learnt
from controller.run import followed
from controller.testbeds.simulated.capacity import CapacityLaw, Linear, Table, UniversalScalability
from controller.testbeds.simulated.response import Station
from controller.testbeds.simulated.settings import scv_of, simulation_of
from fogscale.errors import FogscaleError
from fogscale.files import write_whole
from paper_figures.calibrate import changes as differences
from paper_figures.decisions import StepLog
from workloads import catalog
from workloads.replay import offered_rate_per_s

MODEL_SEEDS = range(1000, 1005)  # of explorations that pre-train a model of §5.3; the runs have 1, 2, …
KNEE = (1.0, 2.0, 2.7, 3.4, 4.1, 4.8)  # of the law `table`: full gains up to two TaskManagers, then 70 %
STEP_S = 10.0  # of the noiseless load

GAUSSIAN = "calibration.taskmanagers_gaussian"
WORLDCUP = "calibration.taskmanagers_worldcup"
SHARE = "calibration.sla_share"
WINDOW = "calibration.metric_window_s"
SPEED = "calibration.fault_speed_factor"
FAULT_S = "calibration.fault_for_s"
POINT = {GAUSSIAN: 1.825, WORLDCUP: 1.575, SHARE: 0.9, WINDOW: 15.0, SPEED: 0.7, FAULT_S: 600.0}

WORLDCUPS = ("worldcup", "worldcup_no_fault")
_FAULTS = "scenarios.worldcup.changes.policies.proactive.testbed.faults"


def calibrated(
    experiment: Experiment,
    drawn: Mapping[str, float],
    law: str = "usl",
    sla_share: float | None = None,
    fault_in_both: bool = False,
    proactive: Mapping[str, Any] | None = None,
) -> Experiment:
    """The experiment with everything worked out anew that follows from the drawn parameters: capacity,
    bursts, the World Cup load's scale, and the models that explorations under all this learn."""
    point = POINT | {name: value for name, value in drawn.items() if name in POINT}
    point |= {SHARE: sla_share} if sla_share is not None else {}
    changes = _settings(experiment, point, law)
    if fault_in_both:
        changes["scenarios.worldcup.changes.testbed.faults"] = changes[_FAULTS]
    if proactive:
        changes |= {f"policies.proactive.parameters.{name}": value for name, value in proactive.items()}
    result = varied(experiment, changes)
    # Where the settings are those of the file but for rounding, so are the models: with eight degrees, what
    # is learnt under numbers that differ in the fifth digit differs in the second.
    is_as_stated = not any(differences(experiment.model_dump(mode="json"), result.model_dump(mode="json")))
    return _with_models(result, pretrained(experiment if is_as_stated else result))


def _with_models(experiment: Experiment, models: Sequence[Mapping[str, Any]]) -> Experiment:
    """Put in as a whole, not laid over those before."""
    scenario = experiment.scenarios["optimal_control"]
    changes = deepcopy(scenario.changes)
    changes["policies"]["proactive"]["learned"] = [dict(model) for model in models]
    updated = scenario.model_copy(update={"changes": changes})
    return experiment.model_copy(update={"scenarios": {**experiment.scenarios, "optimal_control": updated}})


def _settings(experiment: Experiment, point: Mapping[str, float], law: str) -> dict[str, Any]:
    contention = getattr(simulation_of(experiment.testbed).capacity["job"], "contention", 0.0)
    capacity = capacity_law(experiment, law, contention, point[SHARE], point[GAUSSIAN])
    changes: dict[str, Any] = {
        "testbed.capacity.job": capacity.model_dump(),
        "testbed.arrival_scv": arrival_scv(experiment, capacity, point[SHARE]),
        "testbed.metric_window_s": float(round(point[WINDOW])),
    }
    limits_per_s = sla_limits_per_s(varied(experiment, changes))
    scale = worldcup_scale(experiment, limits_per_s, point[WORLDCUP])
    for name in WORLDCUPS:
        changes[f"scenarios.{name}.changes.workload.scale"] = scale
    faults = experiment.scenarios["worldcup"].changes["policies"]["proactive"]["testbed"]["faults"]
    fault = {"speed_factor": point[SPEED], "for_s": float(round(point[FAULT_S]))}
    return changes | {_FAULTS: [known | fault for known in faults]}


# Capacity


def capacity_law(
    experiment: Experiment, law: str, contention: float, sla_share: float, mean: float
) -> CapacityLaw:
    """A law with the scale at which the load of §5.3 needs `mean` TaskManagers."""
    rates_per_s = offered_per_s(experiment, "optimal_control")
    low, high = 1e-3 * rates_per_s.max(), 1e3 * rates_per_s.max()
    while high / low > 1 + 1e-7:
        middle = float(np.sqrt(low * high))
        tried = _law_of(law, middle, contention)
        stations = _stations(experiment, tried, arrival_scv(experiment, tried, sla_share))
        if mean_demand(_limits(experiment, stations), rates_per_s, _discarded(experiment)) > mean:
            low = middle
        else:
            high = middle
    return _law_of(law, high, contention)


def _law_of(law: str, per_replica_per_s: float, contention: float) -> CapacityLaw:
    if law == "usl":
        return UniversalScalability(law="usl", per_replica_per_s=per_replica_per_s, contention=contention)
    if law == "linear":
        return Linear(law="linear", per_replica_per_s=per_replica_per_s)
    if law == "table":
        return Table(law="table", measured_per_s=tuple(per_replica_per_s * step for step in KNEE))
    raise ValueError(f"the calibration of the thesis knows no capacity law {law}")


def arrival_scv(experiment: Experiment, capacity: CapacityLaw, sla_share: float) -> float:
    """How bursty arrivals are if one TaskManager misses the SLA at that share of its capacity: its mean wait
    is ρ/(1 − ρ)·(arrival_scv + service_scv)/2/capacity (response.Station, one replica)."""
    objective_s = experiment.sla_response_s or 0.0
    mean_scv = objective_s * capacity.capacity_per_s(1, 1.0, 0.0) * (1 - sla_share) / sla_share
    return max(0.0, 2 * mean_scv - scv_of(simulation_of(experiment.testbed).service_scv, "job"))


def _stations(experiment: Experiment, capacity: CapacityLaw, scv: float) -> list[Station]:
    (operator,) = experiment.topology.build().operators
    service_scv = scv_of(simulation_of(experiment.testbed).service_scv, "job")
    return [
        Station.of(capacity.capacity_per_s(n, 1.0, 0.0), n, scv, service_scv)
        for n in range(1, (operator.n_max or 1) + 1)
    ]


def sla_limits_per_s(experiment: Experiment) -> list[float]:
    """The workload at which 1, 2, … TaskManagers begin to miss the SLA."""
    simulation = simulation_of(experiment.testbed)
    return _limits(
        experiment, _stations(experiment, simulation.capacity["job"], scv_of(simulation.arrival_scv, "job"))
    )


def _limits(experiment: Experiment, stations: Iterable[Station]) -> list[float]:
    objective_s = experiment.sla_response_s or 0.0
    limits = []
    for station in stations:
        low, high = 0.0, station.capacity_per_s
        while high - low > 1e-3:
            middle = (low + high) / 2
            low, high = (middle, high) if station.wait_s(middle) < objective_s else (low, middle)
        limits.append(high)
    return limits


def mean_demand(limits_per_s: Iterable[float], rates_per_s: NDArray[np.float64], discarded: int = 0) -> float:
    """The mean of the fewest TaskManagers that keep the SLA; all of them where none do. So many rates after
    each change are left out, as the thesis discards samples after a rescaling."""
    exceeded = np.array([rates_per_s > limit for limit in list(limits_per_s)[:-1]])
    needed = 1 + exceeded.cumprod(axis=0).sum(axis=0)
    is_judged = np.ones(len(needed), dtype=bool)
    for changed in np.flatnonzero(np.diff(needed)) + 1:
        is_judged[changed : changed + discarded] = False
    return float(needed[is_judged].mean()) if is_judged.any() else float(needed.mean())


def _discarded(experiment: Experiment) -> int:
    """How many steps of the noiseless load are left out after a change."""
    return round(experiment.metrics.skip_after_reconfiguration_s / STEP_S)


def worldcup_scale(experiment: Experiment, limits_per_s: list[float], mean: float) -> float:
    """By what the World Cup requests are multiplied, as a workload's `scale`."""
    settings = experiment.scenarios["worldcup"].changes["workload"]
    once = offered_per_s(experiment, "worldcup") / settings["scale"]
    low, high = 1e-3, 1e3
    while high / low > 1 + 1e-7:
        middle = float(np.sqrt(low * high))
        needed = mean_demand(limits_per_s, middle * once, _discarded(experiment))
        low, high = (middle, high) if needed < mean else (low, middle)
    return high


def offered_per_s(experiment: Experiment, scenario: str) -> NDArray[np.float64]:
    """The noiseless offered rate of a scenario."""
    settings = WorkloadSettings.model_validate(experiment.scenarios[scenario].changes["workload"])
    workload = catalog.load(settings.name, **settings.parameters)
    replay = settings.replay(workload.replay)
    return offered_rate_per_s(workload.profile, replay, STEP_S)


# The models


def pretrained(experiment: Experiment, seeds: Iterable[int] = MODEL_SEEDS) -> list[dict[str, Any]]:
    return [_pretrained(experiment, seed) for seed in seeds]


def _pretrained(experiment: Experiment, seed: int) -> dict[str, Any]:
    """What all samples of a five-hour exploration teach, as §5.3 has it; that of §5.2 lasted to the end. As
    long as the proactive scaler explores, it is the reactive one, whose samples are journalled."""
    whole = scenarios_of(experiment)["exploration"]
    exploring = whole.model_copy(update={"policies": {"reactive": experiment.policies["reactive"]}})
    (run,) = runs_of(exploring, ["reactive"], [seed])
    log = StepLog()
    followed(run, log)
    judged = [step for step in log.steps if "slow_ratio" in step.estimates]
    rows = [
        (seen["workload_per_s"], len(step.observation.requested["job"]), seen["slow_ratio"])
        for step in judged
        for seen in (step.estimates,)
    ]
    settings = experiment.policies["proactive"].parameters
    model, _ = trained(Samples.of(rows), settings.get("degree_by", "in_sample"))
    capacity = judged[-1].estimates["capacity_per_s"]
    learnt = Learnt(model, capacity, sum(_adds_taskmanagers(step) for step in judged))
    return {"version": LEARNED_VERSION, "parts": {"job": msgspec.to_builtins(learnt)}}


def _adds_taskmanagers(step: Step) -> bool:
    """Whenever some are added, the capacity is measured (Algorithm 1)."""
    asked, now = step.plan, step.observation.requested["job"]
    return asked is not None and len(asked.placement["job"]) > len(now)


def written(experiment_yml: str, models: Sequence[Mapping[str, Any]]) -> str:
    """The text of an experiment with other pre-trained models: between their key and the next scenario."""
    before, key, rest = experiment_yml.partition(_KEY)
    _, end, after = rest.partition("  worldcup:\n")
    if not (key and end):
        raise FogscaleError(f"experiment.yml has no '{_KEY.strip()}' before '{end.strip()}': put them back")
    flow = (
        yaml.safe_dump(_rounded(model), default_flow_style=True, width=92, sort_keys=False)
        for model in models
    )
    text = "".join(f"- {textwrap.indent(model, '  ').lstrip()}" for model in flow)
    return before + key + textwrap.indent(text, " " * 12) + end + after


_KEY = "          learned:   # what explorations learn: python -m paper_figures.thesis.calibration\n"


def _rounded(value: Any) -> Any:
    """To ten digits, which is far below the noise; what has no names of its own stands in one line."""
    if isinstance(value, Mapping):
        return {name: _rounded(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return float(f"{value:.10g}") if isinstance(value, float) else value


def main() -> None:
    """Shows what follows from the facts, and writes the models into experiment.yml."""
    path = Path(__file__).with_name("experiment.yml")
    experiment = load(path)
    found = calibrated(experiment, {})
    simulated = simulation_of(found.testbed)
    print(f"testbed.capacity.job: {simulated.capacity['job'].model_dump(exclude_none=True)}")
    print(f"testbed.arrival_scv: {scv_of(simulated.arrival_scv, 'job'):.2f}")
    print(f"scenarios.worldcup….scale: {found.scenarios['worldcup'].changes['workload']['scale']:.4f}")
    models = pretrained(experiment)  # with the numbers as they stand in the file, which the runs have
    write_whole(path, written(path.read_text(encoding="utf-8"), models))
    print(f"{path.name} now has the models of {len(models)} explorations")


if __name__ == "__main__":
    main()
