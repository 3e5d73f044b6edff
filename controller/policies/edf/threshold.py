"""The threshold-based operator manager (§5.1): by the CPU of its replicas alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from controller.policies.edf.operator_manager import Proposal, View
from fogscale.errors import FogscaleError


@dataclass(frozen=True)
class Threshold:
    high_ratio: float  # U_s-out
    slack_ratio: float  # c
    k_min: int
    k_max: int

    def propose(self, view: View) -> Proposal | None:
        if not view.utilisations:
            return None
        busiest, total = max(view.utilisations), sum(view.utilisations)
        if busiest > self.high_ratio and view.replicas < self.k_max:
            score = (busiest - self.high_ratio) / (1 - self.high_ratio)
            return Proposal(1, score, f"a replica at {busiest:.0%}, above {self.high_ratio:.0%}")
        if view.replicas <= max(self.k_min, 1):
            return None
        low_ratio = self.slack_ratio * self.high_ratio
        without_one = total / (view.replicas - 1)
        if without_one < low_ratio:
            why = f"without one of them replicas at {without_one:.0%}, below {low_ratio:.0%}"
            return Proposal(-1, (low_ratio - without_one) / low_ratio, why)
        return None

    def carried_out(self, change: int) -> None:
        """It remembers nothing."""

    def learned(self) -> Mapping[str, Any] | None:
        return None

    def learn_from(self, learned: Mapping[str, Any]) -> None:
        raise FogscaleError("policy 'edf' with thresholds learns nothing: leave `learned` out")
