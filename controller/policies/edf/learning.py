"""What both learning operator managers share (§5.2, Algorithm 1): choose, observe state and cost, update."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from controller.models.scaling_process import (
    ACTIONS,
    KEEP,
    Floats,
    States,
    Weights,
    first_values,
    known_costs,
)
from controller.policies.edf.operator_manager import Proposal, View
from fogscale.errors import FogscaleError


@dataclass(frozen=True)
class Rules:
    """Parameters of learning, the same for all operators."""

    weights: Weights
    discount: float  # γ
    rate: float  # α
    exploration: float  # ε


class Taken(NamedTuple):
    """An action that was carried out, whose outcome is still to be seen."""

    row: int
    level: int
    place: int


class Learner:
    """Keeps Q, chooses actions, and scores them by what they are expected to gain."""

    def __init__(self, operator: str, states: States, rules: Rules, bound_ms: float) -> None:
        self._operator, self._rules, self._bound_ms = operator, rules, bound_ms
        self.states = states
        self.values = first_values(states)
        self._known = known_costs(states, rules.weights)
        self._largest_gain = 1.0
        self._now: tuple[int, int] | None = None
        self._taken: Taken | None = None
        self.clipped = 0  # readings beyond the last level

    def propose(self, view: View) -> Proposal | None:
        self._now = None
        if view.rate_per_s is None or view.response_ms is None:
            return None  # neither the state nor what it cost is known
        self.clipped += not self.states.covers(view.rate_per_s)
        row, level = self.states.row(view.replicas), self.states.level(view.rate_per_s)
        if self._taken is not None and row == self._taken.row + ACTIONS[self._taken.place]:
            slow = float(view.response_ms > self._bound_ms)
            self._update(self._taken, row, level, self._rules.weights.performance * slow)
        self._taken, self._now = None, (row, level)
        values = self.values[row, level]
        self._largest_gain = max(self._largest_gain, float(values[KEEP] - values.min()))
        place = self._choose(row, level)
        return None if place == KEEP else self._proposal(row, level, place)

    def carried_out(self, change: int) -> None:
        """Learning is from what was done, not from what was asked for: who is denied keeps its replicas. An
        operator that is not seen, since it is being changed, still has its last change to learn from."""
        if self._now is not None:
            self._taken, self._now = Taken(*self._now, ACTIONS.index(change)), None

    def _proposal(self, row: int, level: int, place: int) -> Proposal:
        values = self.values[row, level]
        gain = float(values[KEEP] - values[place])
        why = (
            f"expected to save {gain:.3g} at {level * self.states.quantum_per_s:.0f} records/s"
            if gain > 0
            else "tries it out"
        )
        return Proposal(ACTIONS[place], gain / self._largest_gain, why)

    def _choose(self, row: int, level: int) -> int:
        raise NotImplementedError

    def _update(self, taken: Taken, row: int, level: int, unknown_cost: float) -> None:
        raise NotImplementedError

    # What it has learned

    def learned(self) -> dict[str, Any]:
        finite = np.where(np.isfinite(self.values), self.values, 0.0)
        return {
            "k_min": self.states.k_min,
            "k_max": self.states.k_max,
            "levels": self.states.levels,
            "quantum_per_s": self.states.quantum_per_s,
            "largest_gain": self._largest_gain,
            "values": finite.tolist(),
        }

    def learn_from(self, learned: Mapping[str, Any]) -> None:
        for name in ("k_min", "k_max", "levels", "quantum_per_s"):
            ours, theirs = getattr(self.states, name), learned.get(name)
            if theirs != ours:
                raise FogscaleError(
                    f"what policy 'edf' should start from was learned with {name} {theirs} for operator "
                    f"'{self._operator}', not {ours}: let it learn again"
                )
        values = self.table(learned, "values", self.values.shape)
        self.values = np.where(np.isfinite(self.values), values, np.inf)
        self._largest_gain = max(1.0, float(self.table(learned, "largest_gain", ())))

    def table(self, learned: Mapping[str, Any], name: str, shape: tuple[int, ...]) -> Floats:
        """A table of costs or counts as it was saved, or one clear line."""
        try:
            table = np.array(learned.get(name), dtype=float)
        except (TypeError, ValueError):
            table = np.array(np.nan)
        if table.shape != shape or not np.isfinite(table).all() or (table < 0).any():
            raise FogscaleError(
                f"what policy 'edf' should start from is damaged ({name} of operator '{self._operator}'): "
                f"let it learn again"
            )
        return table
