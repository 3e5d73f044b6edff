"""What policies saw and thought: the first seed of every policy once more, turn by turn.

A campaign keeps the truth of its hundreds of runs, not every observation; figures that show measurements,
filtered values or predictions need only one run of each, which is as quick to repeat as to ship.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from controller.contract import Step
from controller.experiment import Run
from controller.model import Sample
from controller.run import followed
from paper_figures.campaign import BASE, Case

COLUMNS = (
    "scenario", "policy", "time_s", "offered_rate_per_s", "throughput_per_s", "cpu_ratio", "memory_ratio",
    "busy_ratio", "back_pressure_ratio", "queue_records", "lag_records", "requested", "running", "standby",
    "reason", "estimates",
)  # fmt: skip


@dataclass
class StepLog:
    """Keeps the turns of the loop, and no samples."""

    steps: list[Step] = field(default_factory=list)
    recorded: None = None

    def append(self, step: Step) -> None:
        self.steps.append(step._replace(samples=()))

    def end(self, finished: bool, samples: Iterable[Sample], findings: Mapping[str, Any]) -> None:
        """Nothing to keep."""


def decided(cases: Sequence[Case]) -> pd.DataFrame:
    """One row per turn: the measured operator's metrics, replicas asked for and running, and `estimates`, a
    JSON document of the numbers that the policy's decision rests on."""
    rows: list[tuple[object, ...]] = []
    for case in cases:
        for run in case.runs():
            if case.variation == BASE and run.seed == case.seeds[0]:
                log = StepLog()
                followed(run, log)
                rows.extend(_row(run, step) for step in log.steps)
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _row(run: Run, step: Step) -> tuple[object, ...]:
    seen, operator = step.observation, run.measured_operator
    metrics = seen.operators[operator]
    return (
        run.variation["scenario"],
        run.policy,
        seen.time_s,
        metrics.offered_rate_per_s,
        metrics.throughput_per_s,
        metrics.cpu_ratio,
        metrics.memory_ratio,
        metrics.busy_ratio,
        metrics.back_pressure_ratio,
        metrics.queue_records,
        seen.lag_records,
        len(seen.requested[operator]),
        len(seen.placement[operator]),
        len(seen.standby),
        step.plan.reason if step.plan else "",
        json.dumps(dict(step.estimates)),
    )
