"""Scaling one operator as a Markov decision process (EDF paper, §5.2): a state is (replicas k, rate level j),
an action adds −1, 0 or +1 replica, a step costs for changing, for replicas and for slow records.

Tables are arrays over k (rows) and j; the rate moves on by itself, whatever is done (Eq. 3), so that one
matrix product is a whole backup of the Bellman equation.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

ACTIONS = (-1, 0, 1)
KEEP = ACTIONS.index(0)


@dataclass(frozen=True)
class Weights:
    """How much each of the three costs counts (Eq. 1)."""

    performance: float
    resources: float
    reconfiguration: float


@dataclass(frozen=True)
class States:
    """k from k_min to k_max, rates in steps of a quantum from 0 to `levels` of them."""

    k_min: int
    k_max: int
    levels: int  # L
    quantum_per_s: float  # λ̄

    @property
    def shape(self) -> tuple[int, int]:
        return self.k_max - self.k_min + 1, self.levels + 1

    def row(self, replicas: int) -> int:
        return min(max(replicas, self.k_min), self.k_max) - self.k_min

    def level(self, rate_per_s: float) -> int:
        """The nearest level; a rate beyond the last one counts as the last one."""
        return min(max(floor(rate_per_s / self.quantum_per_s + 0.5), 0), self.levels)

    def covers(self, rate_per_s: float) -> bool:
        return rate_per_s < (self.levels + 0.5) * self.quantum_per_s

    def allowed(self) -> NDArray[np.bool_]:
        """[row, action]: nobody goes below k_min or beyond k_max."""
        replicas = np.arange(self.k_min, self.k_max + 1)[:, None] + np.array(ACTIONS)
        allowed: NDArray[np.bool_] = (replicas >= self.k_min) & (replicas <= self.k_max)
        return allowed


def known_costs(states: States, weights: Weights) -> Floats:
    """c_k(s, a) of Eq. 4, [row, action]: what changing and running replicas cost; inf: not allowed."""
    replicas = np.arange(states.k_min, states.k_max + 1)[:, None] + np.array(ACTIONS)
    changing = weights.reconfiguration * (np.array(ACTIONS) != 0)
    costs = changing + weights.resources * replicas / states.k_max
    return np.where(states.allowed(), costs, np.inf)


def backed_up(values: Floats, known: Floats, unknown: Floats, moves: Floats, discount: float) -> Floats:
    """One full backup (Algorithm 2): Q(s, a) ← Σ_s' p(s'|s, a) [c(s, a, s') + γ min_a' Q(s', a')] everywhere.

    `values` is Q, [row, level, action]; `unknown` c_u(s'), [row, level]; `moves` P, [level, next level].
    """
    # What follows is worth, by the row it is reached in and by the level from which it is reached.
    following = (unknown + discount * values.min(axis=2)) @ moves.T
    result = np.full_like(values, np.inf)
    for place, action in enumerate(ACTIONS):
        below, above = max(0, -action), max(0, action)
        rows = slice(below, len(known) - above)
        result[rows, :, place] = (
            known[rows, place, None] + following[rows.start + action : rows.stop + action]
        )
    return result


def first_values(states: States) -> Floats:
    """Q before anything is known: 0, and inf where an action is not allowed."""
    rows, levels = states.shape
    values = np.zeros((rows, levels, len(ACTIONS)))
    values[np.broadcast_to(~states.allowed()[:, None, :], values.shape)] = np.inf
    return values


def optimum(
    states: States, weights: Weights, unknown: Floats, moves: Floats, discount: float, tolerance: float = 1e-9
) -> Floats:
    """Q* where the process is known, by value iteration: within `tolerance` of the fixed point."""
    known, values = known_costs(states, weights), first_values(states)
    while True:
        following = backed_up(values, known, unknown, moves, discount)
        change = float(np.abs(following.min(axis=2) - values.min(axis=2)).max())
        values = following
        if change * discount <= tolerance * (1 - discount):
            return values


def greedy(values: Floats) -> NDArray[np.intp]:
    """The best action of every state, [row, level]; of equals, to do nothing comes first."""
    order = (KEEP, 0, 2)
    choice: NDArray[np.intp] = np.array(order)[values[..., order].argmin(axis=-1)]
    return choice


def cost_of(
    actions: NDArray[np.intp], known: Floats, unknown: Floats, moves: Floats, discount: float
) -> Floats:
    """What following these actions for ever costs from every state, [row, level]: a linear system."""
    rows, levels = actions.shape
    size = rows * levels
    towards, paid = np.zeros((size, size)), np.zeros(size)
    for row in range(rows):
        for level in range(levels):
            place, state = int(actions[row, level]), row * levels + level
            reached = row + ACTIONS[place]
            towards[state, reached * levels : (reached + 1) * levels] = moves[level]
            paid[state] = known[row, place] + float(moves[level] @ unknown[reached])
    solved = np.linalg.solve(np.eye(size) - discount * towards, paid).astype(np.float64)
    return solved.reshape(rows, levels)
