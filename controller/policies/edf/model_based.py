"""The operator manager that learns a model of its operator (§5.2.2): full backups on estimated transitions
and costs, which rise with the rate and fall with the replicas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from controller.models.scaling_process import Floats, States, backed_up, greedy
from controller.policies.edf.learning import Learner, Rules, Taken


class ModelBased(Learner):
    def __init__(self, operator: str, states: States, rules: Rules, bound_ms: float) -> None:
        super().__init__(operator, states, rules, bound_ms)
        self.unknown_cost = np.zeros(states.shape)  # ĉ_u(s)
        self.seen = np.zeros((states.levels + 1, states.levels + 1))  # n_jj'
        self.moves: Floats = np.eye(states.levels + 1)  # P̂; from a level that was never left, the rate stays

    def _choose(self, row: int, level: int) -> int:
        return int(greedy(self.values[row : row + 1, level : level + 1])[0, 0])

    def _update(self, taken: Taken, row: int, level: int, unknown_cost: float) -> None:
        """Algorithm 2."""
        self.seen[taken.level, level] += 1
        self._count_moves(taken.level)
        self._estimate(row, level, unknown_cost)
        self.values = backed_up(self.values, self._known, self.unknown_cost, self.moves, self._rules.discount)

    def _count_moves(self, level: int) -> None:
        left = self.seen[level].sum()
        if left > 0:
            self.moves[level] = self.seen[level] / left

    def _estimate(self, row: int, level: int, paid: float) -> None:
        """Eq. 5, and what follows from it for other states: fewer replicas or a higher rate cost no less,
        more replicas or a lower rate no more."""
        costs, rate = self.unknown_cost, self._rules.rate
        estimate = (1 - rate) * costs[row, level] + rate * paid
        costs[row, level] = estimate
        worse, better = costs[: row + 1, level:], costs[row:, : level + 1]
        np.maximum(worse, estimate, out=worse)
        np.minimum(better, estimate, out=better)

    def learned(self) -> dict[str, Any]:
        tables = {"unknown_cost": self.unknown_cost.tolist(), "seen": self.seen.tolist()}
        return super().learned() | tables

    def learn_from(self, learned: Mapping[str, Any]) -> None:
        super().learn_from(learned)
        self.unknown_cost = self.table(learned, "unknown_cost", self.unknown_cost.shape)
        self.seen = self.table(learned, "seen", self.seen.shape)
        for level in range(len(self.seen)):
            self._count_moves(level)
