"""The operator manager that learns without a model (§5.2.1): Q-learning with ε-greedy actions."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from controller.models.scaling_process import KEEP, States
from controller.policies.edf.learning import Learner, Rules, Taken


class QLearning(Learner):
    def __init__(self, operator: str, states: States, rules: Rules, bound_ms: float, rng: Generator) -> None:
        super().__init__(operator, states, rules, bound_ms)
        self._rng = rng
        self._allowed = [np.flatnonzero(row).tolist() for row in states.allowed()]

    def _choose(self, row: int, level: int) -> int:
        """Of equals, to do nothing comes first, then chance decides."""
        allowed = self._allowed[row]
        if self._rng.random() < self._rules.exploration:
            return int(self._rng.choice(allowed))
        values = self.values[row, level]
        best = [place for place in allowed if values[place] == values.min()]
        return KEEP if KEEP in best else int(self._rng.choice(best))

    def _update(self, taken: Taken, row: int, level: int, unknown_cost: float) -> None:
        """Eq. 2."""
        rules = self._rules
        cost = self._known[taken.row, taken.place] + unknown_cost
        target = cost + rules.discount * self.values[row, level].min()
        before = self.values[taken]
        self.values[taken] = (1 - rules.rate) * before + rules.rate * target
