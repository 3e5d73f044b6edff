"""Readings that are not of now: CPU gauges of a short while ago, back pressure that was sampled earlier."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import replace

from numpy.random import Generator

from controller.model import Instances, OperatorMetrics
from controller.testbeds.simulated.engine import Engine
from controller.testbeds.simulated.settings import BackPressureReadings, CpuGauge

CpuByInstance = Mapping[str, list[float]]
"""By operator, the true CPU ratio that the gauge of each instance shows."""


def gauged_cpu(engine: Engine, gauge: CpuGauge, serving: Instances, rng: Generator) -> CpuByInstance:
    """Every instance's gauge was updated at another moment, up to max_age_s ago, and shows the mean over the
    window before it."""
    window = round(gauge.window_s / engine.step_s)
    oldest = round(gauge.max_age_s / engine.step_s)
    ages = iter(rng.integers(0, oldest + 1, size=sum(map(len, serving.values()))).tolist())
    found: dict[str, list[float]] = {}
    for i, name in enumerate(engine.dag.names):
        base_per_s = engine.layout.replicas[i].cpu_base_per_s
        found[name] = []
        for _ in serving[name]:
            end = max(1, engine.step - next(ages))
            start = max(0, end - window)
            processed = engine.processed_at(i, end) - engine.processed_at(i, start)
            rate_per_s = processed / ((end - start) * engine.step_s)
            found[name].append(min(1.0, rate_per_s / base_per_s) if base_per_s > 0 else 0.0)
    return found


class PressureReadings:
    """Back pressure as it was sampled `late_s` ago; none for `missing_s` after a change was asked for, or
    after the start, since nobody has asked for a sample."""

    def __init__(self, settings: BackPressureReadings) -> None:
        self._settings = settings
        self._known_from_s = settings.missing_s
        self._sampled: deque[tuple[float, dict[str, float | None]]] = deque()

    def change_asked_for(self, time_s: float) -> None:
        self._known_from_s = time_s + self._settings.missing_s
        self._sampled.clear()

    def shown(self, time_s: float, operators: Mapping[str, OperatorMetrics]) -> dict[str, OperatorMetrics]:
        """The operators with the back pressure that is shown now."""
        self._sampled.append((time_s, {name: seen.back_pressure_ratio for name, seen in operators.items()}))
        old_enough_s = time_s - self._settings.late_s
        while len(self._sampled) > 1 and self._sampled[1][0] <= old_enough_s:
            self._sampled.popleft()
        sampled_s, ratios = self._sampled[0]
        if time_s < self._known_from_s or sampled_s > old_enough_s:
            ratios = {}
        return {name: replace(seen, back_pressure_ratio=ratios.get(name)) for name, seen in operators.items()}
