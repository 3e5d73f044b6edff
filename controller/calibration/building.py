"""From measured rows to a profile: the law that predicts best, and the simulator's other settings."""

from __future__ import annotations

import os
from collections.abc import Sequence
from statistics import median
from typing import Any

from controller.calibration.fitting import Fit, error_ratio, fitted
from controller.calibration.points import OWN, Point, Restart
from controller.calibration.profile import FitRow, Profile
from controller.experiment import Experiment, Parameter
from controller.testbeds.flink.settings import FlinkSettings
from controller.testbeds.simulated.settings import Reconfiguration, Simulation
from fog import manifest as manifests
from fog.folders import state_folder

# Of operators that do not scale: no calibration has found one of them to be in the way.
OTHERS_PER_S = 100_000.0


def profile_of(
    experiment: Experiment, operator: str, points: Sequence[Point], restarts: Sequence[Restart], name: str
) -> Profile:
    settings = experiment.testbed
    assert isinstance(settings, FlinkSettings)
    learned, checked = _shared(points)
    sizes = [each.record_bytes for each in points if each.record_bytes]
    fits = fitted(learned, median(sizes) if sizes else None)
    rows = tuple(_row(fit, checked) for fit in fits)
    nodes = [node for node in experiment.topology.nodes if node.name.startswith("fog")]
    rows_read: list[Point | Restart] = [*points, *restarts]
    loads = [each.load_1min for each in rows_read if each.load_1min is not None]
    taken = sorted(each.taken_at for each in rows_read if each.taken_at)
    others = [each.name for each in experiment.topology.operators if each.name != operator]
    return Profile(
        name=name,
        taken=f"{taken[0]} to {taken[-1]}" if taken else "",
        experiment=experiment.name,
        job=settings.job,
        job_settings=settings.job_settings,
        operator=operator,
        node_cores=nodes[0].cores if nodes else 1.0,
        machine={
            "cores": os.cpu_count(),
            "load_1min": {"least": min(loads), "median": median(loads), "most": max(loads)}
            if loads
            else None,
        },
        versions=_versions(settings.name),
        simulation=_simulation(settings, operator, others, fits[0], restarts),
        parameters=_origins(operator, others, fits[0], len(learned), restarts),
        fits=rows,
        points=tuple(points),
        restarts=tuple(restarts),
    )


def _shared(points: Sequence[Point]) -> tuple[list[Point], list[Point]]:
    """Those with one round trip between all nodes teach; those with the testbed's own are for checking."""
    uniform = [each for each in points if each.rtt_ms != OWN]
    own = [each for each in points if each.rtt_ms == OWN]
    return (uniform, own) if uniform else (own, [])


def _row(fit: Fit, checked: Sequence[Point]) -> FitRow:
    return FitRow(
        law={name: _short(value) for name, value in fit.law.model_dump(exclude_none=True).items()},
        error_ratio=round(fit.error_ratio, 4),
        left_out_ratio=None if fit.left_out_ratio is None else round(fit.left_out_ratio, 4),
        worst_ratio=None if fit.worst_ratio is None else round(fit.worst_ratio, 4),
        checked_ratio=round(error_ratio(fit.law, checked), 4) if checked else None,
    )


def _short(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_short(each) for each in value]
    if not isinstance(value, float):
        return value
    return 0.0 if abs(value) < 1e-9 else float(f"{value:.5g}")


def _simulation(
    settings: FlinkSettings,
    operator: str,
    others: Sequence[str],
    best: Fit,
    restarts: Sequence[Restart],
) -> Simulation:
    law = {name: _short(value) for name, value in best.law.model_dump(exclude_none=True).items()}
    fixed = {name: {"law": "linear", "per_replica_per_s": OTHERS_PER_S} for name in others}
    return Simulation.model_validate(
        {
            "capacity": {**fixed, operator: law},
            "reconfiguration": _reconfiguration(settings, restarts),
            "metric_window_s": settings.metric_window_s,
            "sample_interval_s": settings.sample_interval_s,
        }
    )


def _reconfiguration(settings: FlinkSettings, restarts: Sequence[Restart]) -> Reconfiguration:
    """What restarts took and how the job got going; an elastic job is simulated as one in place."""
    style = "restart" if settings.style == "restart" else "in_place"
    if not restarts:
        return Reconfiguration(style=style)  # type: ignore[arg-type]
    silent = [each.silent_s for each in restarts]
    return Reconfiguration(
        style=style,  # type: ignore[arg-type]
        duration_s=(min(silent), max(silent)),
        catch_up_s=_median([each.catch_up_s for each in restarts]) or 0.0,
        catch_up_ratio=_median([each.catch_up_ratio for each in restarts]) or 1.0,
        cpu_while_down_ratio=min(1.0, _median([each.cpu_while_down_ratio for each in restarts]) or 0.0),
        metrics_missing_s=_median([each.metrics_missing_s for each in restarts]) or 0.0,
    )


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(median(known), 3) if known else None


def _origins(
    operator: str, others: Sequence[str], best: Fit, points: int, restarts: Sequence[Restart]
) -> tuple[Parameter, ...]:
    told = [
        Parameter(
            path=f"simulation.capacity.{operator}",
            origin="measured",
            why=f"The law {best.law.law} predicts each of {points} points best from the others.",
        ),
        *(
            Parameter(
                path=f"simulation.capacity.{name}",
                origin="assumed",
                why="It was never in the way: records wait for the operator that scales.",
                range=(10_000.0, 1_000_000.0),
            )
            for name in others
        ),
    ]
    if restarts:
        what = "Between the shortest and the longest" if len(restarts) > 1 else "The only one"
        told.append(
            Parameter(
                path="simulation.reconfiguration",
                origin="measured",
                why=f"{what} of {len(restarts)} under a backlog; medians of how the job got going.",
            )
        )
    return tuple(told)


def _versions(testbed: str) -> dict[str, str | None]:
    from controller.run import commit, installed

    built = manifests.find(state_folder(testbed))
    services = {} if built is None else built.services
    versions = {name: str(told["version"]) for name, told in services.items() if told.get("version")}
    return {"fogscale": installed("fogscale"), "commit": commit(), **versions}
