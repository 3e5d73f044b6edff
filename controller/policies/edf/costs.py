"""What a run costs by the managers' own measure (Eq. 1), recounted from what the testbed shows.

Learners leave out what they do not see, such as the time after a change; here every turn of the loop counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from controller.contract import Step
from controller.model import Operator, Sample
from controller.policies.edf import Edf


class Costs:
    """A log of the loop that keeps sums. Costs are per turn, of all operators that may be scaled."""

    recorded: None = None

    def __init__(self, policy: Edf) -> None:
        self._policy = policy  # for its weights and bounds
        self._turns = 0
        self._sums = dict.fromkeys(("performance", "resources", "reconfiguration", "replicas", "slow"), 0.0)

    def append(self, step: Step) -> None:
        observation, policy, sums = step.observation, self._policy, self._sums
        wanted = step.plan.placement if step.plan is not None else observation.requested
        self._turns += 1
        sums["replicas"] += sum(map(len, wanted.values()))
        job_ms = observation.response_time_ms
        sums["slow"] += job_ms is None or job_ms > policy.r_max_ms
        for operator in observation.topology.operators:
            if not operator.scalable:
                continue
            name = operator.name
            changed = len(wanted[name]) != len(observation.requested[name])
            sums["reconfiguration"] += policy.reconfiguration_weight * changed
            sums["resources"] += policy.resources_weight * len(wanted[name]) / self._most(operator)
            sums["performance"] += policy.performance_weight * self._is_slow(step, name)

    def _most(self, operator: Operator) -> int:
        return operator.n_max or max(self._policy.k_max, operator.n_min)

    def _is_slow(self, step: Step, name: str) -> bool:
        """Who stands still is slow; nobody can be slow without a bound."""
        if name not in self._policy.response_bounds_ms:
            return False
        response_ms = step.observation.operators[name].response_time_ms
        return response_ms is None or response_ms > self._policy.response_bounds_ms[name]

    def end(self, finished: bool, samples: Iterable[Sample], findings: Mapping[str, Any]) -> None:
        """All that counts has been added up."""

    def row(self) -> dict[str, float]:
        means = {name: total / max(1, self._turns) for name, total in self._sums.items()}
        cost = means["performance"] + means["resources"] + means["reconfiguration"]
        return {"cost": cost, **means}
